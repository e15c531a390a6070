-- A claim is a claim row, a slot and a message that agree.
begin;
select plan(8);

insert into public.engine_config (pool_id, hold_sec) values ('one', 60);
insert into public.inventory_slots (pool_id) select 'one' from generate_series(1, 5);
create temp table taken as select public.claim_resource_and_queue('one', 'ann', 'r1') as id;

select results_eq(
  $$ select c.pool_id, c.slot_id, c.user_id::text, c.request_id::text, c.state::text, c.hold_until
     from public.claims c where c.pool_id = 'one' $$,
  $$ select 'one', t.id, 'ann', 'r1', 'queued', now() + interval '60 seconds' from taken t $$,
  'the claim row says who holds which slot, and until when'
);
select results_eq(
  $$ select q.msg_id, q.message from pgmq.q_intake_queue q where q.message ->> 'pool_id' = 'one' $$,
  $$ select c.msg_id, jsonb_build_object('claim_id', c.claim_id, 'pool_id', 'one', 'resource_id', c.slot_id,
       'user_id', 'ann', 'verified', true, 'state', 'queued') from public.claims c where c.pool_id = 'one' $$,
  'the message names the claim, and the claim its message'
);
select results_eq(
  $$ select s.id, s.status::text, s.locked_by, s.locked_at from public.inventory_slots s
     where s.pool_id = 'one' and s.status <> 'AVAILABLE' $$,
  $$ select t.id, 'RESERVED', 'ann', now() from taken t $$,
  'one slot is taken, and it is the one returned'
);
select isnt(
  public.claim_resource_and_queue('one', 'ann'), (select id from taken),
  'a second claim without a request id is a second slot'
);
select throws_ok(
  $$ insert into public.claims (claim_id, pool_id, slot_id, user_id)
     select gen_random_uuid(), 'one', t.id, 'bob' from taken t $$,
  '23505', null, 'a slot cannot have two live claims, even if the owner inserts them'
);
select is(
  (select string_agg(distinct c.user_id, ',') from public.claims c where c.pool_id = 'one'), 'ann',
  'the refused second claim has left nothing'
);
select throws_ok(
  $$ update public.claims set state = 'released' where pool_id = 'one' $$,
  '23514', null, 'a claim cannot end without its slot being freed'
);
select is(
  (select string_agg(distinct c.state::text, ',') from public.claims c where c.pool_id = 'one'), 'queued',
  'the refused change of state has left nothing'
);

select * from finish();
rollback;

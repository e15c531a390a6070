-- get_claim shows a claim as it is.
begin;
select plan(11);

delete from pgmq.q_intake_queue;

insert into public.engine_config (pool_id, hold_sec) values ('look', 30);
insert into public.inventory_slots (pool_id) values ('look');
select public.claim_resource_and_queue('look', 'ann', 'r1');
create temp table mine as select claim_id, slot_id from public.claims where pool_id = 'look';

select results_eq(
  $$ select g.* from mine m, public.get_claim(m.claim_id) g $$,
  $$ select m.claim_id, m.slot_id, 'look', 'ann', 'r1', 'queued', true, now(), now() + interval '30 seconds',
       null::timestamptz, null::text, 0::bigint, false, null::boolean, null::text, null::jsonb from mine m $$,
  'a live claim shows its slot, pool, user, request, state, hold and place'
);
select public.release_own_claim(claim_id, 'ann', 'changed my mind') from mine;
select results_eq(
  $$ select g.state, g.ended_at, g.end_reason from mine m, public.get_claim(m.claim_id) g $$,
  $$ select 'released', now(), 'changed my mind' $$,
  'an ended claim shows when and why'
);

-- How many are ahead is told from the numbers of the messages.
insert into public.inventory_slots (pool_id) select 'line' from generate_series(1, 6);
select public.claim_resource_and_queue('line', 'u' || i) from generate_series(1, 6) i;
create function pg_temp.ahead(p_user text) returns bigint language sql
as $$ select g.ahead from public.claims c, public.get_claim(c.claim_id) g where c.user_id = p_user and c.pool_id = 'line' $$;
select is(pg_temp.ahead('u1'), 0::bigint, 'no claim is ahead of the first');
select is(pg_temp.ahead('u6'), 5::bigint, 'five are ahead of the sixth');
create temp table taken as select msg_id, read_ct from tests.take(2, 60);
select is(pg_temp.ahead('u6'), 3::bigint, 'those that are being carried count no more');
select is(pg_temp.ahead('u2'), 0::bigint, 'and have no claim ahead');
select public.bridge_finish(array_agg(msg_id), array_agg(read_ct), '{committed,dead_letter}', '{null,planted}', '{0,0}') from taken;
select is(pg_temp.ahead('u1'), null, 'a ticket is not on the queue');
select is(pg_temp.ahead('u2'), null, 'nor is a dead letter, which has a number of another queue');
update pgmq.q_intake_queue set read_ct = 1;
select is(pg_temp.ahead('u6'), 0::bigint, 'when all have been tried before, their order is unknown, and none is given');

select is_empty($$ select public.get_claim(gen_random_uuid()) $$, 'an unknown claim has no row');
select is_empty($$ select public.get_claim(null) $$, 'a null id has no row');

select * from finish();
rollback;

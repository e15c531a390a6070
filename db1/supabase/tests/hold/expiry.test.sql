-- A hold that has run out gives its slot back; one that has not is left alone.
begin;
select plan(11);

insert into public.engine_config (pool_id, hold_sec) values ('hold', 60), ('no_hold', null);
insert into public.inventory_slots (pool_id)
select pool from (values ('hold'), ('no_hold')) p (pool), generate_series(1, 2);
select public.claim_resource_and_queue('hold', 'due');
select public.claim_resource_and_queue('hold', 'early');
select public.claim_resource_and_queue('no_hold', 'for_good');
create temp table old as select * from public.claims where pool_id in ('hold', 'no_hold');

create temp table before as select tests.state() as state;
select is(public.expire_holds(), 0, 'no hold has run out yet');
select is(tests.state(), (select state from before), 'nothing due means nothing changes');
update public.claims set hold_until = now() where pool_id = 'hold' and user_id = 'due';
select is(public.expire_holds(), 0, 'a hold is good until its last moment');
update public.claims set hold_until = now() - interval '1 second' where pool_id = 'hold' and user_id = 'due';
select is(public.claim_resource_and_queue('hold', 'late'), null, 'the pool is sold out');

select is(public.expire_holds(), 1, 'the hold that has run out expires');
select results_eq(
  $$ select user_id::text, state::text, end_reason, freed_at from public.claims
     where pool_id in ('hold', 'no_hold') order by user_id $$,
  $$ values ('due', 'expired', 'hold expired', now()), ('early', 'queued', null, null),
    ('for_good', 'queued', null, null) $$,
  'only the hold that has run out ends; one without an end never does'
);
select results_eq(
  $$ select q.message ->> 'user_id' from pgmq.q_intake_queue q join old o on o.msg_id = q.msg_id order by 1 $$,
  array['early', 'for_good'],
  'the message of the expired claim is withdrawn, and no other'
);
select results_eq(
  $$ select s.status::text, s.locked_by, s.locked_at from public.inventory_slots s
     join old o on o.slot_id = s.id where o.user_id = 'due' $$,
  $$ values ('AVAILABLE', null::text, null::timestamptz) $$,
  'its slot is on sale again'
);
select is(public.expire_holds(), 0, 'a second run finds nothing');
select is(
  public.claim_resource_and_queue('hold', 'late'), (select slot_id from old where user_id = 'due'),
  'the slot is sold again although the pool was sold out'
);
select is(
  (select c.state::text from public.claims c join old o on o.claim_id = c.claim_id where o.user_id = 'due'), 'expired',
  'the expired claim stays expired'
);

select * from finish();
rollback;

-- A delivery that ends: committed, refused or gone.
begin;
select plan(28);

create temp table taken as select * from tests.take(0, 0);

select tests.empty_queues();
insert into public.engine_config (pool_id, hold_sec) values ('b', 60);
insert into public.inventory_slots (pool_id) select 'b' from generate_series(1, 6);
select public.claim_resource_and_queue('b', u) from unnest(array['sold', 'no', 'late', 'twice']) u;
-- Two slots reserved the old way, with messages put on the queue by hand.
with by_hand as (
  update public.inventory_slots s set status = 'RESERVED', locked_by = u.name, locked_at = now()
  from (
    select f.id, 'hand' || row_number() over (order by f.id) as name
    from public.inventory_slots f where f.pool_id = 'b' and f.status = 'AVAILABLE'
  ) u
  where s.id = u.id returning s.id, u.name
)
select public.intake_queue_send(jsonb_build_object('pool_id', 'b', 'resource_id', id, 'user_id', name, 'state', 'queued'))
from by_hand;
insert into taken select * from tests.take(100, 30);

select is(tests.finish('sold', 1, 'committed'), 'committed', 'a committed delivery says so');
select is((tests.claim_of('b', 'sold')).state::text, 'committed', 'its claim is committed');
select is((tests.claim_of('b', 'sold')).hold_until, null, 'and no longer on hold');
select is((tests.claim_of('b', 'sold')).msg_id, null, 'and has no message');
select is(tests.slot_of('sold'), 'CONSUMED', 'its slot is consumed');
select is(tests.message_of('sold'), null, 'its message is gone');
create temp table before as select tests.state() as state;
select is(tests.finish('sold', 1, 'committed'), 'lost_lease', 'a second finish has lost its lease');
select is(tests.finish('sold', 1, 'refused'), 'lost_lease', 'whatever its verdict');
select is(tests.state(), (select state from before), 'and changes nothing');

select is(tests.finish('no', 1, 'refused', 'card declined'), 'refused', 'a refused delivery says so');
select is((tests.claim_of('b', 'no')).state::text, 'refused', 'its claim has ended');
select is((tests.claim_of('b', 'no')).end_reason, 'card declined', 'with the reason');
select is(tests.slot_of('no'), 'AVAILABLE', 'its slot is on sale again');
select is(tests.message_of('no'), null, 'its message is gone');

select is(tests.finish('hand1', 1, 'committed'), 'committed', 'a message put there by hand can be committed');
select results_eq(
  $$ select claim_id = slot_id, pool_id, state::text, verified from public.claims where user_id = 'hand1' $$,
  $$ values (true, 'b', 'committed', true) $$, 'it has a claim now, so that a rebuild knows its slot is sold'
);
select is(tests.slot_of('hand1'), 'CONSUMED', 'its slot is consumed');
truncate public.inventory_slots;
select is(intake.ensure_inventory() > 0, true, 'after a crash the slots are rebuilt');
select is(tests.slot_of('hand1'), 'CONSUMED', 'the slot sold by hand is not offered again');
select is(tests.slot_of('hand2'), 'RESERVED', 'the one on the queue stays reserved');
select is(tests.finish('hand2', 1, 'refused', 'no'), 'refused', 'a message put there by hand can be refused');
select is(tests.slot_of('hand2'), 'AVAILABLE', 'the slot that was reserved by hand is on sale again');
select is_empty($$ select from public.claims where user_id = 'hand2' $$, 'and no claim was made for it');

update public.claims set state = 'released', freed_at = now() where user_id = 'late';
select is(tests.finish('late', 1, 'gone', 'the claim is released'), 'gone', 'a message of an ended claim can go');
select is(tests.message_of('late'), null, 'it is gone');
select is((tests.claim_of('b', 'late')).state::text, 'released', 'and its claim is as it was');

-- The same claim on the queue twice: one message became the ticket before the other was refused.
update public.claims set state = 'committed', msg_id = null, hold_until = null where user_id = 'twice';
update public.inventory_slots set status = 'CONSUMED' where locked_by = 'twice';
select is(tests.finish('twice', 1, 'refused', 'seen before'), 'refused', 'a second message of a ticket can be refused');
select is((tests.claim_of('b', 'twice')).state::text, 'committed', 'the ticket stays a ticket');

select * from finish();
rollback;

-- A delivery that ends: committed, refused or gone.
begin;
select plan(28);

-- All that a finish can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create temp table taken as select * from public.bridge_take(0, 0);

-- Ends the delivery of one user's message in pool "b" with a verdict, under the lease that read_ct names.
create function pg_temp.finish(
  p_user text, p_read_ct int, p_verdict text, p_reason text default null, p_delay_ms int default 0
)
returns text
language sql
as $$
  select f.outcome
  from taken t
  cross join lateral public.bridge_finish(
    array[t.msg_id], array[p_read_ct], array[p_verdict], array[p_reason], array[p_delay_ms]
  ) f
  where t.message ->> 'user_id' = p_user;
$$;

create function pg_temp.claim_of(p_user text) returns public.claims language sql
as $$ select c from public.claims c where c.pool_id = 'b' and c.user_id = p_user $$;
create function pg_temp.slot_of(p_user text) returns text language sql
as $$ select s.status::text from public.inventory_slots s join taken t on s.id = (t.message ->> 'resource_id')::uuid
  where t.message ->> 'user_id' = p_user $$;
create function pg_temp.message_of(p_user text) returns jsonb language sql
as $$ select q.message from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user $$;

delete from pgmq.q_intake_queue;
delete from pgmq.q_intake_dlq;
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
insert into taken select * from public.bridge_take(100, 30);

select is(pg_temp.finish('sold', 1, 'committed'), 'committed', 'a committed delivery says so');
select is((pg_temp.claim_of('sold')).state::text, 'committed', 'its claim is committed');
select is((pg_temp.claim_of('sold')).hold_until, null, 'and no longer on hold');
select is((pg_temp.claim_of('sold')).msg_id, null, 'and has no message');
select is(pg_temp.slot_of('sold'), 'CONSUMED', 'its slot is consumed');
select is(pg_temp.message_of('sold'), null, 'its message is gone');
create temp table before as select pg_temp.state() as state;
select is(pg_temp.finish('sold', 1, 'committed'), 'lost_lease', 'a second finish has lost its lease');
select is(pg_temp.finish('sold', 1, 'refused'), 'lost_lease', 'whatever its verdict');
select is(pg_temp.state(), (select state from before), 'and changes nothing');

select is(pg_temp.finish('no', 1, 'refused', 'card declined'), 'refused', 'a refused delivery says so');
select is((pg_temp.claim_of('no')).state::text, 'refused', 'its claim has ended');
select is((pg_temp.claim_of('no')).end_reason, 'card declined', 'with the reason');
select is(pg_temp.slot_of('no'), 'AVAILABLE', 'its slot is on sale again');
select is(pg_temp.message_of('no'), null, 'its message is gone');

select is(pg_temp.finish('hand1', 1, 'committed'), 'committed', 'a message put there by hand can be committed');
select results_eq(
  $$ select claim_id = slot_id, pool_id, state::text, verified from public.claims where user_id = 'hand1' $$,
  $$ values (true, 'b', 'committed', true) $$, 'it has a claim now, so that a rebuild knows its slot is sold'
);
select is(pg_temp.slot_of('hand1'), 'CONSUMED', 'its slot is consumed');
truncate public.inventory_slots;
select is(intake.ensure_inventory() > 0, true, 'after a crash the slots are rebuilt');
select is(pg_temp.slot_of('hand1'), 'CONSUMED', 'the slot sold by hand is not offered again');
select is(pg_temp.slot_of('hand2'), 'RESERVED', 'the one on the queue stays reserved');
select is(pg_temp.finish('hand2', 1, 'refused', 'no'), 'refused', 'a message put there by hand can be refused');
select is(pg_temp.slot_of('hand2'), 'AVAILABLE', 'the slot that was reserved by hand is on sale again');
select is_empty($$ select from public.claims where user_id = 'hand2' $$, 'and no claim was made for it');

update public.claims set state = 'released', freed_at = now() where user_id = 'late';
select is(pg_temp.finish('late', 1, 'gone', 'the claim is released'), 'gone', 'a message of an ended claim can go');
select is(pg_temp.message_of('late'), null, 'it is gone');
select is((pg_temp.claim_of('late')).state::text, 'released', 'and its claim is as it was');

-- The same claim on the queue twice: one message became the ticket before the other was refused.
update public.claims set state = 'committed', msg_id = null, hold_until = null where user_id = 'twice';
update public.inventory_slots set status = 'CONSUMED' where locked_by = 'twice';
select is(pg_temp.finish('twice', 1, 'refused', 'seen before'), 'refused', 'a second message of a ticket can be refused');
select is((pg_temp.claim_of('twice')).state::text, 'committed', 'the ticket stays a ticket');

select * from finish();
rollback;

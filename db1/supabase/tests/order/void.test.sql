-- A void takes the claims that a payment bought, or that an operator names; their slots are on sale again, once.
begin;
select plan(36);

select tests.empty_queues();
select tests.paid_pool('void', 9, '{"max_quantity": 3}');
select tests.ask('void', 'ann', 3), tests.ask('void', 'bob'), tests.ask('void', 'cid'), tests.ask('void', 'dan');
select tests.settle(tests.payment(tests.order_of('void', 'ann'), 'pi_a'));
create temp table ann as select c.* from public.claims c where c.pool_id = 'void' and c.user_id = 'ann';
-- One is a ticket, one is with a worker, one is a dead letter.
create temp table taken as select * from tests.take(9, 60);
select public.bridge_finish(array_agg(msg_id), array_agg(read_ct), array[v], array['why'], array[0])
from (select t.*, (array['committed', 'dead_letter', 'outage'])[row_number() over (order by msg_id)] as v from taken t) t group by v;
select is(
  (select array_agg(state::text order by state) from public.claims where user_id = 'ann' and pool_id = 'void'),
  '{queued,committed,dead_letter}', 'three claims in three places'
);

-- What a void is about.
create temp table before as select tests.state() as state;
select is_empty(
  $$ select * from public.void_targets(null, array[gen_random_uuid(), (tests.order_of('void', 'bob')).order_id]) $$,
  'a claim that is not there, or is held, cannot be voided'
);
select throws_ok(
  $$ select * from public.void_targets(tests.payment(tests.order_of('void', 'ann'), 'pi_x', '{"claim_id": "nonsense"}'), null, false) $$,
  'SL008', null, 'an order that is not in this cell may be in another'
);
select is_empty(
  $$ select * from public.void_targets(tests.payment(tests.order_of('void', 'bob'), 'pi_x', '{"livemode": false}'), null) $$,
  'a refund in the test mode voids nothing'
);
select is(tests.state(), (select state from before), 'and nothing changes');
select results_eq(
  $$ select * from public.void_targets(tests.payment(tests.order_of('void', 'ann'), 'pi_a'), null) $$,
  $$ select claim_id, slot_id, 'void', 'ann', true, order_id, 'stripe/pi_a', 1000::bigint, 'eur' from ann order by claim_id $$,
  'a payment''s void is about all that it bought'
);
select bag_eq(
  $$ select claim_id from public.void_targets(null, array(select claim_id from ann limit 2)) $$, 'select claim_id from ann limit 2',
  'an operator''s about those that are named'
);
select is(tests.state(), (select state from before), 'and looking changes nothing');

-- A refund that is faster than its payment.
select is_empty(
  $$ select * from public.void_targets(tests.payment(tests.order_of('void', 'bob'), 'pi_b'), null) $$, 'a payment that bought nothing has no claims'
);
select is(tests.settle(tests.payment(tests.order_of('void', 'bob'), 'pi_b')), 'void refunded_first', 'and never buys any');
select is(tests.settle(tests.payment(tests.order_of('void', 'bob'), 'pi_b2')), 'funds in_time', 'another payment does');
select is_empty(
  $$ select * from public.void_targets(tests.payment(tests.order_of('void', 'bob'), 'pi_b'), null) $$,
  'and the first one''s refund does not touch it'
);
select tests.settle(tests.payment(tests.order_of('void', 'ann'), 'pi_a2'));
select is_empty(
  $$ select * from public.void_targets(tests.payment(tests.order_of('void', 'ann'), 'pi_a2'), null) $$,
  'the refund of a second payment voids nothing'
);

-- The slots come back.
select is(public.finish_void('{}', 'refunded'), 0, 'nothing named, nothing done');
select is(public.finish_void(array[(tests.order_of('void', 'cid')).order_id], 'x'), 0, 'a held claim stays');
select is((tests.claim_of('void', 'cid')).state::text, 'held', 'as it is');
create temp table part as select claim_id, slot_id from ann order by claim_id limit 1;
select is(public.finish_void(array(select claim_id from part), 'by olga'), 1, 'one seat of three is voided');
select results_eq(
  $$ select c.state::text, c.freed_at, c.end_reason, c.msg_id from public.claims c join part p on p.claim_id = c.claim_id $$,
  $$ values ('voided', now(), 'by olga', null::bigint) $$, 'it has ended'
);
select is((public.get_claim((tests.order_of('void', 'ann')).order_id))."order" ->> 'status', 'paid', 'the order is still paid');
create temp table after as select tests.state() as state;
select is(public.finish_void(array(select claim_id from part), 'once more'), 1, 'the second time it is answered the same');
select is(tests.state(), (select state from after), 'and nothing changes');
select is(public.finish_void(array(select claim_id from ann), 'refunded'), 3, 'all of them');
select is((public.get_claim((tests.order_of('void', 'ann')).order_id))."order" ->> 'status', 'voided', 'then the order is voided');
select is_empty(
  $$ select from public.inventory_slots s join ann a on a.slot_id = s.id where s.status <> 'AVAILABLE' $$,
  'their slots are on sale, also the ticket''s'
);
select is_empty(
  $$ select from pgmq.q_intake_queue q where q.message ->> 'order_id' = (tests.order_of('void', 'ann')).order_id::text
     union all
     select from pgmq.q_intake_dlq d where d.message ->> 'order_id' = (tests.order_of('void', 'ann')).order_id::text $$,
  'message and dead letter are gone'
);
select is(
  (select f.outcome from taken t cross join lateral public.bridge_finish(
     array[t.msg_id], array[t.read_ct], '{committed}', '{null}', '{0}') f
   where t.message ->> 'user_id' = 'ann' limit 1),
  'lost_lease', 'a worker that comes late changes nothing'
);
select bag_eq(
  $$ select claim_id from public.void_targets(tests.payment(tests.order_of('void', 'ann'), 'pi_a'), null) $$, 'select claim_id from ann',
  'a courier that starts over is told of them again'
);

-- Sold again; a void that is repeated does not touch the new owner.
select is(tests.ask('void', 'eve', 3), 'claimed', 'the slots are sold again');
create temp table resold as select tests.state() as state;
select is(public.finish_void(array(select claim_id from ann), 'late'), 3, 'a void that is repeated');
select is(tests.state(), (select state from resold), 'takes nothing from the next buyer');

-- The table refuses any other end.
select throws_ok(
  $$ update public.claims set state = 'released', freed_at = now() where user_id = 'bob' and pool_id = 'void' $$, '23514', null,
  'a paid claim cannot be released by hand'
);
select tests.refuses(
  $$ select public.release_own_claim((tests.order_of('void', 'bob')).order_id, 'bob') $$, 'SL041', 'nor by its buyer'
);
select is(
  (select count(*) from public.inventory_slots s join public.claims c on c.slot_id = s.id
   where c.pool_id = 'void' and c.freed_at is null and s.status = 'AVAILABLE'), 0::bigint, 'no slot on sale has a claim'
);
-- An unpaid claim by an operator's word.
insert into public.inventory_slots (pool_id) values ('plain_void');
select public.claim_resource_and_queue('plain_void', 'ann');
select results_eq(
  $$ select order_id, payment_key, unit_price from public.void_targets(null, array[(tests.claim_of('plain_void', 'ann')).claim_id]) $$,
  $$ values (null::uuid, null::text, null::bigint) $$, 'a claim without an order has no price'
);
select is(public.finish_void(array[(tests.claim_of('plain_void', 'ann')).claim_id], 'x'), 1, 'and can be voided');

select * from finish();
rollback;

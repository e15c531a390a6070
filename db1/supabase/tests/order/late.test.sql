-- A payment that comes when the hold is over buys other slots where it can, under the same order; else it is sent back.
begin;
select plan(31);

select tests.paid_pool('late', 4, '{"max_quantity": 2, "max_per_user": 2}');
select tests.ask('late', 'ann', 2, 'r1'), tests.ask('late', 'bob');
create temp table ann as select * from public.orders where user_id = 'ann';
create temp table old as select * from public.claims where user_id = 'ann';
select tests.order_over(order_id) from ann;
select is(public.expire_holds(), 1, 'the order is over');
select is(tests.states((select order_id from ann)), 'expired expired', 'and its claims have ended');

create temp table bought as
select s.* from public.settle_payment(tests.payment(tests.order_of('late', 'ann'), 'pi_1'), false) s;
select results_eq(
  'select decision, reason, cardinality(claim_ids) from bought', $$ values ('funds', 'late', 2) $$, 'a late payment buys'
);
create temp table before as select tests.state() as state;
select results_eq(
  $$ select * from public.settle_payment(tests.payment(tests.order_of('late', 'ann'), 'pi_1'), true) $$, 'select * from bought',
  'the second time it is answered the same'
);
select is(tests.state(), (select state from before), 'and nothing changes');
select is(
  tests.settle(tests.payment(tests.order_of('late', 'ann'), 'pi_2')), 'refund second_payment', 'and no second payment buys'
);
select results_eq(
  $$ select n.state::text, n.paid, n.request_id::text, n.order_id from public.claims n where n.claim_id = any (select unnest(claim_ids) from bought) $$,
  $$ select 'queued', true, null::text, order_id from ann, generate_series(1, 2) $$, 'new claims are on their way, under the same order'
);
select bag_eq(
  $$ select n.replaces from public.claims n where n.claim_id = any (select unnest(claim_ids) from bought) $$, 'select claim_id from old',
  'each stands for one that had ended'
);
select bag_eq(
  $$ select n.slot_id from public.claims n where n.claim_id = any (select unnest(claim_ids) from bought) $$, 'select slot_id from old',
  'in the same slots, where they were free'
);
select is(
  (select count(*) from public.claims c join old o on o.claim_id = c.claim_id where c.state = 'expired' and c.freed_at is not null), 2::bigint,
  'a claim never lives again'
);
select is(
  (select count(*) from pgmq.q_intake_queue q where q.message ->> 'order_id' = (select order_id::text from ann)), 2::bigint,
  'each has its message'
);
select results_eq(
  $$ select g."order" ->> 'status', jsonb_array_length(g."order" -> 'claims'), g."order" #>> '{claims,0,state}', g.state
     from ann a, public.get_claim(a.order_id) g $$,
  $$ values ('paid', 2, 'queued', 'expired') $$, 'the old claim shows the order with its new claims'
);
select is(
  (select outcome || ' ' || state from public.claim_batch('{late}', '{ann}', '{r1}')), 'same expired',
  'the request still answers the claim that it made'
);

-- Its own slots are gone, and others are free.
select tests.order_over((tests.order_of('late', 'bob')).order_id);
select public.expire_holds();
update public.engine_config set max_per_user = null where pool_id = 'late';
select tests.ask('late', 'cid');
select is((tests.claim_of('late', 'cid')).slot_id, (tests.claim_of('late', 'bob')).slot_id, 'the slot was sold again');
select is(tests.settle(tests.payment(tests.order_of('late', 'bob'), 'pi_3')), 'funds late', 'a late payment finds another');
select isnt((tests.claim_of('late', 'cid')).slot_id, (
  select slot_id from public.claims where user_id = 'bob' and freed_at is null), 'which is not the other buyer''s');

-- Sold out.
select tests.order_over((tests.order_of('late', 'cid')).order_id);
select public.expire_holds();
select tests.ask('late', 'dan');
select is(tests.settle(tests.payment(tests.order_of('late', 'cid'), 'pi_4')), 'refund sold_out', 'nothing is free');
select is(
  (public.get_claim((tests.order_of('late', 'cid')).order_id))."order" ->> 'status', 'refund_due', 'and the buyer is told so'
);
-- Released.
select public.release_own_claim((tests.order_of('late', 'dan')).order_id, 'dan');
select is(tests.settle(tests.payment(tests.order_of('late', 'dan'), 'pi_5')), 'refund released', 'what was given back is not bought');

-- Limits and opening times hold for late payments too.
select tests.paid_pool('limit', 4, '{"max_per_user": 1}');
select tests.ask('limit', 'ann');
create temp table first as select * from tests.order_of('limit', 'ann');
select tests.order_over(order_id) from first;
select public.expire_holds();
select is(tests.ask('limit', 'ann'), 'claimed', 'the buyer has another slot by now');
select is(
  tests.settle(tests.payment(o, 'pi_6')), 'refund limit', 'and may not have two'
) from public.orders o join first f on f.order_id = o.order_id;
select tests.order_over((tests.order_of('limit', 'ann')).order_id);
select public.expire_holds();
update public.engine_config set is_active = false where pool_id = 'limit';
select is(tests.settle(tests.payment(tests.order_of('limit', 'ann'), 'pi_7')), 'refund closed', 'a closed pool sells nothing');

-- A lying cache: the slot is offered although a claim has it.
select tests.paid_pool('lies', 2);
select tests.ask('lies', 'ann'), tests.ask('lies', 'bob');
select tests.order_over((tests.order_of('lies', 'ann')).order_id);
select public.expire_holds();
update public.inventory_slots set status = 'AVAILABLE' where pool_id = 'lies' and status = 'RESERVED';
update public.inventory_slots s set status = 'RESERVED' from public.claims c
where c.slot_id = s.id and c.user_id = 'ann' and c.pool_id = 'lies';
select is(
  tests.settle(tests.payment(tests.order_of('lies', 'ann'), 'pi_8')), 'refund sold_out', 'a slot that a claim has is not sold twice'
);
select is(
  (select s.status::text from public.inventory_slots s where s.id = (tests.claim_of('lies', 'bob')).slot_id), 'RESERVED',
  'and the cache tells the truth again'
);

-- A paid session kept its slots past the hold; its payment does not buy them.
select tests.paid_pool('kept', 1);
select tests.ask('kept', 'ann');
select tests.checkout(tests.order_of('kept', 'ann'));
select public.close_checkout((tests.order_of('kept', 'ann')).order_id, 1, null, 'complete', 'pi_9');
select is((tests.order_of('kept', 'ann')).hold_until, null, 'the order waits for its decision');
select is(public.expire_holds(), 0, 'and does not end');
select is(
  tests.settle(tests.payment(tests.order_of('kept', 'ann'), 'pi_9', '{"amount": 1}')), 'refund amount', 'which is not in its favour'
);
select is((tests.order_of('kept', 'ann')).hold_until, now(), 'then its hold is over');
select is(public.expire_holds(), 1, 'and it ends');
select is(tests.states((tests.order_of('kept', 'ann')).order_id), 'expired', 'as expired');
select is(
  tests.settle(tests.payment(tests.order_of('kept', 'ann'), 'pi_10')), 'funds late', 'the right payment still finds the slot'
);

select * from finish();
rollback;

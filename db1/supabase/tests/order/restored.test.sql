-- An intake that was restored to an earlier moment learns from the ledger's ticket which order it belongs to, and what bought it.
begin;
select plan(31);

create function pg_temp.id(p_n int) returns uuid language sql as $$ select ('30000000-0000-4000-8000-' || lpad(p_n::text, 12, '0'))::uuid $$;
create function pg_temp.free() returns uuid language sql as $$
  select id from public.inventory_slots where pool_id = 'sale' and status = 'AVAILABLE' order by sale_order desc limit 1
$$;
create function pg_temp.purchase(p_order uuid, p_seats int, p_id text, p_reason text default 'in_time') returns jsonb language sql as $$
  select jsonb_build_object('purchase', jsonb_build_object('order_id', p_order, 'payment_key', 'stripe/' || p_id, 'tenant', 'stripe',
    'livemode', true, 'amount', p_seats * 1000, 'currency', 'EUR', 'seats', p_seats, 'reason', p_reason, 'is_own', true))
$$;
create function pg_temp.fix(p_slot uuid, p_claim uuid, p_user text, p_more jsonb, p_kind text default 'ticket_on_sale') returns text
language sql as $$
  select public.reconcile_fix(p_slot, p_kind, 'olga', jsonb_build_object('claim_id', p_claim, 'user_id', p_user) || p_more)
$$;
create function pg_temp.payment(p_order uuid, p_id text) returns text language sql as $$
  select tests.settle(tests.payment(o, p_id), true) from public.orders o where o.order_id = p_order
$$;

select tests.paid_pool('sale', 20, '{"max_quantity": 2}');

-- An order of two seats that was claimed after the moment.
create temp table lost as select pg_temp.free() as slot_id;
select is(pg_temp.fix(slot_id, pg_temp.id(1), 'ann', pg_temp.purchase(pg_temp.id(1), 2, 'pi_1')), 'fixed', 'a ticket of a lost order') from lost;
select results_eq(
  $$ select pool_id, user_id::text, verified, seats, unit_price, currency, tenant, livemode, payment_key, hold_until, intake.order_status(o)
     from public.orders o where order_id = pg_temp.id(1) $$,
  $$ values ('sale', 'ann', true, 2, 1000::bigint, 'eur', 'stripe', true, 'stripe/pi_1', null::timestamptz, 'paid') $$, 'the order is there, and paid'
);
select is(pg_temp.fix(pg_temp.free(), pg_temp.id(2), 'ann', pg_temp.purchase(pg_temp.id(1), 2, 'pi_1')), 'fixed', 'its other ticket');
select is(tests.states(pg_temp.id(1)), 'committed committed', 'both are claims of the order');
select is(pg_temp.payment(pg_temp.id(1), 'pi_1'), 'funds in_time', 'the payment has its decision');
select results_eq(
  $$ select claim_id, payment_key, unit_price from public.void_targets(tests.payment(tests.order_of('sale', 'ann'), 'pi_1'), null) $$,
  $$ values (pg_temp.id(1), 'stripe/pi_1', 1000::bigint), (pg_temp.id(2), 'stripe/pi_1', 1000) $$, 'a refund takes both back'
);
create temp table before as select tests.state() as state;
select is(
  pg_temp.fix(slot_id, pg_temp.id(1), 'ann', pg_temp.purchase(pg_temp.id(1), 2, 'pi_1'), 'ticket_without_claim'), 'unchanged', 'a second time'
) from lost;
select is(tests.state(), (select state from before), 'nothing changes');
select ok(
  not exists (select from audit.audit_logs where details #> '{ticket,purchase}' is not null), 'the audit log has the ticket without its purchase'
);

-- What is not known, or is known otherwise.
select is(pg_temp.fix(pg_temp.free(), pg_temp.id(3), 'bob', '{}'), 'fixed', 'a ticket that no payment bought');
select is((select order_id from public.claims where claim_id = pg_temp.id(3)), null, 'has no order');
select is(
  tests.settle(tests.payment(jsonb_populate_record(tests.order_of('sale', 'ann'), jsonb_build_object('order_id', pg_temp.id(4))), 'pi_4'), true),
  'refund unknown_order', 'a payment was given back because its order is lost'
);
select is(pg_temp.fix(pg_temp.free(), pg_temp.id(4), 'ann', pg_temp.purchase(pg_temp.id(4), 1, 'pi_4')), 'fixed', 'its ticket');
select is((select order_id from public.claims where claim_id = pg_temp.id(4)), null, 'then has no order: an operator decides');
select ok(not exists (select from public.orders where order_id = pg_temp.id(4)), 'and none is made');

-- A late payment bought another claim of an order that had expired.
select tests.ask('sale', u) from unnest('{cid,dan,eve,fay}'::text[]) u;
select tests.order_over((tests.order_of('sale', 'cid')).order_id, '1 hour');
select public.expire_holds();
select is(
  pg_temp.fix(pg_temp.free(), pg_temp.id(5), 'cid', pg_temp.purchase((tests.order_of('sale', 'cid')).order_id, 1, 'pi_5', 'late')), 'fixed',
  'a ticket of an order that has expired here'
);
select is(intake.order_status(tests.order_of('sale', 'cid')), 'paid', 'the order is paid');
select is(
  (select string_agg(c ->> 'claim_id', ' ') from jsonb_array_elements(intake.order_claims((tests.order_of('sale', 'cid')).order_id)) c),
  pg_temp.id(5)::text, 'and its buyer sees the claim that it bought'
);
-- Here its first claim is held still.
create temp table held as select c.* from public.claims c where c.user_id in ('dan', 'eve', 'fay');
select is(
  pg_temp.fix(pg_temp.free(), pg_temp.id(6), 'dan', pg_temp.purchase((tests.order_of('sale', 'dan')).order_id, 1, 'pi_6', 'late')), 'fixed',
  'a ticket of an order that is held here'
);
select is(
  (select c.state::text || ' ' || s.status::text from held h join public.claims c using (claim_id) join public.inventory_slots s on s.id = h.slot_id
   where h.user_id = 'dan'),
  'expired AVAILABLE', 'what was held is on sale'
);
select is(pg_temp.payment((tests.order_of('sale', 'dan')).order_id, 'pi_6'), 'funds late', 'and is not bought a second time');
select is(
  (select pg_temp.fix(h.slot_id, pg_temp.id(7), 'eve', pg_temp.purchase(h.order_id, 1, 'pi_7', 'late'), 'ticket_of_another_claim')
   from held h where h.user_id = 'eve'), 'fixed', 'a ticket for the very slot that is held'
);
select is((select c.state::text from public.claims c join held h using (claim_id) where h.user_id = 'eve'), 'expired', 'which was over');
select is(
  (select c.claim_id || ' ' || s.status::text from held h join public.claims c using (slot_id) join public.inventory_slots s on s.id = h.slot_id
   where h.user_id = 'eve' and c.freed_at is null),
  pg_temp.id(7) || ' CONSUMED', 'and is sold to the ticket''s claim'
);
select is(
  (select pg_temp.fix(h.slot_id, pg_temp.id(8), 'fay', pg_temp.purchase(h.order_id, 1, 'pi_8'), 'ticket_of_another_claim')
   from held h where h.user_id = 'fay'), 'unchanged', 'a payment in time bought what is held, and ends nothing'
);
select is(tests.states((tests.order_of('sale', 'fay')).order_id), 'held', 'it is held');
select is((select count(*)::int from public.orders where payment_key = 'stripe/pi_8'), 0, 'and not paid');

-- A ticket for a slot that another claim has changes nothing, not even what it would replace.
select tests.ask('sale', 'gus');
update before set state = tests.state();
select is(
  (select pg_temp.fix(slot_id, pg_temp.id(9), 'gus', pg_temp.purchase((tests.order_of('sale', 'gus')).order_id, 1, 'pi_9', 'late')) from lost),
  'unchanged', 'a late payment''s ticket for a slot that is sold'
);
select is(tests.states((tests.order_of('sale', 'gus')).order_id), 'held', 'what its order holds is held');
select is(tests.state(), (select state from before), 'and nothing else has changed');
select is(
  pg_temp.fix(pg_temp.free(), pg_temp.id(9), 'gus', pg_temp.purchase((tests.order_of('sale', 'gus')).order_id, 1, 'pi_9', 'late')), 'fixed',
  'for a free slot it is replaced'
);

select * from finish();
rollback;

-- Operators see all of an order; reconcile leaves what waits for its payment alone, and finishes a void that was cut short.
begin;
select plan(16);

select tests.empty_queues();
select tests.paid_pool('look', 6, '{"max_quantity": 2}');
update public.inventory_slots set label = 'seat' where pool_id = 'look';
select tests.ask('look', 'ann', 2), tests.ask('look', 'bob');
select is(public.order_details(gen_random_uuid()), null, 'no such order');
select tests.checkout(tests.order_of('look', 'ann'));
select tests.settle(tests.payment(tests.order_of('look', 'ann'), 'pi_1', '{"amount": 1}'));
select tests.settle(tests.payment(tests.order_of('look', 'ann'), 'pi_2'));
create temp table details as select public.order_details((tests.order_of('look', 'ann')).order_id) as d;
select results_eq(
  $$ select d #>> '{order,status}', (d #>> '{order,amount}')::int, jsonb_array_length(d -> 'claims'), d #>> '{claims,0,label}',
       d #>> '{checkouts,0,state}', jsonb_array_length(d -> 'decisions') from details $$,
  $$ values ('paid', 2000, 2, 'seat', 'creating', 2) $$, 'order, claims, checkouts and decisions'
);
select is((select d::text ~ 'lease_token' from details), false, 'no lease is shown');
select is(
  (select g."order" from public.get_claim((tests.order_of('look', 'bob')).order_id) g),
  (select jsonb_build_object('order_id', o.order_id, 'status', 'held', 'amount', 1000, 'currency', 'eur', 'unit_price', 1000,
     'seats', 1, 'hold_until', o.hold_until, 'claims', jsonb_build_array(jsonb_build_object(
       'claim_id', c.claim_id, 'resource_id', c.slot_id, 'state', 'held', 'label', 'seat')))
   from tests.order_of('look', 'bob') o join public.claims c on c.order_id = o.order_id),
  'a buyer sees what there is to pay, until when, and for what'
);
select is(
  (select hold_until from public.get_claim((tests.order_of('look', 'bob')).order_id)), (tests.order_of('look', 'bob')).hold_until,
  'the claim''s hold is the order''s'
);
select is(
  (select s."order" ->> 'status' from public.claim_search(p_user_id => 'bob', p_pool_id => 'look') s), 'held', 'a search shows it as well'
);

-- Reconcile.
select is(
  (select r.claim_state || ' ' || r.has_message from public.reconcile_claims(
     p_slot_ids => array[(tests.claim_of('look', 'bob')).slot_id]) r), 'held true', 'what waits for its payment misses no message'
);
create function pg_temp.fix(p_user text, p_kind text) returns text
language sql as $$
  select public.reconcile_fix(c.slot_id, p_kind, 'olga', jsonb_build_object('claim_id', c.claim_id, 'user_id', c.user_id))
  from tests.claim_of('look', p_user) c;
$$;
select is(pg_temp.fix('bob', 'claim_without_message'), 'unchanged', 'and gets none');
select is(pg_temp.fix('bob', 'ticket_without_claim'), 'unchanged', 'a ticket does not pay for it');
select is(pg_temp.fix('bob', 'void_unfinished'), 'unchanged', 'nor does a tombstone end it');
select is(pg_temp.fix('ann', 'void_unfinished'), 'fixed', 'a claim with a tombstone is voided');
select is((select count(*) from public.claims where user_id = 'ann' and state = 'voided'), 1::bigint, 'that one alone');
select is(
  (select public.reconcile_fix(c.slot_id, 'ticket_without_claim', 'olga', jsonb_build_object('claim_id', c.claim_id, 'user_id', c.user_id))
   from public.claims c where c.user_id = 'ann' and c.state = 'voided'), 'unchanged', 'a void is for ever'
);
-- The crash that empties the cache.
truncate public.inventory_slots;
select intake.rebuild_inventory('look');
select results_eq(
  $$ select s.status::text, count(*)::int from public.inventory_slots s where s.pool_id = 'look' group by 1 order by 1 $$,
  $$ values ('AVAILABLE', 4), ('RESERVED', 2) $$, 'a rebuild keeps held and paid slots, and sells voided ones'
);
select is(public.reap_orphaned_slots('-1 hours'), 0, 'no slot of an order is an orphan');
select is(
  (select p.reserved::int from public.pool_list('look') p), 2, 'the console counts held slots as reserved'
);

select * from finish();
rollback;

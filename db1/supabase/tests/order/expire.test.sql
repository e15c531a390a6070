-- An order whose hold is over ends once its session is closed, or when its grace has run out; all of its claims together.
begin;
select plan(22);

select tests.paid_pool('end', 9, '{"max_quantity": 2}');
select tests.ask('end', 'ann', 2), tests.ask('end', 'bob'), tests.ask('end', 'cid'), tests.ask('end', 'dan');
select is(public.expire_holds(), 0, 'no hold is over');
select tests.checkout(tests.order_of('end', 'bob')), tests.checkout(tests.order_of('end', 'cid'));
select tests.order_over((tests.order_of('end', u)).order_id) from unnest('{ann,bob}'::text[]) u;
select tests.order_over((tests.order_of('end', 'cid')).order_id, '59 seconds');

create temp table slots as select slot_id from public.claims where pool_id = 'end' and user_id = 'ann';
select is(public.expire_holds(), 1, 'an order without a session ends');
select is(tests.states((tests.order_of('end', 'ann')).order_id), 'expired expired', 'with all of its claims');
select is((tests.order_of('end', 'ann')).ended_at, now(), 'the order knows when');
select is_empty(
  $$ select from public.inventory_slots s join slots o on o.slot_id = s.id where s.status <> 'AVAILABLE' $$, 'their slots are on sale'
);
select is((tests.claim_of('end', 'ann')).end_reason, 'hold expired', 'the claims say why');
select is(public.expire_holds(), 0, 'a second run finds nothing');
select is(tests.states((tests.order_of('end', 'bob')).order_id), 'held', 'an open session keeps its slot');
select is(tests.states((tests.order_of('end', 'cid')).order_id), 'held', 'until the last second of the grace');
-- A checkout that began after the order was found due, and before it was locked.
select is(
  intake.end_orders(array[(tests.order_of('end', 'bob')).order_id], array[(tests.order_of('end', 'bob')).order_id], '{}'), '{}'::uuid[],
  'an order is asked for its session again under the lock'
);
select is((tests.order_of('end', 'bob')).ended_at, null, 'and does not end');
update public.orders set grace_until = now() where user_id = 'cid' and pool_id = 'end';
select is(public.expire_holds(), 1, 'then it is not waited for any longer');
select is(tests.states((tests.order_of('end', 'cid')).order_id), 'expired', 'and ends');
select public.close_checkout((tests.order_of('end', 'bob')).order_id, 1, null, 'expired', null);
select is(public.expire_holds(), 1, 'a session that is closed');
select is(tests.states((tests.order_of('end', 'bob')).order_id), 'expired', 'lets its order end');
select is(tests.states((tests.order_of('end', 'dan')).order_id), 'held', 'an order whose hold runs stays');

-- Neither kind waits for the other.
select tests.paid_pool('many', 20);
select count(tests.ask('many', 'u' || i)) from generate_series(1, 20) i;
insert into public.engine_config (pool_id, hold_sec) values ('auto_many', 60);
insert into public.inventory_slots (pool_id) select 'auto_many' from generate_series(1, 20);
select count(tests.ask('auto_many', 'u' || i)) from generate_series(1, 20) i;
update public.orders set hold_until = now() where pool_id = 'many';
update public.claims set hold_until = now() - interval '1 second' where pool_id = 'auto_many';
select is(public.expire_holds(10), 10, 'a part is as large as it was asked for');
select results_eq(
  $$ select pool_id, count(*)::int from public.claims where pool_id in ('many', 'auto_many') and freed_at is not null group by 1 order by 1 $$,
  $$ values ('auto_many', 5), ('many', 5) $$, 'half of each kind'
);
select is(public.expire_holds(30), 30, 'what one kind leaves is the other''s');
select is(public.expire_holds(30), 0, 'and nothing is left');

-- A pool whose cache is lost waits for its rebuild.
select tests.order_over((tests.order_of('end', 'dan')).order_id);
delete from intake.pool_marks where pool_id = 'end';
select is(public.expire_holds(), 0, 'an order of a pool without its cache waits');
select intake.rebuild_inventory('end');
select is(public.expire_holds(), 1, 'and ends after the rebuild');

select * from finish();
rollback;

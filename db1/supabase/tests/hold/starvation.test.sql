-- Claims that only begin to end, because the bridge has had them, do not stand in the way of those that end at once.
begin;
select plan(4);

insert into public.engine_config (pool_id, hold_sec) values ('starving', 60);
insert into public.inventory_slots (pool_id) select 'starving' from generate_series(1, 12);
select count(*) from public.claim_batch(
  array_fill('starving'::text, array[10]), array_fill('early'::text, array[10]), array_fill(null::text, array[10])
);
select count(*) from public.intake_queue_read(45, 10);
select count(*) from public.claim_batch(
  array_fill('starving'::text, array[2]), array_fill('late'::text, array[2]), array_fill(null::text, array[2])
);
update public.claims set hold_until = now() - interval '1 hour' where user_id = 'early';
update public.claims set hold_until = now() - interval '1 minute' where user_id = 'late';

select results_eq(
  $$ select public.expire_holds(5) from generate_series(1, 4) $$, $$ values (5), (5), (2), (0) $$,
  'each is due once, the longest overdue first'
);
select is((select count(*)::int from public.claims where user_id = 'late' and state = 'expired'), 2, 'two ended');
select is(
  (select count(*)::int from public.claims where user_id = 'early' and state = 'queued' and end_as = 'expired'), 10,
  'ten wait for the ledger'
);
select is(
  (select count(*)::int from public.inventory_slots where pool_id = 'starving' and status = 'RESERVED'), 10,
  'and hold their slots'
);

select * from finish();
rollback;

-- Claims that cannot expire, because the bridge has had them, do not stand in the way of those that can.
begin;
select plan(2);

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

select is(public.expire_holds(5), 2, 'the two that can expire do, although ten older ones cannot');
select is(
  (select count(*)::int from public.claims where user_id = 'early' and state = 'queued'), 10, 'the ten stay'
);

select * from finish();
rollback;

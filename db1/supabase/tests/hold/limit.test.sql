-- A run expires no more than it was asked to, the longest overdue first.
begin;
select plan(5);

insert into public.engine_config (pool_id, hold_sec) values ('backlog', 60);
insert into public.inventory_slots (pool_id) select 'backlog' from generate_series(1, 3);
select count(*) from public.claim_batch(
  array_fill('backlog'::text, array[3]), array['one', 'two', 'three'], array['1', '2', '3']
);
update public.claims set hold_until = now() - request_id::int * interval '1 hour' where pool_id = 'backlog';

select is(public.expire_holds(2), 2, 'a run of two expires two');
select results_eq(
  $$ select user_id::text from public.claims where pool_id = 'backlog' and state = 'queued' $$, array['one'],
  'the longest overdue go first'
);
select is(public.expire_holds(2), 1, 'the next run takes the rest');
select is(
  (select count(*)::int from public.inventory_slots where pool_id = 'backlog' and status = 'AVAILABLE'), 3,
  'all slots are on sale again'
);
select is_empty(
  $$ select from pgmq.q_intake_queue where message ->> 'pool_id' = 'backlog' $$, 'no message is left over'
);

select * from finish();
rollback;

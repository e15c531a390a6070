-- A snapshot tells the truth about each active pool, and about the whole queue.
begin;
select plan(4);

insert into public.engine_config (pool_id, is_active) values ('m_full', true), ('m_bare', true), ('m_off', false);
insert into public.inventory_slots (pool_id)
select pool from (values ('m_full'), ('m_off'), ('m_no_config')) p (pool), generate_series(1, 4);
select public.claim_resource_and_queue('m_full', 'ann');
select public.claim_resource_and_queue('m_full', 'bob');
select public.claim_resource_and_queue('m_no_config', 'cid');
update public.inventory_slots set status = 'CONSUMED' where pool_id = 'm_full' and locked_by = 'bob';
select pgmq.send('intake_dlq', '{}');

select public.snapshot_engine_metrics();
select bag_eq(
  $$ select pool_id, available_slots, reserved_slots, consumed_slots from public.engine_metrics
     where captured_at = now() and pool_id like 'm\_%' $$,
  $$ values ('m_full', 2, 1, 1), ('m_bare', 0, 0, 0) $$,
  'active pools are counted, also without slots; inactive and unconfigured ones are not'
);
select is(
  (select available_slots + reserved_slots + consumed_slots from public.engine_metrics
   where captured_at = now() and pool_id = 'm_full'), 4,
  'the counts of a pool add up to its capacity'
);
select results_eq(
  $$ select distinct queue_depth, dlq_depth from public.engine_metrics where captured_at = now() $$,
  $$ select (select count(*)::int from pgmq.q_intake_queue), (select count(*)::int from pgmq.q_intake_dlq) $$,
  'the depths are those of the whole queue and of all dead letters'
);
select public.snapshot_engine_metrics();
select is(
  (select count(*)::int from public.engine_metrics where captured_at = now() and pool_id = 'm_full'), 2,
  'a second snapshot is a second row'
);

select * from finish();
rollback;

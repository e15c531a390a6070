-- What is written every minute does not grow for ever.
begin;
select plan(4);

insert into public.engine_metrics (captured_at, pool_id, available_slots, reserved_slots, consumed_slots, queue_depth)
select now() - age, 'purged', 0, 0, 0, 0 from unnest(array['0', '29 days 23 hours', '30 days 1 hour', '1 year']::interval[]) age;
select matches(
  (select command from cron.job where jobname = 'purge_cron_history'), 'intake\.purge_history', 'a job does it every night'
);
select is(intake.purge_history(), 2, 'snapshots older than 30 days are deleted');
select is(
  (select min(captured_at) from public.engine_metrics where pool_id = 'purged'), now() - interval '29 days 23 hours',
  'younger ones stay'
);
select is(intake.purge_history(), 0, 'a second run finds nothing');

select * from finish();
rollback;

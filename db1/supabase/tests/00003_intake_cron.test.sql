-- The reaper's rule, and the jobs that run by themselves.
begin;
select plan(16);

select has_function('public', 'reap_orphaned_slots', array['interval'], 'reap_orphaned_slots(interval) exists');
select function_returns('public', 'reap_orphaned_slots', array['interval'], 'integer', 'the reaper returns a count');

insert into public.inventory_slots (id, pool_id, status, locked_by, locked_at) values
  ('00000000-0000-4000-8000-000000000001', 'cron', 'RESERVED', 'gone', now() - interval '11 minutes'),
  ('00000000-0000-4000-8000-000000000002', 'cron', 'RESERVED', 'waiting', now() - interval '11 minutes'),
  ('00000000-0000-4000-8000-000000000003', 'cron', 'RESERVED', 'fresh', now() - interval '9 minutes');
select public.intake_queue_send(
  '{"pool_id": "cron", "resource_id": "00000000-0000-4000-8000-000000000002", "user_id": "waiting"}'
);

select is(public.reap_orphaned_slots(interval '10 minutes'), 1, 'the reaper returns how many slots it freed');
select results_eq(
  $$ select status::text, locked_by, locked_at
     from public.inventory_slots where id::text like '%0001' and pool_id = 'cron' $$,
  $$ values ('AVAILABLE', null::text, null::timestamptz) $$,
  'an old RESERVED slot without a message is AVAILABLE again and has no holder'
);
select results_eq(
  $$ select status::text, locked_by
     from public.inventory_slots where id::text like '%0002' and pool_id = 'cron' $$,
  $$ values ('RESERVED', 'waiting') $$,
  'an old RESERVED slot with a message is not reaped'
);
select results_eq(
  $$ select status::text, locked_by
     from public.inventory_slots where id::text like '%0003' and pool_id = 'cron' $$,
  $$ values ('RESERVED', 'fresh') $$,
  'a slot RESERVED for less than the threshold is not reaped'
);
select is(public.reap_orphaned_slots(), 0, 'a second run finds nothing, and ten minutes is the default');

select bag_eq(
  $$ select jobname::text, schedule, active from cron.job
     where command ~ '(public|intake|audit)\.' $$,
  $$ values
    ('metrics_snapshot', '* * * * *', true),
    ('reap_orphaned_slots', '*/2 * * * *', true),
    ('expire_holds', '* * * * *', true),
    ('rebuild_lost_pools', '* * * * *', true),
    ('drain_queue_trigger', '* * * * *', true),
    ('drain_queue_answer', '* * * * *', true),
    ('seal_audit', '* * * * *', true),
    ('retention', '17 * * * *', true) $$,
  'these jobs are scheduled, and no others'
);
select matches(
  (select command from cron.job where jobname = 'drain_queue_trigger'), 'net\.http_post',
  'drain_queue_trigger says that it goes out by net.http_post'
);

-- Each job's command is run as cron would run it.
create function pg_temp.run_job(p_name text)
returns void
language plpgsql
as $$
begin
  execute (select j.command from cron.job j where j.jobname = p_name);
end
$$;
select lives_ok(
  format('select pg_temp.run_job(%L)', j.jobname), format('the command of %s runs', j.jobname)
)
from cron.job j
where j.jobname in
  ('metrics_snapshot', 'reap_orphaned_slots', 'drain_queue_trigger', 'drain_queue_answer')
order by j.jobname;
-- pg_cron calls procedures that commit, which no test can inside its transaction; the stand-in calls the functions below them.
select matches(
  j.command, format('^(call %s|select %s)\(', p.procedure, p.function), format('%s does it in parts', j.jobname)
)
from cron.job j
join (values
  ('expire_holds', 'intake.expire_due_holds', 'public.expire_holds'),
  ('rebuild_lost_pools', 'intake.rebuild_lost_pools', 'intake.rebuild_lost_pool'),
  ('retention', 'audit.prune_all', 'public.prune_step')
) p (name, procedure, function) on p.name = j.jobname
order by j.jobname;

select * from finish();
rollback;

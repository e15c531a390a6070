-- What is written again and again does not grow for ever.
begin;
select plan(15);

-- Each call removes things of one kind.
create function pg_temp.pruned()
returns text
language plpgsql
as $$
declare
  v_all text := '';
  v_part text;
begin
  loop
    select what || ' ' || gone into v_part from public.prune_step(2);
    exit when v_part is null;
    v_all := v_all || v_part || ', ';
  end loop;
  return v_all;
end
$$;

delete from cron.job_run_details;
insert into public.engine_metrics (captured_at, pool_id, available_slots, reserved_slots, consumed_slots, queue_depth)
select now() - age, 'purged', 0, 0, 0, 0 from unnest(array['0', '29 days 23 hours', '30 days 1 hour', '1 year']::interval[]) age;
select pgmq.archive('intake_dlq', pgmq.send('intake_dlq', '{"user_id": "ann"}')) from generate_series(1, 3);
update pgmq.a_intake_dlq set archived_at = now() - interval '91 days'
where msg_id in (select msg_id from pgmq.a_intake_dlq order by msg_id desc limit 2);

select results_eq(
  'select what, keep_days from public.retention_rules()',
  $$ values ('archived_letters', 90), ('metrics', 30), ('cron_runs', 7), ('samples', 30) $$, 'these are the rules of a new intake'
);
select is(pg_temp.pruned(), 'archived_letters 2, metrics 2, ', 'what is older goes, in parts');
select is(
  (select min(captured_at) from public.engine_metrics where pool_id = 'purged'), now() - interval '29 days 23 hours',
  'younger snapshots stay'
);
select is((select count(*)::int from pgmq.a_intake_dlq), 1, 'and younger letters');
select is(pg_temp.pruned(), '', 'a second run finds nothing');

select is(public.set_retention('metrics', 7, 'ann', 'small disk'), true, 'a rule can be changed');
select is(public.set_retention('metrics', 7, 'ann'), false, 'the second time it is as it was');
select results_eq(
  $$ select actor, subject, reason, details from audit.audit_logs where action = 'retention_change' $$,
  $$ values ('ann', 'retention metrics', 'small disk', '{"before": 30, "after": 7}'::jsonb) $$, 'with one row in the log'
);
select is(pg_temp.pruned(), 'metrics 1, ', 'which counts at once');
select public.set_retention('metrics', null, 'ann');
update public.engine_metrics set captured_at = now() - interval '10 years' where pool_id = 'purged';
select is(pg_temp.pruned(), '', 'without a number all is kept');
select throws_ok($$ select public.set_retention('metrics', 0, 'ann') $$, 'SL001', null, 'no days are no rule');
select throws_ok($$ select public.set_retention('claims', 1, 'ann') $$, 'SL001', null, 'nor is there one for claims');
update audit.retention set keep_days = 3 where what = 'cron_runs';
set constraints all immediate;
select is(
  (select details from audit.audit_logs where action = 'rule_change' and subject = 'retention cron_runs') -> 'after',
  '{"keep_days": 3}', 'a rule that is changed by hand is noted'
);
select matches((select command from cron.job where jobname = 'retention'), 'prune_(all|step)', 'a job does it');

select is(current_setting('synchronous_commit'), 'off', 'the transaction of a part does not wait for the disk');

select * from finish();
rollback;

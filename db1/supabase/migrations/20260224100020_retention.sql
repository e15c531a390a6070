-- RETENTION: what is kept for a while and not for ever. Keys stay: claims, slots, and what operators asked for under a request_id.

-- One row for each kind of thing that is not kept for ever, in the order in which it is looked at. keep_days null: for ever.
create table audit.retention (
  what text primary key,
  turn int not null,
  keep_days int,
  about text not null,
  constraint keep_days_in_range check (keep_days between 1 and 36500)
);

insert into audit.retention (turn, what, keep_days, about) values
  (1, 'archived_letters', 90, 'dead letters that were replayed or discarded, in their last form'),
  (2, 'metrics', 30, 'snapshots of engine_metrics'),
  (3, 'cron_runs', 7, 'cron''s own history'),
  (4, 'samples', 30, 'samples of every minute and marks, which the console draws, and issues that are resolved');

create trigger retention_is_noted
  after insert or update or delete on audit.retention
  for each row execute function audit.note_rule('retention', 'what');

-- Promise: up to p_limit things of this kind that are older than the rule says are deleted; returns how many. Second call: the next
-- ones, then 0. Locks: the rows deleted.
create function audit.prune_kind(p_rule audit.retention, p_limit int) returns int
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_before timestamptz := now() - make_interval(days => p_rule.keep_days);
  v_archive text;
  v_gone int := 0;
begin
  case p_rule.what
    when 'archived_letters' then
      foreach v_archive in array '{a_intake_queue,a_intake_dlq,a_event_inbox,a_event_inbox_dlq}'::text[] loop
        execute format('delete from pgmq.%1$I a where a.msg_id = any (array(
          select o.msg_id from pgmq.%1$I o where o.archived_at < $1 order by o.archived_at limit $2))', v_archive)
        using v_before, p_limit;
        get diagnostics v_gone = row_count;
        exit when v_gone > 0;
      end loop;
    when 'metrics' then
      delete from public.engine_metrics m where m.id = any (array(
        select o.id from public.engine_metrics o where o.captured_at < v_before order by o.id limit p_limit));
      get diagnostics v_gone = row_count;
    when 'cron_runs' then
      delete from cron.job_run_details d where d.runid = any (array(
        select o.runid from cron.job_run_details o where o.end_time < v_before order by o.runid limit p_limit));
      get diagnostics v_gone = row_count;
    when 'samples' then
      delete from audit.minute_samples m where m.at = any (array(
        select o.at from audit.minute_samples o where o.at < v_before order by o.at limit p_limit));
      get diagnostics v_gone = row_count;
      if v_gone = 0 then
        delete from audit.marks m where m.id = any (array(
          select o.id from audit.marks o where o.began_at < v_before and o.ended_at < v_before order by o.began_at limit p_limit));
        get diagnostics v_gone = row_count;
      end if;
      if v_gone = 0 then
        delete from audit.issues i where i.resolved_at < v_before and i.last_seen_at < v_before;
        get diagnostics v_gone = row_count;
      end if;
    else
      null;
  end case;
  return v_gone;
end
$$;

-- Promise: up to p_limit things of the first kind that has some are gone: which kind, and how many; no row where all that is old
-- is gone, or another session is at it. Second call: the next ones. Locks: one prune at a time (advisory, not waited for) → those of
-- audit.prune_kind. Its transaction does not wait for the disk: what a crash brings back is pruned again, and deliveries wait for one
-- sync less. Definer: service_role has no rights to the tables.
create function public.prune_step(p_limit int default 200) returns table (what text, gone int)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_rule audit.retention;
begin
  if not pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('sluice retention', 0)) then
    return;
  end if;
  perform pg_catalog.set_config('synchronous_commit', 'off', true);
  for v_rule in select r.* from audit.retention r order by r.turn loop
    gone := audit.prune_kind(v_rule, p_limit);
    if gone > 0 then
      what := v_rule.what;
      return next;
      return;
    end if;
  end loop;
end
$$;

-- Promise: all that is old is gone. For pg_cron; the Node scheduler calls the function (src/scheduler/retention.ts). A procedure
-- without settings of its own, because it commits after each part. Second call: does nothing. Locks: those of prune_step, one
-- part at a time.
create procedure audit.prune_all()
language plpgsql as $$
begin
  while exists (select from public.prune_step()) loop
    commit;
  end loop;
end
$$;

-- Promise: what is kept for how long, in its order. Second call: the same. Locks: none. Definer, as prune_step.
create function public.retention_rules() returns table (what text, keep_days int, about text)
language sql stable security definer set search_path = '' as $$
  select r.what, r.keep_days, r.about from audit.retention r order by r.turn;
$$;

-- Promise: this kind is kept for so many days from now on, or (null) for ever, with an audit row; true where that is new. Raises
-- SL001 for an unknown kind, or a number outside 1 to 36500. Second call: false, no audit row. Locks: the rule.
-- For the owner only: no role is granted it.
create function public.set_retention(p_what text, p_keep_days int, p_actor text, p_reason text default null) returns boolean
language plpgsql set search_path = '' as $$
declare
  v_old audit.retention := (select r from audit.retention r where r.what = p_what for update);
begin
  if v_old.what is null then
    raise exception '% has no retention', p_what
      using errcode = 'SL001', hint = 'known are ' || (select string_agg(r.what, ', ' order by r.turn) from audit.retention r);
  elsif v_old.keep_days is not distinct from p_keep_days then
    return false;
  end if;
  update audit.retention r set keep_days = p_keep_days where r.what = p_what;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'retention_change', 'retention ' || p_what, p_reason,
    jsonb_build_object('before', v_old.keep_days, 'after', p_keep_days));
  return true;
exception
  when check_violation then
    raise exception 'a number of days is 1 to 36500' using errcode = 'SL001', hint = 'null keeps it for ever';
end
$$;

-- As expire_holds: the stand-in does one part an hour, and the Node scheduler the rest.
select cron.schedule('retention', '17 * * * *', case
  when pg_catalog.to_regproc('cron.run_job') is null then 'call audit.prune_all()'
  else 'select public.prune_step(1000)'
end);

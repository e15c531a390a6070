-- RETENTION: what is kept for a while and not for ever. Keys stay: what was pruned is still known when it is delivered again.

-- One row for each kind of thing that is not kept for ever, in the order in which it is looked at. keep_days null: for ever.
create table audit.retention (
  what text primary key,
  turn int not null,
  keep_days int,
  about text not null,
  constraint keep_days_in_range check (keep_days between 1 and 36500)
);

insert into audit.retention (turn, what, keep_days, about) values
  (1, 'webhook_payloads', 90, 'payloads and raw bodies of events that have ended; keep_payload_days of an endpoint goes before it'),
  (2, 'side_effects', 90, 'payloads of webhook_side_effects'),
  (3, 'calls', 90, 'payloads of calls'),
  (4, 'samples', 30, 'samples of every minute and marks, which the console draws, and issues that are resolved');

create index side_effects_with_payload on public.webhook_side_effects (created_at) where payload is not null;
create index calls_with_payload on public.calls (received_at) where payload is not null;

create trigger retention_is_noted
  after insert or update or delete on audit.retention
  for each row execute function audit.note_rule('retention', 'what');

-- Promise: up to p_limit things of this kind that are older than the rule says have lost their payload, or are gone; returns how many. Second call:
-- the next ones, then 0. Locks: the rows; what others have locked is skipped.
create function audit.prune_kind(p_rule audit.retention, p_limit int) returns int
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_before timestamptz := now() - make_interval(days => p_rule.keep_days);
  v_gone int := 0;
begin
  case p_rule.what
    when 'webhook_payloads' then
      v_gone := webhook.prune_payloads(null, p_limit);
    when 'side_effects' then
      update public.webhook_side_effects s set payload = null where s.id = any (array(
        select o.id from public.webhook_side_effects o where o.payload is not null and o.created_at < v_before
        order by o.created_at limit p_limit for update skip locked));
      get diagnostics v_gone = row_count;
    when 'calls' then
      update public.calls c set payload = null where c.id = any (array(
        select o.id from public.calls o where o.payload is not null and o.received_at < v_before
        order by o.received_at limit p_limit for update skip locked));
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

-- Node's workers prune without pg_cron.
do $$
begin
  if pg_catalog.to_regnamespace('cron') is not null and pg_catalog.to_regproc('cron.run_job') is null then
    perform cron.schedule('retention', '23 * * * *', 'call audit.prune_all()');
  end if;
end
$$;

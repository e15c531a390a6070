-- CONSOLE: what operators watch.

-- Promise: what waits of the webhooks, looked at one by one up to 10000 and no further: backlog, oldest_sec (of those
-- that are due first in each lane), dead_letters, payments_without_user, silent_disputes (payments with one), recorded (events ever
-- given a number, from its sequence). Second call: the same.
-- Locks: none. Definer, as all that follow: service_role need not have rights to the tables.
create function public.webhook_sample() returns jsonb
language sql stable security definer set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off as $$
  select jsonb_build_object(
    'backlog', (
      select count(*) from (
        select from public.webhook_events e where e.status in ('pending', 'failed', 'processing') limit 10000
      ) waiting
    ),
    'oldest_sec', (
      select greatest(0, round(extract(epoch from clock_timestamp() - min(w.received_at)), 1)) from (
        select f.received_at from webhook.open_lanes() l
        cross join lateral (
          select e.received_at from public.webhook_events e
          where e.lane = l.lane and e.status in ('pending', 'failed', 'processing')
          order by e.next_attempt_at, e.arrival limit 100
        ) f
      ) w having count(*) > 0
    ),
    'dead_letters', (
      select count(*) from (select from public.webhook_events e where e.status = 'dead_letter' limit 10000) dead
    ),
    'payments_without_user', webhook.count_payments_without_user(),
    'silent_disputes', (
      select count(*) from (select from public.payments p where p.silent_disputes is not null limit 10000) silent
    ),
    'recorded', (select case when s.is_called then s.last_value else 0 end from webhook.arrival_seq s)
  );
$$;

-- Promise: one look at the ledger: tickets, counted while the table is small (a few milliseconds), else what the statistics
-- say; webhooks as public.webhook_sample; orders as public.ledger_order_metrics; calls ever recorded, from the statistics, which lag by a second or two; how many
-- connections webhook workers hold. Made to be asked once a second. Second call: the same. Locks: none.
create function public.ledger_sample() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare
  c_small_bytes constant bigint := 4 * 1024 * 1024;
  v_tickets bigint;
begin
  if pg_catalog.pg_relation_size('public.confirmed_tickets') <= c_small_bytes then
    select count(*) into v_tickets from public.confirmed_tickets;
  else
    select greatest(s.n_live_tup, c.reltuples::bigint, 0) into v_tickets
    from pg_catalog.pg_class c
    join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
    where c.oid = 'public.confirmed_tickets'::regclass;
  end if;
  return jsonb_build_object(
    'tickets', v_tickets,
    'webhooks', public.webhook_sample(),
    'orders', public.ledger_order_metrics(),
    'calls', (
      select s.n_tup_ins from pg_catalog.pg_stat_all_tables s where s.relid = 'public.calls'::regclass
    ),
    -- pg_cron counts as one: it is connected under its own name, and while it works.
    'webhook_workers', webhook.is_worked_by_cron()::int + (
      select count(*) from pg_catalog.pg_stat_activity a
      where a.application_name = 'sluice-webhook-worker' and a.datname = current_database()
    )
  );
end
$$;

-- Promise: the ticket of a claim, or no row. Second call: the same. Locks: none.
create function public.ticket_of_claim(p_claim_id uuid)
returns table (resource_id uuid, pool_id text, user_id text, claim_id uuid, confirmed_at timestamptz)
language sql stable security definer set search_path = '' as $$
  select public.answer_in_cell();
  select t.resource_id, t.pool_id, t.user_id, t.claim_id, t.confirmed_at
  from public.confirmed_tickets t
  where t.claim_id = p_claim_id;
$$;

-- Promise: the cron jobs of this database with the last run of each; none where pg_cron is not. Second call: the same.
-- Locks: none.
create function webhook.cron_jobs() returns jsonb
language plpgsql stable set search_path = '' as $$
begin
  if pg_catalog.to_regclass('cron.job') is null then
    return '[]';
  end if;
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
      'name', coalesce(j.jobname, j.jobid::text), 'schedule', j.schedule, 'is_active', j.active,
      'last_status', r.status, 'last_start_ms', round(extract(epoch from r.start_time) * 1000),
      'last_message', r.return_message
    ) order by j.jobname), '[]')
    from cron.job j
    left join lateral (
      select d.status, d.start_time, d.return_message
      from cron.job_run_details d where d.jobid = j.jobid order by d.runid desc limit 1
    ) r on true
  );
end
$$;

-- Promise: true when the job webhook_work has run in the last minutes: it does the webhook workers' work. pg_cron keeps all runs
-- there ever were, and only their id has an index: the last thousand are looked at. Second call: the same. Locks: none.
create function webhook.is_worked_by_cron() returns boolean
language plpgsql stable set search_path = '' as $$
begin
  if pg_catalog.to_regclass('cron.job') is null then
    return false;
  end if;
  return exists (
    select from cron.job j
    join cron.job_run_details d on d.jobid = j.jobid
    where j.jobname = 'webhook_work' and j.active and d.start_time > now() - interval '3 minutes'
      and d.runid > (select max(r.runid) - 1000 from cron.job_run_details r)
  );
end
$$;

-- Promise: what a doctor asks of this database: version, clock, the cron jobs, who of ours is connected, and which handlers are
-- disabled; is_served says that pg_cron does the workers' work. Second call: the same. Locks: none.
create function public.ledger_health() returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object(
    'version', current_setting('server_version'), 'now_ms', round(extract(epoch from clock_timestamp()) * 1000),
    'connections', (
      select coalesce(jsonb_object_agg(a.name, a.connections), '{}') from (
        select s.application_name as name, count(*) as connections from pg_catalog.pg_stat_activity s
        where s.application_name like 'sluice-%' and s.datname = current_database() group by 1
      ) a
    ),
    'jobs', webhook.cron_jobs(),
    'is_served', webhook.is_worked_by_cron(),
    'handler_faults', (select coalesce(jsonb_object_agg(f.name, f.fault), '{}') from webhook.handler_faults f)
  );
$$;

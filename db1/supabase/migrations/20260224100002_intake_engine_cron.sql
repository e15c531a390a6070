-- INTAKE, part 3: the reaper and the cron jobs.

-- Promise: a slot RESERVED for longer than the threshold that neither a live claim, a message nor a dead
-- letter speaks for (intake.held_by_hand) goes back on sale; it is locked before queue and dead letters are asked.
-- A pool that has lost its cache has no orphan: a rebuild puts its slots right.
-- Returns how many. Second call: 0. Locks: the orphans (others' are skipped), then those of return_slots.
-- Definer: cron and service_role need no rights to the queue.
create function public.reap_orphaned_slots(p_stale_threshold interval default '10 minutes') returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_orphans uuid[];
begin
  v_orphans := array(
    select s.id
    from public.inventory_slots s
    where s.status = 'RESERVED'
      and s.locked_at < now() - p_stale_threshold
      and not exists (select from public.claims c where c.slot_id = s.id and c.freed_at is null)
    for update of s skip locked
  );
  -- Usually there are none, and then the queue need not be read.
  if cardinality(v_orphans) > 0 then
    v_orphans := array(select o from unnest(v_orphans) o except select h.slot_id from intake.held_by_hand h);
  end if;
  return intake.return_slots(v_orphans);
end
$$;

-- Promise: a setting by name: from Vault where that exists and holds it, else the database setting app.<name>,
-- else null. Vault first: a database setting is readable by every role, and hosted Supabase refuses
-- `alter database … set app.*`. Second call: the same. Locks: none.
create function intake.setting(p_name text) returns text
language plpgsql stable set search_path = '' as $$
declare
  v_value text;
begin
  if pg_catalog.to_regclass('vault.decrypted_secrets') is not null then
    select s.decrypted_secret into v_value from vault.decrypted_secrets s where s.name = p_name;
  end if;
  return coalesce(v_value, nullif(current_setting('app.' || p_name, true), ''));
end
$$;

-- What the bridge worker was asked lately: http_post only queues a request, so a job that did that has succeeded whatever the
-- answer is. UNLOGGED as pg_net's own tables are: a crash loses the request and its answer too.
create unlogged table intake.drain_requests (
  request_id bigint primary key,
  asked_at timestamptz not null default now()
);

-- Promise: asks the bridge worker by HTTP to do what is due, if its address is set. Returns the request's id or null. It asks
-- without a look at what is due: payments to decide, refunds and voids wait in DB2, which this database does not see. Raises
-- where the key is not set.
-- Second call: a second request, which finds less to do. Locks: its own row of drain_requests, and those that are old.
create function intake.trigger_drain() returns bigint
language plpgsql set search_path = '' as $$
declare
  -- The worker answers within 50 s and a few calls of 10 s; pg_net's own limit of 5 s would give up a worker with much to do.
  c_timeout_ms constant int := 120000;
  v_url text := intake.setting('bridge_worker_url');
  v_key text := intake.setting('service_role_key');
  v_request_id bigint;
begin
  if v_url is null then
    return null;
  elsif v_key is null then
    raise exception 'the setting service_role_key is missing: the bridge worker would refuse the request'
      using hint = 'put the secret key of this project into its Vault under that name';
  end if;
  v_request_id := net.http_post(
    url => v_url,
    body => '{}'::jsonb,
    headers => jsonb_build_object('Content-Type', 'application/json', 'Authorization', 'Bearer ' || v_key),
    timeout_milliseconds => c_timeout_ms
  );
  delete from intake.drain_requests r where r.asked_at < now() - interval '1 hour';
  -- After a crash pg_net may count from 1 again.
  insert into intake.drain_requests (request_id) values (v_request_id)
  on conflict (request_id) do update set asked_at = excluded.asked_at;
  return v_request_id;
end
$$;

-- Promise: raises unless the last answer of the bridge worker was a 2xx: a wrong key, a function that is not deployed or a pg_net
-- that does not run then shows as a job that failed. A job of its own: what it raises would take trigger_drain's next request
-- back. Returns the status; null where nothing was asked within ten minutes, or no answer is due yet.
-- Second call: the same. Locks: none.
create function intake.check_drain() returns int
language plpgsql stable set search_path = '' as $$
declare
  -- Longer than a request may take.
  c_answer_due constant interval := '150 seconds';
  v_last record;
begin
  select a.id is not null as is_answered, a.status_code, a.error_msg, a.content into v_last
  from intake.drain_requests r
  left join net._http_response a on a.id = r.request_id and a.created >= r.asked_at
  where r.asked_at > now() - interval '10 minutes' and (a.id is not null or r.asked_at < now() - c_answer_due)
  order by r.asked_at desc, r.request_id desc
  limit 1;
  if not found then
    return null;
  elsif v_last.status_code between 200 and 299 then
    return v_last.status_code;
  end if;
  raise exception 'the bridge worker answered %', case
    when not v_last.is_answered then 'nothing: is pg_net running?'
    else concat_ws(': ', v_last.status_code, v_last.error_msg, left(v_last.content, 200))
  end
    using hint = 'compare the settings bridge_worker_url and service_role_key with the project';
end
$$;

-- Promise: true when the Edge Function bridge-worker has answered a request of the last minutes with a 2xx: it does the bridge workers'
-- work. Second call: the same. Locks: none.
create function intake.is_drained() returns boolean
language sql stable set search_path = '' as $$
  select exists (
    select from intake.drain_requests r
    join net._http_response a on a.id = r.request_id and a.created >= r.asked_at
    where a.created > now() - interval '3 minutes' and a.status_code between 200 and 299
  );
$$;

select cron.schedule('metrics_snapshot', '* * * * *', 'select public.snapshot_engine_metrics()');
select cron.schedule('reap_orphaned_slots', '*/2 * * * *', 'select public.reap_orphaned_slots()');
-- A procedure that works until nothing is left commits after each part. The stand-in of pg_cron runs commands inside a
-- function, where nothing can commit: it does one part a minute, and the Node scheduler the rest (src/scheduler/upkeep.ts).
select cron.schedule('expire_holds', '* * * * *', case
  when pg_catalog.to_regproc('cron.run_job') is null then 'call intake.expire_due_holds()'
  else 'select public.expire_holds(5000)'
end);
select cron.schedule('rebuild_lost_pools', '* * * * *', case
  when pg_catalog.to_regproc('cron.run_job') is null then 'call intake.rebuild_lost_pools()'
  else 'select intake.rebuild_lost_pool()'
end);
select cron.schedule(
  'drain_queue_trigger', '* * * * *',
  'select intake.trigger_drain() /* net.http_post to the bridge-worker */'
);
select cron.schedule('drain_queue_answer', '* * * * *', 'select intake.check_drain()');

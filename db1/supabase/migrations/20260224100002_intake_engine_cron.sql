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

-- Promise: asks the bridge worker by HTTP to do what is due, if its address is set. Returns the request's id or null. It asks
-- without a look at what is due: payments to decide, refunds and voids wait in DB2, which this database does not see.
-- Second call: a second request, which finds less to do. Locks: none.
create function intake.trigger_drain() returns bigint
language plpgsql set search_path = '' as $$
declare
  v_url text := intake.setting('bridge_worker_url');
begin
  if v_url is null then
    return null;
  end if;
  return net.http_post(
    url => v_url,
    body => '{}'::jsonb,
    headers => jsonb_build_object(
      'Content-Type', 'application/json',
      'Authorization', 'Bearer ' || intake.setting('service_role_key')
    )
  );
end
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

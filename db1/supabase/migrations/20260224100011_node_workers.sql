-- What the Node side needs beyond the bridge: whether this database is ready, a word to waiting workers, and whether it
-- has to stand in for pg_cron and pg_net.

-- Promise: true when this database has the intake's functions and takes changes; false on a standby. Second call: the same,
-- until a standby is promoted. Locks: none.
create function public.intake_ready() returns boolean
language sql stable set search_path = '' as $$
  select not pg_catalog.pg_is_in_recovery();
$$;

-- Promise: workers that listen look at the queue now. Never called in a claim's transaction: a notify takes a global
-- lock at commit. Second call: they look again. Locks: none of its own.
create function public.bridge_wake() returns void
language sql set search_path = '' as $$
  select pg_catalog.pg_notify('sluice_intake', '');
$$;

-- Promise: whether the Node scheduler of this role has to run the cron jobs and send the queued requests, because pg_cron and pg_net
-- are stand-ins: only the stand-ins have these functions. needs_owner: there are stand-ins, and this role may not use them. The owner
-- of the database may, who may also run what cron.job says. Second call: the same. Locks: none.
create function public.scheduler_duties() returns table (run_jobs boolean, send_requests boolean, needs_owner boolean)
language sql stable set search_path = '' as $$
  select coalesce(bool_or(d.is_mine and d.function = 'cron.run_job'), false),
    coalesce(bool_or(d.is_mine and d.function = 'net.take_requests'), false), coalesce(not bool_and(d.is_mine), false)
  from (
    select n.nspname || '.' || p.proname as function,
      pg_catalog.has_schema_privilege(n.oid, 'usage') and pg_catalog.has_function_privilege(p.oid, 'execute') as is_mine
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where (n.nspname, p.proname) in (('cron', 'run_job'), ('net', 'take_requests'))
  ) d;
$$;

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

-- Promise: whether the Node scheduler has to run the cron jobs and send the queued requests, because pg_cron and pg_net are
-- stand-ins: only the stand-ins have these functions. Second call: the same. Locks: none. For the owner of the database
-- alone, who may also run what cron.job says.
create function intake.scheduler_duties() returns table (run_jobs boolean, send_requests boolean)
language sql stable set search_path = '' as $$
  select pg_catalog.to_regproc('cron.run_job') is not null, pg_catalog.to_regproc('net.take_requests') is not null;
$$;

-- A function without a search path of its own looks names up where its caller says. webhook.work commits as it goes, which
-- a procedure with settings of its own cannot; it names everything in full and has its caller's rights.
select p.oid::regprocedure::text as offence
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls', 'auth', 'cron', 'net')
  and not exists (
    select from unnest(p.proconfig) c where c = 'search_path=""'
  )
  and not (p.oid::regprocedure::text = 'webhook.work(integer)' and p.prokind = 'p' and not p.prosecdef);

-- A function without a search path of its own looks names up where its caller says. Four procedures commit as they go, which
-- one with settings of its own cannot; they name everything in full and have their caller's rights.
select p.oid::regprocedure::text as offence
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls', 'auth', 'cron', 'net')
  and not exists (
    select from unnest(p.proconfig) c where c = 'search_path=""'
  )
  and not (
    p.oid::regprocedure::text in ('webhook.work(integer)', 'intake.expire_due_holds()', 'intake.rebuild_lost_pools()',
      'audit.prune_all()')
    and p.prokind = 'p' and not p.prosecdef
  );

-- A view without security_invoker reads with its owner's rights, past every policy. That does no harm in a schema that
-- callers cannot use.
select c.oid::regclass::text as offence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'v' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and not coalesce(c.reloptions && array['security_invoker=true', 'security_invoker=on', 'security_invoker=1'], false)
  and (
    n.nspname in ('public', 'webhook', 'calls')
    or pg_catalog.has_schema_privilege('anon', n.oid, 'usage')
    or pg_catalog.has_schema_privilege('authenticated', n.oid, 'usage')
  );

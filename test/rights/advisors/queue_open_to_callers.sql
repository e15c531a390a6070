-- Only the functions that keep the promises about queues, jobs and requests may touch them.
select r.name || ' has rights to ' || c.oid::regclass::text as offence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join (values ('anon'), ('authenticated'), ('service_role')) r (name)
where n.nspname in ('pgmq', 'cron', 'net', 'intake', 'audit') and c.relkind in ('r', 'p', 'v')
  and pg_catalog.has_table_privilege(r.name, c.oid, 'select, insert, update, delete, truncate');

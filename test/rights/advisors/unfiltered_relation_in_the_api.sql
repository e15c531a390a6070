-- Neither a materialized view nor a foreign table knows row security.
select c.oid::regclass::text as offence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'webhook', 'calls') and c.relkind in ('m', 'f');

-- A table in a schema that PostgREST shows is one grant away from the internet.
select c.oid::regclass::text as offence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'webhook', 'calls') and c.relkind in ('r', 'p') and not c.relrowsecurity;

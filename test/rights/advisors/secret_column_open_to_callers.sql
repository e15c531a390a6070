-- A column with such a name in something that anon or authenticated can read.
select a.attrelid::regclass::text || '.' || a.attname as offence
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0
  and a.attname ~* 'secret|password|token|signature|api_?key|credential'
  and (
    pg_catalog.has_column_privilege('anon', c.oid, a.attnum, 'select')
    or pg_catalog.has_column_privilege('authenticated', c.oid, a.attnum, 'select')
  );

-- A table that anon or authenticated has rights to, but no policy, shows no rows in spite of its grants. Without row security
-- it shows all of them.
select r.name || ' has rights to ' || c.oid::regclass::text as offence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join (values ('anon'), ('authenticated')) r (name)
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p')
  and pg_catalog.has_table_privilege(r.name, c.oid, 'select, insert, update, delete, truncate')
  and not exists (
    select from pg_catalog.pg_policy p
    where p.polrelid = c.oid and (p.polroles = '{0}' or r.name::regrole = any (p.polroles))
  );

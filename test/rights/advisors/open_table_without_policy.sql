-- A table that anon or authenticated has rights to and no policy opens is a promise that is not kept; one with rights and
-- without row security is wide open.
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

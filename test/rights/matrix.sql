-- What each role may do with each thing of ours and of what we build on, one row a thing. The letters are those of psql's
-- \dp: r select, a insert, w update, d delete, D truncate, x references, t trigger, m maintain, U usage, C create,
-- X execute, c connect, T temporary. PUBLIC's rights count for every role. In brackets: granted, but not reachable by
-- name, because the role has no usage on the schema.
with roles (place, name) as (
  values (1, 'anon'), (2, 'authenticated'), (3, 'service_role'), (4, 'authenticator'), (5, 'public')
),
schemas as (
  select n.oid, n.nspname::text as name
  from pg_catalog.pg_namespace n
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
),
rights (letter, right_name) as (
  values ('r', 'select'), ('a', 'insert'), ('w', 'update'), ('d', 'delete'), ('D', 'truncate'), ('x', 'references'),
    ('t', 'trigger'), ('m', 'maintain')
),
held as (
  select 'database' as kind, '(this one)' as name, '' as remark, r.name as role, r.place, true as reaches,
    concat(
      case when pg_catalog.has_database_privilege(r.name, current_database(), 'connect') then 'c' end,
      case when pg_catalog.has_database_privilege(r.name, current_database(), 'temporary') then 'T' end,
      case when pg_catalog.has_database_privilege(r.name, current_database(), 'create') then 'C' end
    ) as letters
  from roles r
  union all
  select 'schema', s.name, '', r.name, r.place, true,
    concat(
      case when pg_catalog.has_schema_privilege(r.name, s.oid, 'usage') then 'U' end,
      case when pg_catalog.has_schema_privilege(r.name, s.oid, 'create') then 'C' end
    )
  from schemas s cross join roles r
  union all
  select case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table' else 'table' end,
    s.name || '.' || c.relname,
    case when c.relrowsecurity then 'row security' else '' end,
    r.name, r.place, pg_catalog.has_schema_privilege(r.name, s.oid, 'usage'),
    (
      select pg_catalog.string_agg(x.letter, '' order by x.letter)
      from rights x where pg_catalog.has_table_privilege(r.name, c.oid, x.right_name)
    )
  from pg_catalog.pg_class c join schemas s on s.oid = c.relnamespace cross join roles r
  where c.relkind in ('r', 'p', 'v', 'm', 'f')
  union all
  select 'sequence', s.name || '.' || c.relname, '', r.name, r.place, pg_catalog.has_schema_privilege(r.name, s.oid, 'usage'),
    concat(
      case when pg_catalog.has_sequence_privilege(r.name, c.oid, 'usage') then 'U' end,
      case when pg_catalog.has_sequence_privilege(r.name, c.oid, 'select') then 'r' end,
      case when pg_catalog.has_sequence_privilege(r.name, c.oid, 'update') then 'w' end
    )
  from pg_catalog.pg_class c join schemas s on s.oid = c.relnamespace cross join roles r
  where c.relkind = 'S'
  union all
  select case p.prokind when 'p' then 'procedure' else 'function' end,
    s.name || '.' || p.proname || '(' || pg_catalog.oidvectortypes(p.proargtypes) || ')',
    case when p.prosecdef then 'definer' else '' end,
    r.name, r.place, pg_catalog.has_schema_privilege(r.name, s.oid, 'usage'),
    case when pg_catalog.has_function_privilege(r.name, p.oid, 'execute') then 'X' end
  from pg_catalog.pg_proc p join schemas s on s.oid = p.pronamespace cross join roles r
)
select h.kind, h.name, h.remark,
  pg_catalog.array_agg(
    case when coalesce(h.letters, '') = '' then '-' when h.reaches then h.letters else '(' || h.letters || ')' end
    order by h.place
  ) as rights
from held h
group by h.kind, h.name, h.remark
order by pg_catalog.array_position(
  array['database', 'schema', 'table', 'view', 'materialized view', 'foreign table', 'sequence', 'procedure', 'function'], h.kind
), h.name collate "C";

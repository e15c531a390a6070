-- Tries everything as every role: each verb on each table and sequence, each function with only nulls. One row an attempt:
-- what happened, and what the catalog says should. A temporary function makes each attempt and undoes it, whether it was
-- refused or not.
create function pg_temp.attempt(p_role text, p_statement text)
returns text
language plpgsql
as $$
begin
  perform set_config('role', p_role, true);
  execute p_statement;
  raise exception using errcode = 'ZZZZZ';
exception
  when insufficient_privilege then
    return 'refused';
  when others then
    -- It got past the rights, and as far as its nulls let it.
    return 'allowed';
end
$$;

with roles (name) as (
  values ('anon'), ('authenticated'), ('service_role'), ('authenticator')
),
schemas as (
  select n.oid, n.nspname::text as name
  from pg_catalog.pg_namespace n
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
),
tables as (
  select c.oid, s.oid as schema_oid, c.oid::regclass::text as name, (
    select quote_ident(a.attname) from pg_catalog.pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and a.attidentity = ''
    order by a.attnum limit 1
  ) as a_column
  from pg_catalog.pg_class c join schemas s on s.oid = c.relnamespace where c.relkind in ('r', 'p', 'v')
),
attempts as (
  select r.name as role, v.statement,
    pg_catalog.has_schema_privilege(r.name, t.schema_oid, 'usage') and pg_catalog.has_table_privilege(r.name, t.oid, v.needs) as may
  from tables t cross join roles r
  cross join lateral (values
    ('select', 'select from ' || t.name || ' limit 1'),
    ('insert', 'insert into ' || t.name || ' default values'),
    ('update', 'update ' || t.name || ' set ' || t.a_column || ' = null where false'),
    ('delete', 'delete from ' || t.name || ' where false'),
    ('truncate', 'truncate ' || t.name)
  ) v (needs, statement)
  union all
  select r.name, 'select nextval(' || quote_literal(c.oid::regclass::text) || '::regclass)',
    pg_catalog.has_schema_privilege(r.name, s.oid, 'usage') and pg_catalog.has_sequence_privilege(r.name, c.oid, 'usage')
  from pg_catalog.pg_class c join schemas s on s.oid = c.relnamespace cross join roles r where c.relkind = 'S'
  union all
  select r.name,
    case p.prokind when 'p' then 'call ' else 'select ' end || quote_ident(s.name) || '.' || quote_ident(p.proname) || '('
      || coalesce((
        select string_agg('null::' || pg_catalog.format_type(a.type, null), ', ' order by a.place)
        from unnest(p.proargtypes::oid[]) with ordinality a (type, place)
      ), '') || ')',
    pg_catalog.has_schema_privilege(r.name, s.oid, 'usage') and pg_catalog.has_function_privilege(r.name, p.oid, 'execute')
  from pg_catalog.pg_proc p join schemas s on s.oid = p.pronamespace cross join roles r
)
select a.role, a.statement, case when a.may then 'allowed' else 'refused' end as expected,
  pg_temp.attempt(a.role, a.statement) as happened
from attempts a;

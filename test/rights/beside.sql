-- What else decides who may do what, one line a fact: the roles and who may become whom, rights of single columns, rights
-- of roles that the matrix has no column for, policies, default rights, and settings kept for a role or a database.
with ours as (
  select n.oid, n.nspname::text as name
  from pg_catalog.pg_namespace n
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
),
in_matrix (name) as (
  values ('anon'), ('authenticated'), ('service_role'), ('authenticator')
),
things as (
  select 'schema ' || o.name as name, n.nspacl as acl, n.nspowner as owner
  from ours o join pg_catalog.pg_namespace n on n.oid = o.oid
  union all
  select o.name || '.' || c.relname, c.relacl, c.relowner
  from pg_catalog.pg_class c join ours o on o.oid = c.relnamespace
  union all
  select o.name || '.' || p.proname || '(' || pg_catalog.oidvectortypes(p.proargtypes) || ')', p.proacl, p.proowner
  from pg_catalog.pg_proc p join ours o on o.oid = p.pronamespace
),
facts as (
  select concat_ws(' ', 'role', r.rolname,
    case when r.rolsuper then 'superuser' end,
    case when r.rolbypassrls then 'bypassrls' end,
    case when r.rolcreaterole then 'createrole' end,
    case when r.rolcreatedb then 'createdb' end,
    case when r.rolreplication then 'replication' end,
    case when r.rolcanlogin then 'login' end,
    case when r.rolinherit then 'inherit' end
  ) as line
  from pg_catalog.pg_roles r where r.rolname !~ '^pg_'
  union all
  select 'member ' || m.member::regrole::text || ' of ' || m.roleid::regrole::text
  from pg_catalog.pg_auth_members m where m.member::regrole::text !~ '^pg_'
  union all
  select 'column ' || a.attrelid::regclass::text || '.' || a.attname || ' ' || a.attacl::text
  from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid join ours o on o.oid = c.relnamespace
  where a.attacl is not null
  union all
  select 'beside the matrix ' || g.grantee::regrole::text || ' ' || lower(g.privilege_type) || ' ' || t.name
  from things t cross join lateral pg_catalog.aclexplode(t.acl) g
  where g.grantee not in (0, t.owner) and g.grantee::regrole::text not in (select i.name from in_matrix i)
  union all
  select 'grantable ' || g.grantee::regrole::text || ' ' || lower(g.privilege_type) || ' ' || t.name
  from things t cross join lateral pg_catalog.aclexplode(t.acl) g
  where g.is_grantable and g.grantee <> t.owner
  union all
  select 'policy ' || p.polrelid::regclass::text || ' ' || p.polname || ' for ' || p.polcmd::text || ' to '
    || p.polroles::regrole[]::text || ' using ' || coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '-')
    || ' check ' || coalesce(pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid), '-')
  from pg_catalog.pg_policy p
  union all
  select 'default ' || d.defaclobjtype::text || ' in ' || coalesce(d.defaclnamespace::regnamespace::text, 'all schemas')
    || ' ' || d.defaclacl::text
  from pg_catalog.pg_default_acl d
  -- Projects of before came with rights of their own for whatever is made in public later.
  where d.defaclnamespace is distinct from 'public'::regnamespace
  union all
  select 'setting ' || coalesce(s.setrole::regrole::text, '-') || ' ' || c.name
  from pg_catalog.pg_db_role_setting s cross join lateral unnest(s.setconfig) c (name)
  union all
  select 'owner ' || string_agg(distinct t.owner::regrole::text, ' ') from things t
)
select f.line from facts f order by f.line collate "C";

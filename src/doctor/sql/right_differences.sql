-- Compares who may execute what, and who may do what with tables, with what the migration grants. $1 schemas; $2 to $4 the
-- expected grants: role, privilege, and object as it is written there. What belongs to an extension is its own affair.
with expected as (
  select g.role, g.privilege,
    case when g.object like '%(%' then 'f' else 'r' end as kind,
    coalesce(
      pg_catalog.to_regprocedure(case when g.object like '%(%' then g.object end)::oid,
      pg_catalog.to_regclass(case when g.object not like '%(%' then g.object end)::oid
    ) as oid,
    g.object
  from unnest($2::text[], $3::text[], $4::text[]) g (role, privilege, object)
),
actual as (
  select coalesce(r.rolname, 'public') as role, lower(a.privilege_type) as privilege, o.kind, o.oid, o.name
  from (
    select 'f' as kind, p.oid, p.oid::regprocedure::text as name, p.pronamespace as namespace,
      coalesce(p.proacl, acldefault('f', p.proowner)) as acl, 'pg_proc'::regclass as class
    from pg_catalog.pg_proc p
    union all
    select 'r', c.oid, c.oid::regclass::text, c.relnamespace, c.relacl, 'pg_class'::regclass
    from pg_catalog.pg_class c where c.relkind in ('r', 'p', 'v', 'm')
    union all
    select 'r', c.oid, c.oid::regclass::text || '(' || t.attname || ')', c.relnamespace, t.attacl, 'pg_class'::regclass
    from pg_catalog.pg_attribute t
    join pg_catalog.pg_class c on c.oid = t.attrelid and c.relkind in ('r', 'p', 'v', 'm')
    where t.attacl is not null and not t.attisdropped
  ) o
  join pg_catalog.pg_namespace n on n.oid = o.namespace and n.nspname = any ($1::text[])
  cross join lateral aclexplode(o.acl) a
  left join pg_catalog.pg_roles r on r.oid = a.grantee
  where (a.grantee = 0 or r.rolname in ('anon', 'authenticated', 'service_role'))
    and not exists (
      select from pg_catalog.pg_depend d
      where d.classid = o.class and d.objid = o.oid and d.deptype = 'e'
    )
)
select 'missing' as kind, e.role, e.privilege, e.object
from expected e
where not exists (
  select from actual a where a.role = e.role and a.privilege = e.privilege and a.kind = e.kind and a.oid = e.oid
)
union all
select 'extra', a.role, a.privilege, a.name
from actual a
where not exists (
  select from expected e where e.role = a.role and e.privilege = a.privilege and e.kind = a.kind and e.oid = a.oid
)
order by 1, 2, 4;

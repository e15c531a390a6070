-- How row security stands in the schemas of $1: which tables have it, every policy, and which of the roles that face the world
-- it does not hold for.
select
  (
    select coalesce(jsonb_agg(c.oid::regclass::text order by c.oid::regclass::text), '[]')
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any ($1::text[]) and c.relkind in ('r', 'p') and c.relrowsecurity
  ) as tables,
  (
    select coalesce(jsonb_agg(jsonb_build_object(
      'name', p.polname,
      'table', p.polrelid::regclass::text,
      'is_permissive', p.polpermissive,
      'command', case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
        else 'all' end,
      'roles', (
        select jsonb_agg(coalesce(r.rolname, 'public') order by r.rolname)
        from unnest(p.polroles) role (oid) left join pg_catalog.pg_roles r on r.oid = role.oid
      ),
      'using', pg_catalog.pg_get_expr(p.polqual, p.polrelid),
      'check', pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)
    ) order by p.polname), '[]')
    from pg_catalog.pg_policy p
    join pg_catalog.pg_class c on c.oid = p.polrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any ($1::text[])
  ) as policies,
  (
    select coalesce(jsonb_agg(r.rolname order by r.rolname), '[]')
    from pg_catalog.pg_roles r
    where r.rolname in ('anon', 'authenticated') and (r.rolsuper or r.rolbypassrls)
  ) as exempt;

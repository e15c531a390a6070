-- The golden list of tables, views, sequences and schemas: who may do what, in full.
begin;
select plan(7);

select bag_eq(
  $$ select a.grantee::regrole::text, n.nspname || '.' || c.relname, a.privilege_type
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     cross join lateral aclexplode(coalesce(
       c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)
     )) a
     where n.nspname in ('public', 'intake', 'audit') and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
       and (a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role')) $$,
  $$ values
    ('service_role', 'public.engine_config', 'SELECT'),
    ('service_role', 'public.engine_config', 'INSERT'),
    ('service_role', 'public.engine_config', 'UPDATE'),
    ('service_role', 'public.engine_config', 'DELETE'),
    ('service_role', 'public.inventory_slots', 'SELECT'),
    ('service_role', 'public.inventory_slots', 'INSERT'),
    ('service_role', 'public.inventory_slots', 'UPDATE'),
    ('service_role', 'public.inventory_slots', 'DELETE'),
    ('service_role', 'public.engine_metrics', 'SELECT'),
    ('service_role', 'public.claims', 'SELECT'),
    ('service_role', 'public.slot_manifest', 'SELECT'),
    ('service_role', 'intake.sale_order_seq', 'USAGE') $$,
  'these rights to tables, views and sequences are granted, and no others; PUBLIC has none'
);
select is_empty(
  $$ select t.attrelid::regclass, t.attname from pg_attribute t join pg_class c on c.oid = t.attrelid
     where c.relnamespace in ('public'::regnamespace, 'intake'::regnamespace) and t.attacl is not null $$,
  'no column has rights of its own'
);
select is_empty(
  $$ select c.oid::regclass from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relrowsecurity $$,
  'every table in public has row level security'
);
select is_empty(
  $$ select p.polname from pg_policy p join pg_class c on c.oid = p.polrelid
     where c.relnamespace in ('public'::regnamespace, 'intake'::regnamespace) $$,
  'no policy opens a table of the intake'
);
select is_empty(
  $$ select r.role, s.name from unnest(array['anon', 'authenticated', 'service_role']) r (role)
     cross join unnest(array['intake', 'audit', 'pgmq', 'cron']) s (name)
     where has_schema_privilege(r.role, s.name, 'usage') or has_schema_privilege(r.role, s.name, 'create') $$,
  'no role of the API may use the schemas intake, audit, pgmq and cron'
);
select case
  when to_regrole('supabase_admin') is not null then skip('Supabase itself opens schema net to the roles of the API', 1)
  else is_empty(
    $$ select r.role from unnest(array['anon', 'authenticated', 'service_role']) r (role)
       where has_schema_privilege(r.role, 'net', 'usage') $$,
    'no role of the API may use the schema net'
  )
end;
select is_empty(
  $$ select r.role from unnest(array['anon', 'authenticated', 'service_role']) r (role)
     where has_schema_privilege(r.role, 'public', 'create') $$,
  'no role of the API may create anything in public'
);

select * from finish();
rollback;

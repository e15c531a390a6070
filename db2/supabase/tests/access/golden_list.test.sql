-- The golden list of the ledger: who may do what, in full.
begin;
select plan(8);

select bag_eq(
  $$ select a.grantee::regrole::text, p.oid::regprocedure::text
     from pg_proc p
     cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where p.pronamespace = 'public'::regnamespace
       and (a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role')) $$,
  $$ values
    ('service_role', 'finalize_transaction(jsonb)'),
    ('service_role', 'finalize_batch(jsonb)'),
    ('service_role', 'tickets_page(uuid,integer,uuid[])'),
    ('service_role', 'ledger_ready()'),
    ('service_role', 'webhook_sample()'),
    ('service_role', 'ledger_sample()'),
    ('service_role', 'ticket_of_claim(uuid)'),
    ('service_role', 'audit_page(bigint,integer)'),
    ('service_role', 'ledger_health()') $$,
  'these rights to execute are granted, and no others; PUBLIC has none'
);
select bag_eq(
  $$ select a.grantee::regrole::text, c.relname::text, a.privilege_type
     from pg_class c
     cross join lateral aclexplode(coalesce(
       c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)
     )) a
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
       and (a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role')) $$,
  $$ values
    ('authenticated', 'confirmed_tickets', 'SELECT'),
    ('service_role', 'confirmed_tickets', 'SELECT'),
    ('service_role', 'confirmed_tickets', 'INSERT') $$,
  'these rights to tables, views and sequences are granted, and no others; PUBLIC has none'
);
select is_empty(
  $$ select t.attrelid::regclass, t.attname from pg_attribute t join pg_class c on c.oid = t.attrelid
     where c.relnamespace = 'public'::regnamespace and t.attacl is not null $$,
  'no column has rights of its own'
);
select is_empty(
  $$ select c.oid::regclass from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relrowsecurity $$,
  'every table in public has row level security'
);
select bag_eq(
  $$ select c.relname::text, p.polname::text, p.polcmd::text, p.polroles::regrole[]::text
     from pg_policy p join pg_class c on c.oid = p.polrelid where c.relnamespace = 'public'::regnamespace $$,
  $$ values ('confirmed_tickets', 'own_tickets', 'r', '{authenticated}') $$,
  'one policy opens one table, to signed-in users, for reading'
);
select is_empty(
  $$ select p.oid::regprocedure from pg_proc p where p.pronamespace = 'public'::regnamespace
       and not exists (select from unnest(p.proconfig) c where c = 'search_path=""') $$,
  'every function has an empty search path of its own'
);
select bag_eq(
  $$ select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prosecdef $$,
  $$ values
    ('webhook_sample()'),
    ('ledger_sample()'),
    ('ticket_of_claim(uuid)'),
    ('audit_page(bigint,integer)'),
    ('ledger_health()') $$,
  'these functions run with the rights of their owner, and no others'
);
select is_empty(
  $$ select r.role from unnest(array['anon', 'authenticated', 'service_role']) r (role)
     where has_schema_privilege(r.role, 'public', 'create') $$,
  'no role of the API may create anything in public'
);

select * from finish();
rollback;

-- Everything here is there on any Postgres, with or without our migrations, for every role.
select current_setting('server_version') as version,
  current_setting('server_version_num')::integer as version_num,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('synchronous_commit') as synchronous_commit,
  pg_catalog.pg_is_in_recovery() as is_standby,
  current_user::text as role,
  (select r.rolsuper or r.rolbypassrls from pg_catalog.pg_roles r where r.rolname = current_user) as sees_all_rows,
  exists (
    select from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'supabase_migrations' and c.relname = 'schema_migrations'
  ) as has_migrations;

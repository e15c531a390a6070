-- Everything here is there on any Postgres, with or without our migrations, for every role.
select current_setting('server_version') as version,
  current_setting('server_version_num')::integer as version_num,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('synchronous_commit') as synchronous_commit,
  current_setting('synchronous_standby_names') as synchronous_standby_names,
  -- The columns are null for a role that may not see other sessions.
  (
    select coalesce(jsonb_agg(jsonb_build_object('name', r.application_name, 'state', r.state, 'sync_state', r.sync_state)
      order by r.application_name), '[]')
    from pg_catalog.pg_stat_replication r
  ) as standbys,
  current_setting('default_transaction_isolation') as isolation,
  -- Whom it is set for to something else: PostgREST goes by the settings of the role it acts for.
  array(
    select concat_ws(' in ', 'role ' || r.rolname, 'database ' || d.datname)
    from pg_catalog.pg_db_role_setting s
    cross join unnest(s.setconfig) c
    left join pg_catalog.pg_roles r on r.oid = s.setrole
    left join pg_catalog.pg_database d on d.oid = s.setdatabase
    where (s.setdatabase = 0 or d.datname = current_database())
      and c like 'default_transaction_isolation=%' and c <> 'default_transaction_isolation=read committed'
    order by 1
  ) as isolation_set_for,
  pg_catalog.pg_is_in_recovery() as is_standby,
  current_user::text as role,
  (select r.rolsuper or r.rolbypassrls from pg_catalog.pg_roles r where r.rolname = current_user) as sees_all_rows,
  exists (
    select from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'supabase_migrations' and c.relname = 'schema_migrations'
  ) as has_migrations;

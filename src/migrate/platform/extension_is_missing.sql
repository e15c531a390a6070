-- Whether an extension has to be put in place as plain SQL: it is not there, and this role cannot create it. Only a superuser
-- creates one that is not trusted; what it creates would not belong to the owner of the database, who has to change it.
-- The real pg_cron can only be created in the one database that the server preloads it for, which its setting names.
select to_regnamespace($2) is null
  and not exists (
    select from pg_catalog.pg_available_extensions e
    join pg_catalog.pg_available_extension_versions v on v.name = e.name and v.version = e.default_version
    where e.name = $1
      and (v.trusted or not v.superuser or (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user))
      and (e.name <> 'pg_cron' or e.comment like '%stand-in%' or current_setting('cron.database_name', true) = current_database())
  ) as missing;

-- The real pg_cron can only be created where the server preloads it; then it has settings of its own.
select to_regnamespace($2) is null
  and not exists (
    select from pg_catalog.pg_available_extensions e
    where e.name = $1
      and (e.name <> 'pg_cron' or e.comment like '%stand-in%' or current_setting('cron.database_name', true) is not null)
  ) as missing;

select to_regnamespace($2) is null
  and not exists (select from pg_catalog.pg_available_extensions where name = $1) as missing;

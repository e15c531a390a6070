-- A policy that is always true protects nothing. The policies of cron are not always true.
select p.polname || ' on ' || p.polrelid::regclass::text as offence
from pg_catalog.pg_policy p
where btrim(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '() ') in ('true', '1 = 1')
  or btrim(pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid), '() ') in ('true', '1 = 1');

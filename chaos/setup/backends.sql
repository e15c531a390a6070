-- The backends that serve our own processes, one after another.
select a.pid
from pg_catalog.pg_stat_activity a
where a.application_name like 'sluice-%' and a.pid <> pg_catalog.pg_backend_pid()
order by a.pid

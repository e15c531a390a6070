-- What an extension brings along into public is shown by PostgREST with the rest.
select e.extname::text as offence
from pg_catalog.pg_extension e
where e.extnamespace = 'public'::regnamespace;

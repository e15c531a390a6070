-- Only these functions may run with their owner's rights and be open to the internet: a buyer claims, and a signed-in buyer
-- releases.
select r.name || ' may execute ' || p.oid::regprocedure::text as offence
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
cross join (values ('anon'), ('authenticated'), ('public')) r (name)
where p.prosecdef
  and n.nspname !~ '^pg_'
  and pg_catalog.has_function_privilege(r.name, p.oid, 'execute')
  and (r.name, p.oid::regprocedure::text) not in (
    ('anon', 'claim_resource_and_queue(text,text,text)'),
    ('authenticated', 'claim_resource_and_queue(text,text,text)'),
    ('authenticated', 'release_own_claim(uuid,text,text,bytea)')
  );

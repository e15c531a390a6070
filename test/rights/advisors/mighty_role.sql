-- No role of the API may do what rights do not bound, and row security is passed by service_role alone.
select r.rolname::text as offence
from pg_catalog.pg_roles r
where r.rolname in ('anon', 'authenticated', 'service_role', 'authenticator')
  and (
    r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication
    or (r.rolbypassrls and r.rolname <> 'service_role')
    or (r.rolinherit and r.rolname = 'authenticator')
    or exists (
      select from pg_catalog.pg_auth_members m
      where m.member = r.oid and m.roleid::regrole::text not in ('anon', 'authenticated', 'service_role')
    )
    or exists (select from pg_catalog.pg_auth_members m where m.member = r.oid and r.rolname <> 'authenticator')
  );

-- A policy on a table without row security protects nothing and looks as if it did.
select p.polname || ' on ' || c.oid::regclass::text as offence
from pg_catalog.pg_policy p
join pg_catalog.pg_class c on c.oid = p.polrelid
where not c.relrowsecurity;

-- user_metadata belongs to the user, who can write into it what they like.
select p.polname || ' on ' || p.polrelid::regclass::text as offence
from pg_catalog.pg_policy p
where concat(pg_catalog.pg_get_expr(p.polqual, p.polrelid), pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
  ~* 'user_metadata';

-- Rights that whatever is made later starts out with. That pgmq lets pg_monitor look is pgmq's own.
select coalesce(g.grantee::regrole::text, 'public') || ' ' || lower(g.privilege_type) || ' in '
  || coalesce(nullif(d.defaclnamespace, 0)::regnamespace::text, 'every schema') as offence
from pg_catalog.pg_default_acl d
cross join lateral pg_catalog.aclexplode(d.defaclacl) g
where g.grantee <> d.defaclrole
  and not (g.grantee = 'pg_monitor'::regrole and d.defaclnamespace = pg_catalog.to_regnamespace('pgmq'))
union all
select 'public may execute whatever is made later'
where not exists (
  select from pg_catalog.pg_default_acl d
  where d.defaclnamespace = 0 and d.defaclobjtype = 'f' and d.defaclrole = current_user::regrole
);

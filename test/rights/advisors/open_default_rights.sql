-- Default rights apply to everything created later. The right of pg_monitor to read pgmq's tables comes from pgmq.
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

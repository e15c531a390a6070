-- A database setting can be read by every role. Settings with such a name may be set to nothing; any with such a value not.
with kept as (
  select split_part(c.setting, '=', 1) as name, substr(c.setting, strpos(c.setting, '=') + 1) as value
  from pg_catalog.pg_db_role_setting s cross join lateral unnest(s.setconfig) c (setting)
  union all
  select s.name, s.setting from pg_catalog.pg_settings s where s.vartype = 'string' and s.name <> 'ssl_key_file'
  union all
  select f.name, f.setting from pg_catalog.pg_file_settings f where f.name <> 'ssl_key_file'
)
select distinct k.name as offence
from kept k
where (k.name ~* '(^|[._])(secret|password|token|key|jwt|credentials?)($|[._])' and k.value <> '')
  or k.value ~ 'eyJ[A-Za-z0-9_-]{8,}\.' or k.value ~* 'bearer\s+\S' or k.value ~ '\y(sk|whsec|sb_secret)_[A-Za-z0-9]'
  or k.value ~ '://[^/@\s:]*:[^/@\s]+@' or k.value ~* 'password\s*=';

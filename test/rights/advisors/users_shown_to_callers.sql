-- Nothing that anon or authenticated can read may be made of auth.users.
select v.oid::regclass::text as offence
from pg_catalog.pg_rewrite w
join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
  and d.refclassid = 'pg_catalog.pg_class'::regclass
join pg_catalog.pg_class v on v.oid = w.ev_class and v.relkind in ('v', 'm')
join pg_catalog.pg_namespace n on n.oid = v.relnamespace
where d.refobjid = pg_catalog.to_regclass('auth.users')
  and (
    n.nspname in ('public', 'webhook', 'calls')
    or pg_catalog.has_table_privilege('anon', v.oid, 'select')
    or pg_catalog.has_table_privilege('authenticated', v.oid, 'select')
  );

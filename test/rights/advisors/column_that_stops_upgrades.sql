-- pg_upgrade refuses a database with columns of these types.
select a.attrelid::regclass::text || '.' || a.attname as offence
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls') and c.relkind in ('r', 'p') and not a.attisdropped
  and a.atttypid::regtype::text in (
    'regcollation', 'regconfig', 'regdictionary', 'regnamespace', 'regoper', 'regoperator', 'regproc', 'regprocedure'
  );

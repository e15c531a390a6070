-- A delete or update of a referenced row reads the whole referencing table.
select k.conname || ' on ' || k.conrelid::regclass::text as offence
from pg_catalog.pg_constraint k
join pg_catalog.pg_namespace n on n.oid = k.connamespace
where k.contype = 'f' and n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls')
  and not exists (
    select from pg_catalog.pg_index i
    where i.indrelid = k.conrelid and i.indpred is null
      and (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey
  );

-- Without a key, two equal rows cannot be told apart. A unique index with nulls not distinct serves as well.
select c.oid::regclass::text as offence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls') and c.relkind in ('r', 'p')
  and not exists (
    select from pg_catalog.pg_index i
    where i.indrelid = c.oid and i.indpred is null and (i.indisprimary or (i.indisunique and i.indnullsnotdistinct))
  );

-- Two indexes that are the same but for their name cost every write twice.
select min(i.indexrelid::regclass::text) || ' and ' || max(i.indexrelid::regclass::text) as offence
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indexrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls')
group by i.indrelid, c.relam, i.indkey::text, i.indclass::text, i.indoption::text, i.indcollation::text,
  pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid)
having count(*) > 1;

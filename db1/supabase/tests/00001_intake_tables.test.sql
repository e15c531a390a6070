-- Extensions, types, tables and queues of the intake.
begin;
select plan(35);

select has_extension('pgmq', 'pgmq is there');
select has_extension('pg_cron', 'pg_cron is there');
select has_extension('pg_net', 'pg_net is there');

select has_type('public', 'slot_status', 'slot_status is a type');
select enum_has_labels(
  'public', 'slot_status', array['AVAILABLE', 'RESERVED', 'CONSUMED'],
  'a slot is AVAILABLE, RESERVED or CONSUMED'
);

select has_table('public', 'inventory_slots', 'inventory_slots is a table');
select is(
  (select relpersistence::text from pg_class where oid = 'public.inventory_slots'::regclass), 'u',
  'inventory_slots is UNLOGGED'
);
select has_column('public', 'inventory_slots', 'id', 'a slot has an id');
select has_column('public', 'inventory_slots', 'pool_id', 'a slot has a pool');
select has_column('public', 'inventory_slots', 'status', 'a slot has a status');
select has_column('public', 'inventory_slots', 'locked_by', 'a slot says who holds it');
select has_column('public', 'inventory_slots', 'locked_at', 'a slot says since when it is held');
select col_is_pk('public', 'inventory_slots', 'id', 'the id is the primary key of a slot');
select is(
  (select count(*)::int from pg_index where indrelid = 'public.inventory_slots'::regclass and indisunique), 1,
  'the primary key is the only unique rule of a slot'
);
select has_index(
  'public', 'inventory_slots', 'idx_available_slots', array['pool_id', 'sale_order'],
  'idx_available_slots finds the slots of a pool in the order of sale'
);
select matches(
  (select pg_get_expr(indpred, indrelid) from pg_index where indexrelid = 'public.idx_available_slots'::regclass),
  'status = ''AVAILABLE''', 'idx_available_slots holds the free slots only'
);

select has_table('public', 'engine_config', 'engine_config is a table');
select has_column('public', 'engine_config', 'pool_id', 'a pool has an id');
select col_is_pk('public', 'engine_config', 'pool_id', 'the pool_id is the primary key of engine_config');
select col_default_is('public', 'engine_config', 'batch_size', '100', 'a batch has 100 messages unless said otherwise');
select col_default_is('public', 'engine_config', 'visibility_timeout_sec', '45', 'a lease lasts 45 seconds by default');
select col_default_is('public', 'engine_config', 'max_retries', '10', 'a message is tried 10 times by default');
select col_default_is('public', 'engine_config', 'is_active', 'true', 'a pool is active by default');
select col_is_null('public', 'engine_config', 'validation_webhook_url', 'validation_webhook_url may be left out');
select col_default_is(
  'public', 'engine_config', 'commit_rpc_name', 'finalize_transaction', 'finalize_transaction commits by default'
);
select col_is_null('public', 'engine_config', 'commit_webhook_url', 'commit_webhook_url may be left out');
select is(
  (select count(*)::int from pg_constraint where contype = 'f' and conrelid = 'public.engine_config'::regclass), 0,
  'engine_config has no foreign key'
);
select lives_ok(
  $$ insert into public.engine_config (pool_id) values ('tables') $$, 'a row with only a pool_id is a pool'
);

select has_table('public', 'engine_metrics', 'engine_metrics is a table');
select has_pk('public', 'engine_metrics', 'engine_metrics has a primary key');
select has_index(
  'public', 'engine_metrics', 'idx_metrics_pool_ts', array['pool_id', 'captured_at'],
  'idx_metrics_pool_ts finds the latest row of a pool'
);
select matches(
  pg_get_indexdef('public.idx_metrics_pool_ts'::regclass), 'captured_at DESC', 'idx_metrics_pool_ts is newest first'
);

select is(
  (select relpersistence::text from pg_class where oid = 'public.claims'::regclass), 'p',
  'claims survive a crash'
);
select is(
  (select relpersistence::text from pg_class where oid = 'public.slot_manifest'::regclass), 'p',
  'the manifest survives a crash'
);

select bag_eq(
  $$ select queue_name::text from pgmq.list_queues() where queue_name like 'intake%' $$,
  $$ values ('intake_queue'), ('intake_dlq') $$,
  'the queues intake_queue and intake_dlq exist'
);

select * from finish();
rollback;

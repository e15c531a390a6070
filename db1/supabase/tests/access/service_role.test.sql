-- service_role can do its work with the rights it has.
begin;
select plan(40);

select lives_ok(
  $$ select tests.as_caller('service_role', null, s.statement) $$
    || format('from (values (%L)) s (statement)', t.statement),
  format('service_role may: %s', t.statement)
)
from (values
  ('insert into public.engine_config (pool_id, max_per_user) values (''srv'', 5) returning pool_id'),
  ('insert into public.inventory_slots (pool_id) select ''srv'' from generate_series(1, 4) returning id'),
  ('insert into public.inventory_slots values (''00000000-0000-4000-8000-00000000000d'', ''srv'') returning id'),
  ('update public.inventory_slots set status = ''RESERVED'' where pool_id = ''srv'' returning id'),
  ('update public.inventory_slots set status = ''AVAILABLE'' where pool_id = ''srv'' returning id'),
  ('delete from public.inventory_slots where id = ''00000000-0000-4000-8000-00000000000d'' returning id'),
  ('select public.claim_resource_and_queue(''srv'', ''ann'', ''r1'')'),
  ('select outcome from public.claim_batch(array[''srv''], array[''bob''], array[''r2''])'),
  ('select state from public.get_claim((select claim_id from public.claims where pool_id = ''srv'' limit 1))'),
  ('select state from public.release_claim_as_operator((select claim_id from public.claims where pool_id = ''srv'' limit 1), ''olga'')'),
  ('select status from public.pool_status(''srv'')'),
  ('select public.intake_queue_send(''{}'')'),
  ('select msg_id from public.intake_queue_read(30, 1)'),
  ('select public.intake_queue_delete(''{0}'')'),
  ('select public.intake_route_to_dlq(0, ''{}'', 1)'),
  ('select public.snapshot_engine_metrics()'),
  ('select public.reap_orphaned_slots()'),
  ('select public.expire_holds()'),
  ('select public.hook_allowed_hosts()'),
  ('update public.engine_config set commit_webhook_url = ''https://example.com/'' where pool_id = ''srv'' returning 1'),
  ('select pool_id from public.bridge_config(''{srv}'')'),
  ('select lane from public.bridge_lanes()'),
  ('select msg_id from public.bridge_take(array[0], array[10], 30)'),
  ('select msg_id from public.bridge_take_suspect(array[0], 30)'),
  ('select public.bridge_extend(''{0}'', ''{1}'', 30)'),
  ('select outcome from public.bridge_finish(''{0}'', ''{1}'', ''{gone}'', ''{null}'', ''{0}'')'),
  ('select msg_id from public.list_dead_letters()'),
  ('select outcome from public.replay_dead_letters(''{0}'', ''olga'')'),
  ('select outcome from public.discard_dead_letters(''{0}'', ''olga'')'),
  ('select public.intake_ready()'),
  ('select run_jobs from public.scheduler_duties()'),
  ('select pool_id from public.engine_metrics')
) t (statement);

select is(
  (select count(*)::int from public.slot_manifest where pool_id = 'srv'), 4, 'the manifest followed what it did'
);
select throws_ok(
  $$ select tests.as_caller('service_role', null, 'update public.claims set user_id = ''eve'' returning claim_id') $$,
  '42501', null, 'service_role may not change a claim behind the functions'
);
select throws_ok(
  $$ select tests.as_caller('service_role', null, 'delete from public.slot_manifest returning slot_id') $$,
  '42501', null, 'service_role may not change the manifest'
);
select throws_ok(
  format($$ select tests.as_caller('service_role', null, %L) $$, t.statement), '42501', null, 'service_role may not: ' || t.statement
)
from (values
  ('select audit.add_operator(''eve'', ''admin'', sha256(''k''), ''eve'')'),
  ('select audit.rotate_operator(''ann'', sha256(''k''), ''eve'')'),
  ('select audit.revoke_operator(''ann'', ''eve'')')
) t (statement);
select is_empty($$ select from public.claims where user_id = 'eve' $$, 'the refused change has left nothing');
select is((select count(*)::int from public.slot_manifest where pool_id = 'srv'), 4, 'the manifest is as it was');

select * from finish();
rollback;

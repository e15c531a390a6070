-- What anon and authenticated meet when they try anyway.
begin;
select plan(252);

insert into public.inventory_slots (pool_id) values ('doors');

select tests.refuses(
  format($$ select tests.as_caller(%L, 'ann', %L) $$, r.role, t.statement), '42501',
  format('%s may not: %s', r.role, t.statement)
)
from unnest(array['anon', 'authenticated']) r (role)
cross join (values
  ('select claim_id from public.claims'),
  ('select id from public.inventory_slots'),
  ('select pool_id from public.engine_config'),
  ('select id from public.engine_metrics'),
  ('select slot_id from public.slot_manifest'),
  ('insert into public.inventory_slots (pool_id) values (''doors'') returning id'),
  ('update public.inventory_slots set status = ''CONSUMED'' returning id'),
  ('delete from public.inventory_slots returning id'),
  ('select low_order from intake.pool_marks'),
  ('select intake.rebuild_inventory(''doors'')'),
  ('select msg_id from pgmq.q_intake_queue'),
  ('select pgmq.send(''intake_queue'', ''{}'')'),
  ('select jobid from cron.job'),
  ('select cron.schedule(''* * * * *'', ''select 1'')'),
  ('select outcome from public.claim_batch(array[''doors''], array[''ann''], array[''r''])'),
  ('select public.intake_queue_send(''{}'')'),
  ('select public.reap_orphaned_slots()'),
  ('select public.expire_holds()'),
  ('select id from audit.audit_logs'),
  ('select host from intake.hook_allowed_hosts'),
  ('select lane from public.bridge_lanes()'),
  ('select msg_id from public.bridge_take(array[0], array[10], 30)'),
  ('select msg_id from public.bridge_take_suspect(array[0], 30)'),
  ('select public.bridge_extend(''{1}'', ''{1}'', 30)'),
  ('select outcome from public.bridge_finish(''{1}'', ''{1}'', ''{gone}'', ''{null}'', ''{0}'')'),
  ('select pool_id from public.bridge_config(''{doors}'')'),
  ('select msg_id from public.list_dead_letters()'),
  ('select outcome from public.replay_dead_letters(''{1}'', ''eve'')'),
  ('select outcome from public.discard_dead_letters(''{1}'', ''eve'')'),
  ('select public.allow_hook_host(''127.0.0.1'', ''eve'')'),
  ('select public.disallow_hook_host(''127.0.0.1'', ''eve'')'),
  ('select public.hook_allowed_hosts()'),
  ('select public.live_sample()'),
  ('select public.take_sample()'),
  ('select public.note_marks(''[]'')'),
  ('select public.read_samples(now() - interval ''1 hour'', now(), 60)'),
  ('select public.vacuum_levels()'),
  ('select pool_id from public.pool_list()'),
  ('select pool_id from public.pool_create(''mine'', 1, ''{}'', ''eve'')'),
  ('select pool_id from public.pool_change(''doors'', ''{}'', 1, ''eve'')'),
  ('select claim_id from public.claim_search()'),
  ('select what from public.claim_timeline(gen_random_uuid())'),
  ('select claim_id from public.release_claim_as_operator(gen_random_uuid(), ''eve'')'),
  ('select id from public.audit_page()'),
  ('select public.intake_health()'),
  ('select public.session_end(''x'', now())'),
  ('select session_id from public.sessions_ended()'),
  ('select name from public.cell_join(''x'', 0, ''eve'')'),
  ('select public.cell_drain(''eve'')'),
  ('select name from public.cell_here()'),
  ('select pool_id from public.cell_directory()'),
  ('select public.cell_learn(''{}'', ''{}'', ''{}'', ''{}'', ''{}'')'),
  ('select messages from public.cell_left()'),
  ('select version from public.pool_pack(''doors'', ''b'', ''eve'')'),
  ('select seq from public.pool_parcels(''doors'', 2, 0, 1)'),
  ('select public.pool_receive(''doors'', 2, ''{}'', ''{}'', ''{}'')'),
  ('select public.pool_unpack(''doors'', 2, 0, ''eve'')'),
  ('select public.pool_sent(''doors'', 2)'),
  ('select name from public.operator_list()'),
  ('select name from public.known_operators()'),
  ('select public.operator_used(''ann'')'),
  ('select public.seal_audit()'),
  ('select audit.add_operator(''eve'', ''admin'', sha256(''k''), ''eve'')')
) t (statement);

select * from finish();
rollback;

-- The golden list of functions: who may execute what, in full.
begin;
select plan(5);

select bag_eq(
  $$ select a.grantee::regrole::text, p.oid::regprocedure::text
     from pg_proc p
     join pg_namespace n on n.oid = p.pronamespace
     cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where n.nspname in ('public', 'intake', 'audit')
       and (a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role')) $$,
  $$ values
    ('anon', 'claim_resource_and_queue(text,text,text)'),
    ('authenticated', 'claim_resource_and_queue(text,text,text)'),
    ('authenticated', 'release_own_claim(uuid,text,text,bytea)'),
    ('service_role', 'claim_resource_and_queue(text,text,text)'),
    ('service_role', 'release_own_claim(uuid,text,text,bytea)'),
    ('service_role', 'claim_batch(text[],text[],text[],boolean[],boolean,jsonb)'),
    ('service_role', 'get_claim(uuid,bytea)'),
    ('service_role', 'pool_status(text)'),
    ('service_role', 'expire_holds(integer)'),
    ('service_role', 'take_ends(integer,integer)'),
    ('service_role', 'finish_ends(uuid[],text[])'),
    ('service_role', 'intake_queue_read(integer,integer)'),
    ('service_role', 'intake_queue_delete(bigint[])'),
    ('service_role', 'intake_queue_send(jsonb)'),
    ('service_role', 'intake_route_to_dlq(bigint,jsonb,integer)'),
    ('service_role', 'snapshot_engine_metrics()'),
    ('service_role', 'reap_orphaned_slots(interval)'),
    ('service_role', 'bridge_config(text[])'),
    ('service_role', 'bridge_lanes()'),
    ('service_role', 'bridge_take(integer[],integer[],integer)'),
    ('service_role', 'bridge_take_suspect(integer[],integer)'),
    ('service_role', 'bridge_extend(bigint[],integer[],integer)'),
    ('service_role', 'bridge_first_claims(uuid[])'),
    ('service_role', 'bridge_finish(bigint[],integer[],text[],text[],integer[])'),
    ('service_role', 'list_dead_letters(text,text,interval,bigint[],bigint,integer)'),
    ('service_role', 'replay_dead_letters(bigint[],text,text,boolean)'),
    ('service_role', 'discard_dead_letters(bigint[],text,text,boolean)'),
    ('service_role', 'hook_allowed_hosts()'),
    ('service_role', 'reconcile_total()'),
    ('service_role', 'reconcile_claims(uuid,integer,uuid[])'),
    ('service_role', 'reconcile_messages(bigint,integer)'),
    ('service_role', 'reconcile_fix(uuid,text,text,jsonb)'),
    ('service_role', 'bridge_wake()'),
    ('service_role', 'intake_ready()'),
    ('service_role', 'answer_in_cell()'),
    ('service_role', 'live_sample()'),
    ('service_role', 'pool_list(text,text,integer)'),
    ('service_role', 'pool_create(text,integer,jsonb,text,text,text)'),
    ('service_role', 'pool_change(text,jsonb,integer,text,text,text)'),
    ('service_role', 'claim_search(uuid,text,text,text,text,uuid,integer)'),
    ('service_role', 'claim_timeline(uuid)'),
    ('service_role', 'release_claim_as_operator(uuid,text,text)'),
    ('service_role', 'audit_page(bigint,integer)'),
    ('service_role', 'intake_health()'),
    ('service_role', 'session_end(text,timestamp with time zone)'),
    ('service_role', 'sessions_ended()'),
    ('service_role', 'copy_doors(jsonb,timestamp with time zone)'),
    ('service_role', 'copied_door(text,text)'),
    ('service_role', 'copied_secret(text)'),
    ('service_role', 'inbox_accept(jsonb)'),
    ('service_role', 'inbox_lanes()'),
    ('service_role', 'inbox_take(integer,integer)'),
    ('service_role', 'inbox_take_suspect(integer)'),
    ('service_role', 'inbox_extend(bigint[],integer[],integer)'),
    ('service_role', 'inbox_finish(bigint[],integer[],text[],text[])'),
    ('service_role', 'inbox_list(boolean,bigint,integer)'),
    ('service_role', 'inbox_replay(bigint[],text,text)'),
    ('service_role', 'inbox_discard(bigint[],text,text)'),
    ('service_role', 'cell_join(text,integer,text,text)'),
    ('service_role', 'cell_drain(text,text)'),
    ('service_role', 'cell_here()'),
    ('service_role', 'cell_directory(text[])'),
    ('service_role', 'cell_learn(text[],text[],bigint[],text[],integer[])'),
    ('service_role', 'pool_pack(text,text,text,text)'),
    ('service_role', 'pool_parcels(text,bigint,integer,integer)'),
    ('service_role', 'pool_receive(text,bigint,integer[],text[],text[])'),
    ('service_role', 'pool_unpack(text,bigint,integer,text,text)'),
    ('service_role', 'pool_sent(text,bigint)'),
    ('service_role', 'known_operators()'),
    ('service_role', 'operator_used(text)'),
    ('service_role', 'begin_erasure(text,boolean,text,text,text)'),
    ('service_role', 'erase_step(text,integer)'),
    ('service_role', 'finish_erasure(text)'),
    ('service_role', 'personal_places(boolean)'),
    ('service_role', 'export_user(text,boolean,text,jsonb,integer)'),
    ('service_role', 'note_export(text,boolean,text,text)'),
    ('service_role', 'prune_step(integer)'),
    ('service_role', 'retention_rules()'),
    ('service_role', 'open_claims_of(text,integer)'),
    ('service_role', 'erase_claims(text,uuid[])'),
    ('service_role', 'seal_audit(integer)') $$,
  'these rights to execute are granted, and no others; PUBLIC has none'
);

select is_empty(
  $$ select p.oid::regprocedure from pg_proc p
     where p.pronamespace in ('public'::regnamespace, 'intake'::regnamespace)
       and p.prokind <> 'p'
       and not exists (select from unnest(p.proconfig) c where c = 'search_path=""') $$,
  'every function has an empty search path of its own'
);
select bag_eq(
  $$ select p.oid::regprocedure::text from pg_proc p
     where p.pronamespace in ('public'::regnamespace, 'intake'::regnamespace) and p.prokind = 'p' and not p.prosecdef $$,
  $$ values ('intake.expire_due_holds()'), ('intake.rebuild_lost_pools()') $$,
  'these commit as they go, which settings of their own would forbid: they have their caller''s rights'
);
select bag_eq(
  $$ select p.oid::regprocedure::text from pg_proc p
     where p.pronamespace in ('public'::regnamespace, 'intake'::regnamespace) and p.prosecdef $$,
  $$ values
    ('claim_resource_and_queue(text,text,text)'),
    ('release_own_claim(uuid,text,text,bytea)'),
    ('claim_batch(text[],text[],text[],boolean[],boolean,jsonb)'),
    ('get_claim(uuid,bytea)'),
    ('pool_status(text)'),
    ('expire_holds(integer)'),
    ('take_ends(integer,integer)'),
    ('finish_ends(uuid[],text[])'),
    ('intake_queue_read(integer,integer)'),
    ('intake_queue_delete(bigint[])'),
    ('intake_queue_send(jsonb)'),
    ('intake_route_to_dlq(bigint,jsonb,integer)'),
    ('snapshot_engine_metrics()'),
    ('reap_orphaned_slots(interval)'),
    ('bridge_config(text[])'),
    ('bridge_lanes()'),
    ('bridge_take(integer[],integer[],integer)'),
    ('bridge_take_suspect(integer[],integer)'),
    ('bridge_extend(bigint[],integer[],integer)'),
    ('bridge_first_claims(uuid[])'),
    ('bridge_finish(bigint[],integer[],text[],text[],integer[])'),
    ('list_dead_letters(text,text,interval,bigint[],bigint,integer)'),
    ('replay_dead_letters(bigint[],text,text,boolean)'),
    ('discard_dead_letters(bigint[],text,text,boolean)'),
    ('hook_allowed_hosts()'),
    ('reconcile_total()'),
    ('reconcile_claims(uuid,integer,uuid[])'),
    ('reconcile_messages(bigint,integer)'),
    ('reconcile_fix(uuid,text,text,jsonb)'),
    ('live_sample()'),
    ('pool_list(text,text,integer)'),
    ('pool_create(text,integer,jsonb,text,text,text)'),
    ('pool_change(text,jsonb,integer,text,text,text)'),
    ('claim_search(uuid,text,text,text,text,uuid,integer)'),
    ('claim_timeline(uuid)'),
    ('release_claim_as_operator(uuid,text,text)'),
    ('audit_page(bigint,integer)'),
    ('intake_health()'),
    ('session_end(text,timestamp with time zone)'),
    ('sessions_ended()'),
    ('copy_doors(jsonb,timestamp with time zone)'),
    ('copied_door(text,text)'),
    ('copied_secret(text)'),
    ('inbox_accept(jsonb)'),
    ('inbox_lanes()'),
    ('inbox_take(integer,integer)'),
    ('inbox_take_suspect(integer)'),
    ('inbox_extend(bigint[],integer[],integer)'),
    ('inbox_finish(bigint[],integer[],text[],text[])'),
    ('inbox_list(boolean,bigint,integer)'),
    ('inbox_replay(bigint[],text,text)'),
    ('inbox_discard(bigint[],text,text)'),
    ('cell_join(text,integer,text,text)'),
    ('cell_drain(text,text)'),
    ('cell_here()'),
    ('cell_directory(text[])'),
    ('cell_learn(text[],text[],bigint[],text[],integer[])'),
    ('pool_pack(text,text,text,text)'),
    ('pool_parcels(text,bigint,integer,integer)'),
    ('pool_receive(text,bigint,integer[],text[],text[])'),
    ('pool_unpack(text,bigint,integer,text,text)'),
    ('pool_sent(text,bigint)'),
    ('intake.pool_begins_here()'),
    ('intake.slots_begin_here()'),
    ('known_operators()'),
    ('operator_used(text)'),
    ('seal_audit(integer)'),
    ('intake.hook_urls_are_public()'),
    ('intake.validation_begins()'),
    ('intake.slots_added()'),
    ('intake.slots_withdrawn()'),
    ('intake.cache_emptied()'),
    ('intake.slot_became_available()') $$,
  'these functions run with the rights of their owner, and no others'
);
create function public.made_later() returns int language sql as 'select 1';
select is(
  has_function_privilege('anon', 'public.made_later()', 'execute')
    and not exists (
      select from pg_default_acl d where d.defaclnamespace = 'public'::regnamespace and d.defaclobjtype = 'f'
    ),
  false, 'a function made later is closed to anon, unless the project itself opens schema public'
);

select * from finish();
rollback;

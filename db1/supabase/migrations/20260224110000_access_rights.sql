-- INTAKE, last part: who may do what. Everything is closed, then opened by name; the golden list is
-- db1/supabase/tests/access/. Correct whatever default privileges the project came with.
-- What stood in these schemas before the first migration is not ours, and keeps its rights.

do $$
declare
  v_kind text;
  v_name text;
begin
  for v_kind, v_name in
    select case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass::text
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('public', 'intake', 'audit')
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and ('pg_catalog.pg_class'::regclass, c.oid) not in (select b.catalog, b.object from public.stood_before b)
    union all
    select 'routine', p.oid::regprocedure::text
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('public', 'intake', 'audit')
    where ('pg_catalog.pg_proc'::regclass, p.oid) not in (select b.catalog, b.object from public.stood_before b)
    union all
    select 'schema', quote_ident(n.nspname)
    from pg_catalog.pg_namespace n
    where n.nspname in ('intake', 'audit')
      and ('pg_catalog.pg_namespace'::regclass, n.oid) not in (select b.catalog, b.object from public.stood_before b)
  loop
    execute format('revoke all on %s %s from public, anon, authenticated, service_role', v_kind, v_name);
  end loop;
end
$$;

drop table public.stood_before;

-- No policies: service_role bypasses row security, and no other role has a grant to begin with.
alter table public.inventory_slots enable row level security;
alter table public.engine_config enable row level security;
alter table public.engine_metrics enable row level security;
alter table public.claims enable row level security;
alter table public.slot_manifest enable row level security;
alter table public.pool_details enable row level security;
alter table public.orders enable row level security;
alter table public.order_payments enable row level security;
alter table public.checkouts enable row level security;

grant execute on function public.claim_resource_and_queue(text, text, text) to anon, authenticated, service_role;
grant execute on function public.release_own_claim(uuid, text, text, bytea) to authenticated, service_role;

grant execute on function public.claim_batch(text[], text[], text[], boolean[], boolean, jsonb, int[], text[]) to service_role;
grant execute on function public.get_claim(uuid, bytea) to service_role;
grant execute on function public.pool_status(text) to service_role;
grant execute on function public.expire_holds(int) to service_role;
grant execute on function public.take_ends(int, int) to service_role;
grant execute on function public.finish_ends(uuid[], text[]) to service_role;
grant execute on function public.intake_queue_read(int, int) to service_role;
grant execute on function public.intake_queue_delete(bigint[]) to service_role;
grant execute on function public.intake_queue_send(jsonb) to service_role;
grant execute on function public.intake_route_to_dlq(bigint, jsonb, int) to service_role;
grant execute on function public.snapshot_engine_metrics() to service_role;
grant execute on function public.reap_orphaned_slots(interval) to service_role;
grant execute on function public.bridge_config(text[]) to service_role;
grant execute on function public.bridge_lanes() to service_role;
grant execute on function public.bridge_take(int[], int[], int) to service_role;
grant execute on function public.bridge_take_suspect(int[], int) to service_role;
grant execute on function public.bridge_first_claims(uuid[]) to service_role;
grant execute on function public.bridge_extend(bigint[], int[], int) to service_role;
grant execute on function public.list_dead_letters(text, text, interval, bigint[], bigint, int, int) to service_role;
grant execute on function public.replay_dead_letters(bigint[], text, text, boolean) to service_role;
grant execute on function public.discard_dead_letters(bigint[], text, text, boolean) to service_role;
grant execute on function public.bridge_finish(bigint[], int[], text[], text[], int[]) to service_role;
grant execute on function public.bridge_wake() to service_role;
grant execute on function public.reconcile_total() to service_role;
grant execute on function public.reconcile_claims(uuid, int, uuid[]) to service_role;
grant execute on function public.reconcile_messages(bigint, int) to service_role;
grant execute on function public.reconcile_fix(uuid, text, text, jsonb) to service_role;
grant execute on function public.hook_allowed_hosts() to service_role;
grant execute on function public.intake_ready() to service_role;
grant execute on function public.scheduler_duties() to service_role;
grant execute on function public.answer_in_cell() to service_role;
grant execute on function public.live_sample() to service_role;
grant execute on function public.pool_list(text, text, int, int) to service_role;
grant execute on function public.pool_create(text, int, jsonb, text, text, text) to service_role;
grant execute on function public.pool_change(text, jsonb, int, text, text, text, text[]) to service_role;
grant execute on function public.claim_search(text, text, text, text, text, uuid, int, int) to service_role;
grant execute on function public.claim_timeline(uuid) to service_role;
grant execute on function public.release_claim_as_operator(uuid, text, text) to service_role;
grant execute on function public.order_list(text, text, text, uuid, int, int) to service_role;
grant execute on function public.order_audit(uuid) to service_role;
grant execute on function public.paid_pools() to service_role;
grant execute on function public.decided_payments(text[]) to service_role;
grant execute on function public.find_checkouts(text[]) to service_role;
grant execute on function public.audit_page(bigint, int, text, text, text, bigint, int) to service_role;
grant execute on function public.search_intake(text, int) to service_role;
grant execute on function public.claim_total(text, text, text, text, text) to service_role;
grant execute on function public.pool_total() to service_role;
grant execute on function public.order_total(text, text, text) to service_role;
grant execute on function public.dead_letter_total(text, text, interval) to service_role;
grant execute on function public.audit_total(text, text, text, bigint) to service_role;
grant execute on function public.user_audit(text, int) to service_role;
grant execute on function public.intake_health() to service_role;
grant execute on function public.session_end(text, timestamptz) to service_role;
grant execute on function public.sessions_ended() to service_role;
grant execute on function public.copy_doors(jsonb, timestamptz) to service_role;
grant execute on function public.copied_door(text, text) to service_role;
grant execute on function public.copied_secret(text) to service_role;
grant execute on function public.inbox_accept(jsonb) to service_role;
grant execute on function public.inbox_lanes() to service_role;
grant execute on function public.inbox_take(int, int) to service_role;
grant execute on function public.inbox_take_suspect(int) to service_role;
grant execute on function public.inbox_extend(bigint[], int[], int) to service_role;
grant execute on function public.inbox_finish(bigint[], int[], text[], text[]) to service_role;
grant execute on function public.inbox_list(boolean, bigint, int) to service_role;
grant execute on function public.inbox_replay(bigint[], text, text) to service_role;
grant execute on function public.inbox_discard(bigint[], text, text) to service_role;
grant execute on function public.cell_join(text, int, text, text) to service_role;
grant execute on function public.cell_drain(text, text) to service_role;
grant execute on function public.cell_here() to service_role;
grant execute on function public.cell_directory(text[]) to service_role;
grant execute on function public.cell_learn(text[], text[], bigint[], text[], int[]) to service_role;
grant execute on function public.cell_left() to service_role;
grant execute on function public.pool_pack(text, text, text, text) to service_role;
grant execute on function public.pool_parcels(text, bigint, int, int) to service_role;
grant execute on function public.pool_receive(text, bigint, int[], text[], text[]) to service_role;
grant execute on function public.pool_unpack(text, bigint, int, text, text) to service_role;
grant execute on function public.pool_sent(text, bigint) to service_role;
grant execute on function public.pool_details(text) to service_role;
grant execute on function public.set_pool_details(text, jsonb, text, text) to service_role;
grant execute on function public.seat_details(text, uuid) to service_role;
grant execute on function public.begin_checkout(uuid, text, text, bytea) to service_role;
grant execute on function public.checkout_created(uuid, int, text, text) to service_role;
grant execute on function public.take_closing(int, int, boolean) to service_role;
grant execute on function public.close_checkout(uuid, int, uuid, text, text) to service_role;
grant execute on function public.checkout_later(uuid, int, uuid, int) to service_role;
grant execute on function public.settle_payments(jsonb) to service_role;
grant execute on function public.settle_payment(jsonb, boolean) to service_role;
grant execute on function public.void_targets(jsonb, uuid[], boolean) to service_role;
grant execute on function public.finish_void(uuid[], text) to service_role;
grant execute on function public.order_details(uuid) to service_role;
grant execute on function public.operator_list() to service_role;
grant execute on function public.known_operators() to service_role;
grant execute on function public.operator_used(text) to service_role;
grant execute on function public.seal_audit(int) to service_role;
grant execute on function public.begin_erasure(text, boolean, text, text, text) to service_role;
grant execute on function public.erase_step(text, int) to service_role;
grant execute on function public.finish_erasure(text) to service_role;
grant execute on function public.personal_places(boolean) to service_role;
grant execute on function public.export_user(text, boolean, text, jsonb, int) to service_role;
grant execute on function public.note_export(text, boolean, text, text) to service_role;
grant execute on function public.pool_moves() to service_role;
grant execute on function public.prune_step(int) to service_role;
grant execute on function public.retention_rules() to service_role;
grant execute on function public.take_sample(jsonb, timestamptz) to service_role;
grant execute on function public.note_marks(jsonb, timestamptz) to service_role;
grant execute on function public.read_samples(timestamptz, timestamptz, int, text, timestamptz) to service_role;
grant execute on function public.note_issues() to service_role;
grant execute on function public.issue_list(uuid, text, text, text, text, int) to service_role;
grant execute on function public.issue_replay(uuid, text, text, boolean, int) to service_role;
grant execute on function public.issue_resolve(uuid, text, text) to service_role;
grant execute on function public.take_alerts(int, int) to service_role;
grant execute on function public.finish_alert(bigint, uuid, boolean) to service_role;
grant execute on function public.vacuum_levels() to service_role;
grant execute on function public.open_claims_of(text, int) to service_role;
grant execute on function public.erase_claims(text, uuid[]) to service_role;

grant select, insert, update, delete on public.engine_config to service_role;
grant select, insert, update, delete on public.inventory_slots to service_role;
grant select on public.engine_metrics, public.claims, public.slot_manifest to service_role;
-- The default of inventory_slots.sale_order is evaluated with the rights of the role that inserts.
grant usage on sequence intake.sale_order_seq to service_role;

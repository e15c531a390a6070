-- LEDGER, last part: who may do what. Everything is closed, then opened by name; the golden list is
-- db2/supabase/tests/access/. Correct whatever default privileges the project came with.
-- What stood in these schemas before the first migration is not ours, and keeps its rights.

do $$
declare
  v_kind text;
  v_name text;
begin
  for v_kind, v_name in
    select case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass::text
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('public', 'webhook', 'calls', 'audit')
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and ('pg_catalog.pg_class'::regclass, c.oid) not in (select b.catalog, b.object from public.stood_before b)
    union all
    select 'routine', p.oid::regprocedure::text
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('public', 'webhook', 'calls', 'audit')
    where ('pg_catalog.pg_proc'::regclass, p.oid) not in (select b.catalog, b.object from public.stood_before b)
    union all
    select 'schema', quote_ident(n.nspname)
    from pg_catalog.pg_namespace n
    where n.nspname in ('webhook', 'calls', 'audit')
      and ('pg_catalog.pg_namespace'::regclass, n.oid) not in (select b.catalog, b.object from public.stood_before b)
  loop
    execute format('revoke all on %s %s from public, anon, authenticated, service_role', v_kind, v_name);
  end loop;
end
$$;

drop table public.stood_before;

-- No policies but that of the tickets: service_role bypasses row security, and no other role has a grant to begin with.
alter table public.webhook_endpoints enable row level security;
alter table public.webhook_events enable row level security;
alter table public.webhook_bodies enable row level security;
alter table public.webhook_alarms enable row level security;
alter table public.webhook_handlers enable row level security;
alter table webhook.tenants enable row level security;
alter table webhook.secret_names enable row level security;
alter table webhook.replies enable row level security;
alter table webhook.handler_faults enable row level security;

grant execute on function public.finalize_transaction(jsonb) to service_role;
grant execute on function public.finalize_batch(jsonb) to service_role;
grant execute on function public.write_tickets(uuid[], text[], text[], uuid[], boolean[], uuid[]) to service_role;
grant execute on function public.refuse_isolation() to service_role;
grant execute on function public.users_now(uuid[], text[]) to service_role;
grant execute on function public.void_tickets(jsonb) to service_role;
grant execute on function public.tickets_of(jsonb) to service_role;
grant execute on function public.tickets_page(uuid, int, uuid[]) to service_role;
grant execute on function public.ledger_ready() to service_role;
grant execute on function public.webhook_sample() to service_role;
grant execute on function public.ledger_sample() to service_role;
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
grant execute on function public.ticket_of_claim(uuid) to service_role;
grant execute on function public.audit_page(bigint, int, text, text, text, bigint, int) to service_role;
grant execute on function public.search_ledger(text, int) to service_role;
grant execute on function public.ticket_list(text, text, text, text, text, uuid, int, int) to service_role;
grant execute on function public.ticket_total(text, text, text, text, text) to service_role;
grant execute on function public.payment_list(text, text, text, text, int, int) to service_role;
grant execute on function public.payment_total(text, text, text) to service_role;
grant execute on function public.credit_list(text, text, text, bigint, int, int) to service_role;
grant execute on function public.credit_total(text, text, text) to service_role;
grant execute on function public.event_total(uuid, text, text, text, timestamptz, timestamptz, text, text) to service_role;
grant execute on function public.call_total(text, text, text) to service_role;
grant execute on function public.refund_total(text) to service_role;
grant execute on function public.audit_total(text, text, text, bigint) to service_role;
grant execute on function public.payment_details(text) to service_role;
grant execute on function public.user_audit(text, int) to service_role;
grant execute on function public.ledger_health() to service_role;
grant execute on function public.copy_operators(jsonb, timestamptz) to service_role;
grant execute on function public.known_operators() to service_role;
grant execute on function public.seal_audit(int) to service_role;
grant execute on function public.outbox_take(int, int) to service_role;
grant execute on function public.outbox_finish(text, uuid, jsonb) to service_role;
grant execute on function public.outbox_finish_all(jsonb) to service_role;
grant execute on function public.outbox_later_all(jsonb) to service_role;
grant execute on function public.void_order_tickets(text, jsonb) to service_role;
grant execute on function public.request_void(uuid[], boolean, text, text) to service_role;
grant execute on function public.record_pulled(text, jsonb) to service_role;
grant execute on function public.refunds_take(int, int) to service_role;
grant execute on function public.refund_sent(text, uuid, jsonb) to service_role;
grant execute on function public.refund_failed(text, uuid, text, boolean, int) to service_role;
grant execute on function public.decide_refunds(text[], text, text, text, boolean) to service_role;
grant execute on function public.list_refunds(text, text, int, int) to service_role;
grant execute on function public.order_refunds(uuid) to service_role;
grant execute on function public.get_refund(text) to service_role;
grant execute on function public.order_of_payment(text) to service_role;
grant execute on function public.order_audit(uuid, uuid[]) to service_role;
grant execute on function public.check_ticket(uuid, text) to service_role;
grant execute on function public.ticket_details(uuid) to service_role;
grant execute on function public.ledger_order_details(uuid) to service_role;
grant execute on function public.ledger_order_metrics() to service_role;
grant execute on function public.voided_claims(uuid[]) to service_role;
grant execute on function public.kept_claims(uuid[]) to service_role;
grant execute on function public.settled_payments(text, int) to service_role;
grant execute on function public.ticket_purchase(uuid) to service_role;
grant execute on function public.resettle_payments(text[], text, text) to service_role;
grant execute on function public.begin_erasure(text, boolean, text, text, text) to service_role;
grant execute on function public.erase_step(text, int) to service_role;
grant execute on function public.finish_erasure(text) to service_role;
grant execute on function public.personal_places(boolean) to service_role;
grant execute on function public.export_user(text, boolean, text, jsonb, int) to service_role;
grant execute on function public.note_export(text, boolean, text, text) to service_role;
grant execute on function public.prune_step(int) to service_role;
grant execute on function public.retention_rules() to service_role;
grant execute on function public.erase_tickets(text, jsonb) to service_role;

-- The row policies narrow this to a user's own.
grant execute on function public.answer_in_cell() to authenticated, service_role;
grant execute on function public.my_tickets() to authenticated, service_role;
grant select on public.confirmed_tickets to authenticated;
grant select, insert on public.confirmed_tickets to service_role;
grant select on public.voided_tickets to authenticated, service_role;
grant select on public.erased_claims to service_role;

-- service_role reads the tables of webhooks and calls, and writes them through functions only.
grant usage on schema webhook, calls to service_role;
grant select on public.webhook_endpoints, public.webhook_events, public.webhook_bodies, public.webhook_alarms,
  public.webhook_handlers, public.payments, public.payment_refunds, public.payment_transactions,
  public.payment_rules, public.credit_ledger, public.claim_outbox, public.refunds_due, public.ticket_uses,
  public.webhook_side_effects, public.call_sites, public.calls to service_role;

grant execute on function webhook.find_endpoint(text) to service_role;
grant execute on function webhook.list_endpoints() to service_role;
grant execute on function webhook.doors() to service_role;
grant execute on function webhook.add_endpoint(text, text, text[], text, jsonb, text, text, text) to service_role;
grant execute on function webhook.change_endpoint(text, jsonb, text, text) to service_role;
grant execute on function webhook.rotate_endpoint(text, text[], boolean, text, text) to service_role;
grant execute on function webhook.list_secret_names() to service_role;
grant execute on function webhook.find_secret(text) to service_role;
grant execute on function webhook.record_events(
  uuid[], text[], text[], timestamptz[], text[], text[], uuid[], text[], text[], text[], text[], boolean, timestamptz[]
) to service_role;
grant execute on function webhook.event_lanes() to service_role;
grant execute on function webhook.take_events(int[], int[]) to service_role;
grant execute on function webhook.take_suspect(int[]) to service_role;
grant execute on function webhook.process_events(uuid[], uuid[]) to service_role;
grant execute on function webhook.process_event(uuid) to service_role;
grant execute on function webhook.hold_event(uuid, uuid) to service_role;
grant execute on function webhook.finish_event(uuid, uuid, text, text) to service_role;
grant execute on function webhook.extend_leases(uuid[], uuid[]) to service_role;
grant execute on function webhook.claim_next_event(uuid) to service_role;
grant execute on function webhook.mark_event_result(uuid, public.webhook_event_status, text) to service_role;
grant execute on function webhook.list_events(
  uuid, text, text, text[], timestamptz, timestamptz, uuid, int, boolean, text, text, text, int
) to service_role;
grant execute on function webhook.show_event(uuid) to service_role;
grant execute on function webhook.event_links(uuid) to service_role;
grant execute on function webhook.replay_events(uuid[], text, text, boolean, text) to service_role;
grant execute on function webhook.skip_events(uuid[], text, text, boolean) to service_role;
grant execute on function webhook.prune_payloads(int, int, text, text) to service_role;
grant execute on function webhook.metrics() to service_role;
grant execute on function webhook.replay_totals() to service_role;
grant execute on function webhook.apply_fetched(uuid, jsonb) to service_role;
grant execute on function webhook.balance(text) to service_role;
grant execute on function webhook.payments_without_user(int) to service_role;
grant execute on function webhook.count_payments_without_user() to service_role;
grant execute on function webhook.name_payment_user(text, text, text, text, text) to service_role;
grant execute on procedure webhook.work(int) to service_role;
grant execute on function webhook.list_handlers() to service_role;
grant execute on function webhook.remove_handler(text, text, text) to service_role;
grant execute on function webhook.missing_handlers(int) to service_role;
grant execute on function webhook.register_handlers(jsonb) to service_role;
grant execute on function webhook.list_handler_faults() to service_role;
grant execute on function webhook.begin_typescript_event(uuid, text[]) to service_role;
grant execute on function webhook.reply_event(uuid, text) to service_role;
grant execute on function webhook.find_reply(uuid) to service_role;
grant execute on function webhook.wake_workers() to service_role;
grant execute on function webhook.begin_backfill(uuid, timestamptz, timestamptz, text, text) to service_role;
grant execute on function webhook.begin_comparison(uuid, int) to service_role;
grant execute on function webhook.known_events(uuid, text[]) to service_role;
grant execute on function webhook.find_payments(text, text[]) to service_role;
grant execute on function webhook.find_transactions(text, text[]) to service_role;

grant execute on function calls.find_site(text) to service_role;
grant execute on function calls.list_sites(text, int) to service_role;
grant execute on function calls.record_calls(
  text[], text[], text[], text[], timestamptz[], text[], uuid[], timestamptz[]
) to service_role;
grant execute on function calls.add_site(text, text[], boolean, text[], text, text, text) to service_role;
grant execute on function calls.change_site(text, jsonb, text, text) to service_role;
grant execute on function calls.rotate_site(text, text[], boolean, text, text) to service_role;
grant execute on function calls.list_calls(text, text, text, uuid, int, int) to service_role;
grant execute on function calls.show_call(uuid) to service_role;

-- The golden list of the ledger: who may do what, in full.
begin;
select plan(10);

select bag_eq(
  $$ select a.grantee::regrole::text, p.oid::regprocedure::text
     from pg_proc p
     join pg_namespace n on n.oid = p.pronamespace
     cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
     where n.nspname in ('public', 'webhook', 'calls', 'audit')
       and (a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role')) $$,
  $$ values
    ('service_role', 'finalize_batch(jsonb)'),
    ('authenticated', 'my_tickets()'),
    ('service_role', 'my_tickets()'),
    ('service_role', 'write_tickets(uuid[],text[],text[],uuid[],boolean[],uuid[])'),
    ('service_role', 'refuse_isolation()'),
    ('service_role', 'void_tickets(jsonb)'),
    ('service_role', 'tickets_of(jsonb)'),
    ('service_role', 'finalize_transaction(jsonb)'),
    ('service_role', 'ledger_ready()'),
    ('authenticated', 'answer_in_cell()'),
    ('service_role', 'answer_in_cell()'),
    ('service_role', 'tickets_page(uuid,integer,uuid[])'),
    ('service_role', 'webhook_sample()'),
    ('service_role', 'ledger_sample()'),
    ('service_role', 'take_sample(jsonb,timestamp with time zone)'),
    ('service_role', 'note_marks(jsonb,timestamp with time zone)'),
    ('service_role', 'read_samples(timestamp with time zone,timestamp with time zone,integer,text,timestamp with time zone)'),
    ('service_role', 'note_issues()'),
    ('service_role', 'issue_list(uuid,text,text,text,text,integer)'),
    ('service_role', 'issue_replay(uuid,text,text,boolean,integer)'),
    ('service_role', 'issue_resolve(uuid,text,text)'),
    ('service_role', 'take_alerts(integer,integer)'),
    ('service_role', 'finish_alert(bigint,uuid,boolean)'),
    ('service_role', 'vacuum_levels()'),
    ('service_role', 'ticket_of_claim(uuid)'),
    ('service_role', 'audit_page(bigint,integer,text,text,text,bigint,integer)'),
    ('service_role', 'search_ledger(text,integer)'),
    ('service_role', 'ticket_list(text,text,text,text,text,uuid,integer,integer)'),
    ('service_role', 'ticket_total(text,text,text,text,text)'),
    ('service_role', 'payment_list(text,text,text,text,integer,integer)'),
    ('service_role', 'payment_total(text,text,text)'),
    ('service_role', 'credit_list(text,text,text,bigint,integer,integer)'),
    ('service_role', 'credit_total(text,text,text)'),
    ('service_role', 'event_total(uuid,text,text,text,timestamp with time zone,timestamp with time zone,text,text)'),
    ('service_role', 'call_total(text,text,text)'),
    ('service_role', 'refund_total(text)'),
    ('service_role', 'audit_total(text,text,text,bigint)'),
    ('service_role', 'payment_details(text)'),
    ('service_role', 'webhook.event_links(uuid)'),
    ('service_role', 'user_audit(text,integer)'),
    ('service_role', 'ledger_health()'),
    ('service_role', 'kept_claims(uuid[])'),
    ('service_role', 'copy_operators(jsonb,timestamp with time zone)'),
    ('service_role', 'known_operators()'),
    ('service_role', 'seal_audit(integer)'),
    ('service_role', 'outbox_take(integer,integer)'),
    ('service_role', 'outbox_finish(text,uuid,jsonb)'),
    ('service_role', 'outbox_finish_all(jsonb)'),
    ('service_role', 'outbox_later_all(jsonb)'),
    ('service_role', 'void_order_tickets(text,jsonb)'),
    ('service_role', 'request_void(uuid[],boolean,text,text)'),
    ('service_role', 'record_pulled(text,jsonb)'),
    ('service_role', 'refunds_take(integer,integer)'),
    ('service_role', 'refund_sent(text,uuid,jsonb)'),
    ('service_role', 'refund_failed(text,uuid,text,boolean,integer)'),
    ('service_role', 'decide_refunds(text[],text,text,text,boolean)'),
    ('service_role', 'list_refunds(text,text,integer,integer)'),
    ('service_role', 'order_refunds(uuid)'),
    ('service_role', 'get_refund(text)'),
    ('service_role', 'order_of_payment(text)'),
    ('service_role', 'order_audit(uuid,uuid[])'),
    ('service_role', 'check_ticket(uuid,text)'),
    ('service_role', 'ticket_details(uuid)'),
    ('service_role', 'ledger_order_details(uuid)'),
    ('service_role', 'ledger_order_metrics()'),
    ('service_role', 'voided_claims(uuid[])'),
    ('service_role', 'settled_payments(text,integer)'),
    ('service_role', 'ticket_purchase(uuid)'),
    ('service_role', 'resettle_payments(text[],text,text)'),
    ('service_role', 'begin_erasure(text,boolean,text,text,text)'),
    ('service_role', 'erase_step(text,integer)'),
    ('service_role', 'finish_erasure(text)'),
    ('service_role', 'personal_places(boolean)'),
    ('service_role', 'export_user(text,boolean,text,jsonb,integer)'),
    ('service_role', 'note_export(text,boolean,text,text)'),
    ('service_role', 'prune_step(integer)'),
    ('service_role', 'retention_rules()'),
    ('service_role', 'erase_tickets(text,jsonb)'),
    ('service_role', 'users_now(uuid[],text[])'),
    ('service_role', 'webhook.add_endpoint(text,text,text[],text,jsonb,text,text,text)'),
    ('service_role', 'webhook.balance(text)'),
    ('service_role', 'webhook.apply_fetched(uuid,jsonb)'),
    ('service_role', 'webhook.payments_without_user(integer)'),
    ('service_role', 'webhook.count_payments_without_user()'),
    ('service_role', 'webhook.name_payment_user(text,text,text,text,text)'),
    ('service_role', 'webhook.begin_typescript_event(uuid,text[])'),
    ('service_role', 'webhook.change_endpoint(text,jsonb,text,text)'),
    ('service_role', 'webhook.rotate_endpoint(text,text[],boolean,text,text)'),
    ('service_role', 'webhook.claim_next_event(uuid)'),
    ('service_role', 'webhook.extend_leases(uuid[],uuid[])'),
    ('service_role', 'webhook.find_endpoint(text)'),
    ('service_role', 'webhook.find_secret(text)'),
    ('service_role', 'webhook.list_secret_names()'),
    ('service_role', 'webhook.finish_event(uuid,uuid,text,text)'),
    ('service_role', 'webhook.hold_event(uuid,uuid)'),
    ('service_role', 'webhook.list_endpoints()'),
    ('service_role', 'webhook.doors()'),
    ('service_role', 'webhook.list_handlers()'),
    ('service_role', 'webhook.missing_handlers(integer)'),
    ('service_role', 'webhook.remove_handler(text,text,text)'),
    ('service_role', 'webhook.list_events(uuid,text,text,text[],timestamp with time zone,timestamp with time zone,uuid,integer,boolean,text,text,text,integer)'),
    ('service_role', 'webhook.mark_event_result(uuid,webhook_event_status,text)'),
    ('service_role', 'webhook.metrics()'),
    ('service_role', 'webhook.process_event(uuid)'),
    ('service_role', 'webhook.process_events(uuid[],uuid[])'),
    ('service_role', 'webhook.prune_payloads(integer,integer,text,text)'),
    ('service_role', 'webhook.record_events(uuid[],text[],text[],timestamp with time zone[],text[],text[],uuid[],text[],text[],text[],text[],boolean,timestamp with time zone[])'),
    ('service_role', 'webhook.register_handlers(jsonb)'),
    ('service_role', 'webhook.list_handler_faults()'),
    ('service_role', 'webhook.reply_event(uuid,text)'),
    ('service_role', 'webhook.find_reply(uuid)'),
    ('service_role', 'webhook.replay_events(uuid[],text,text,boolean,text)'),
    ('service_role', 'webhook.replay_totals()'),
    ('service_role', 'webhook.show_event(uuid)'),
    ('service_role', 'webhook.skip_events(uuid[],text,text,boolean)'),
    ('service_role', 'webhook.event_lanes()'),
    ('service_role', 'webhook.take_events(integer[],integer[])'),
    ('service_role', 'webhook.take_suspect(integer[])'),
    ('service_role', 'webhook.wake_workers()'),
    ('service_role', 'webhook.begin_backfill(uuid,timestamp with time zone,timestamp with time zone,text,text)'),
    ('service_role', 'webhook.begin_comparison(uuid,integer)'),
    ('service_role', 'webhook.known_events(uuid,text[])'),
    ('service_role', 'webhook.find_payments(text,text[])'),
    ('service_role', 'webhook.find_transactions(text,text[])'),
    ('service_role', 'webhook.work(integer)'),
    ('service_role', 'calls.add_site(text,text[],boolean,text[],text,text,text)'),
    ('service_role', 'calls.change_site(text,jsonb,text,text)'),
    ('service_role', 'calls.rotate_site(text,text[],boolean,text,text)'),
    ('service_role', 'calls.find_site(text)'),
    ('service_role', 'calls.list_calls(text,text,text,uuid,integer,integer)'),
    ('service_role', 'calls.list_sites(text,integer)'),
    ('service_role', 'calls.record_calls(text[],text[],text[],text[],timestamp with time zone[],text[],uuid[],timestamp with time zone[])'),
    ('service_role', 'calls.show_call(uuid)') $$,
  'these rights to execute are granted, and no others; PUBLIC has none'
);
select bag_eq(
  $$ select a.grantee::regrole::text, c.relname::text, a.privilege_type
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     cross join lateral aclexplode(coalesce(
       c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)
     )) a
     where n.nspname in ('public', 'webhook', 'calls', 'audit') and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
       and (a.grantee = 0 or a.grantee::regrole::text in ('anon', 'authenticated', 'service_role')) $$,
  $$ values
    ('authenticated', 'confirmed_tickets', 'SELECT'),
    ('service_role', 'confirmed_tickets', 'SELECT'),
    ('service_role', 'confirmed_tickets', 'INSERT'),
    ('authenticated', 'voided_tickets', 'SELECT'),
    ('service_role', 'voided_tickets', 'SELECT'),
    ('service_role', 'erased_claims', 'SELECT'),
    ('service_role', 'webhook_endpoints', 'SELECT'),
    ('service_role', 'webhook_events', 'SELECT'),
    ('service_role', 'webhook_bodies', 'SELECT'),
    ('service_role', 'webhook_alarms', 'SELECT'),
    ('service_role', 'webhook_handlers', 'SELECT'),
    ('service_role', 'webhook_side_effects', 'SELECT'),
    ('service_role', 'payments', 'SELECT'),
    ('service_role', 'payment_refunds', 'SELECT'),
    ('service_role', 'payment_transactions', 'SELECT'),
    ('service_role', 'payment_rules', 'SELECT'),
    ('service_role', 'credit_ledger', 'SELECT'),
    ('service_role', 'claim_outbox', 'SELECT'),
    ('service_role', 'refunds_due', 'SELECT'),
    ('service_role', 'ticket_uses', 'SELECT'),
    ('service_role', 'call_sites', 'SELECT'),
    ('service_role', 'calls', 'SELECT') $$,
  'these rights to tables, views and sequences are granted, and no others; PUBLIC has none'
);
select is_empty(
  $$ select t.attrelid::regclass, t.attname from pg_attribute t join pg_class c on c.oid = t.attrelid
     where c.relnamespace = 'public'::regnamespace and t.attacl is not null $$,
  'no column has rights of its own'
);
select is_empty(
  $$ select c.oid::regclass from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relrowsecurity $$,
  'every table in public has row level security'
);
select bag_eq(
  $$ select c.relname::text, p.polname::text, p.polcmd::text, p.polroles::regrole[]::text
     from pg_policy p join pg_class c on c.oid = p.polrelid where c.relnamespace = 'public'::regnamespace $$,
  $$ values ('confirmed_tickets', 'own_tickets', 'r', '{authenticated}'),
    ('voided_tickets', 'own_voided_tickets', 'r', '{authenticated}') $$,
  'two policies open two tables, to signed-in users, for reading'
);
select is_empty(
  $$ select p.oid::regprocedure from pg_proc p
     where p.pronamespace in ('public'::regnamespace, 'webhook'::regnamespace, 'calls'::regnamespace)
       and not exists (select from unnest(p.proconfig) c where c = 'search_path=""')
       -- With one it could not commit; it runs with the rights of its caller.
       and not (p.oid = 'webhook.work(int)'::regprocedure and not p.prosecdef) $$,
  'every function has an empty search path of its own'
);
select bag_eq(
  $$ select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'public'::regnamespace and p.prosecdef $$,
  $$ values
    ('void_tickets(jsonb)'),
    ('tickets_page(uuid,integer,uuid[])'),
    ('webhook_sample()'),
    ('ledger_sample()'),
    ('take_sample(jsonb,timestamp with time zone)'),
    ('note_marks(jsonb,timestamp with time zone)'),
    ('read_samples(timestamp with time zone,timestamp with time zone,integer,text,timestamp with time zone)'),
    ('note_issues()'),
    ('issue_list(uuid,text,text,text,text,integer)'),
    ('issue_replay(uuid,text,text,boolean,integer)'),
    ('issue_resolve(uuid,text,text)'),
    ('take_alerts(integer,integer)'),
    ('finish_alert(bigint,uuid,boolean)'),
    ('vacuum_levels()'),
    ('ticket_of_claim(uuid)'),
    ('audit_page(bigint,integer,text,text,text,bigint,integer)'),
    ('search_ledger(text,integer)'),
    ('ticket_list(text,text,text,text,text,uuid,integer,integer)'),
    ('ticket_total(text,text,text,text,text)'),
    ('payment_list(text,text,text,text,integer,integer)'),
    ('payment_total(text,text,text)'),
    ('credit_list(text,text,text,bigint,integer,integer)'),
    ('credit_total(text,text,text)'),
    ('event_total(uuid,text,text,text,timestamp with time zone,timestamp with time zone,text,text)'),
    ('call_total(text,text,text)'),
    ('refund_total(text)'),
    ('audit_total(text,text,text,bigint)'),
    ('payment_details(text)'),
    ('user_audit(text,integer)'),
    ('ledger_health()'),
    ('kept_claims(uuid[])'),
    ('copy_operators(jsonb,timestamp with time zone)'),
    ('known_operators()'),
    ('begin_erasure(text,boolean,text,text,text)'),
    ('erase_step(text,integer)'),
    ('finish_erasure(text)'),
    ('personal_places(boolean)'),
    ('export_user(text,boolean,text,jsonb,integer)'),
    ('note_export(text,boolean,text,text)'),
    ('prune_step(integer)'),
    ('retention_rules()'),
    ('erase_tickets(text,jsonb)'),
    ('seal_audit(integer)'),
    ('outbox_take(integer,integer)'),
    ('outbox_finish(text,uuid,jsonb)'),
    ('outbox_finish_all(jsonb)'),
    ('outbox_later_all(jsonb)'),
    ('void_order_tickets(text,jsonb)'),
    ('request_void(uuid[],boolean,text,text)'),
    ('record_pulled(text,jsonb)'),
    ('refunds_take(integer,integer)'),
    ('refund_sent(text,uuid,jsonb)'),
    ('refund_failed(text,uuid,text,boolean,integer)'),
    ('decide_refunds(text[],text,text,text,boolean)'),
    ('list_refunds(text,text,integer,integer)'),
    ('order_refunds(uuid)'),
    ('get_refund(text)'),
    ('order_of_payment(text)'),
    ('order_audit(uuid,uuid[])'),
    ('check_ticket(uuid,text)'),
    ('ticket_details(uuid)'),
    ('ledger_order_details(uuid)'),
    ('ledger_order_metrics()'),
    ('voided_claims(uuid[])'),
    ('settled_payments(text,integer)'),
    ('ticket_purchase(uuid)'),
    ('resettle_payments(text[],text,text)') $$,
  'these functions in public run with the rights of their owner, and no others'
);
select is_empty(
  $$ select p.oid::regprocedure from pg_proc p
     where p.prosecdef and p.pronamespace in ('webhook'::regnamespace, 'calls'::regnamespace)
       and not has_function_privilege('service_role', p.oid, 'execute') $$,
  'beside them, only what service_role may call does'
);
select bag_eq(
  $$ select n.nspname::text, r.role
     from unnest(array['anon', 'authenticated', 'service_role']) r (role)
     join pg_namespace n on n.nspname in ('webhook', 'calls', 'audit')
     where has_schema_privilege(r.role, n.oid, 'usage') $$,
  $$ values ('webhook', 'service_role'), ('calls', 'service_role') $$,
  'only service_role reaches webhooks and calls, and no role the audit log'
);
select is_empty(
  $$ select r.role from unnest(array['anon', 'authenticated', 'service_role']) r (role)
     cross join unnest(array['public', 'webhook', 'calls', 'audit']) s (schema)
     where has_schema_privilege(r.role, s.schema, 'create') $$,
  'no role of the API may create anything'
);

select * from finish();
rollback;

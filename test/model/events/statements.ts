// The statements of this model's world: read the state, empty the tables, and break things.

/** A handler whose effects can be counted: it has no guard of its own, so a second effect would show. */
export const SHOP = `
  create schema app;
  create table app.effects (event_id text not null);
  create table app.mood (errcode text);
  insert into app.mood values (null);
  create function app.act(p_event public.webhook_events) returns text language plpgsql as $$
  declare
    v_errcode text := (select m.errcode from app.mood m);
  begin
    insert into app.effects values (p_event.event_id);
    if v_errcode is not null then
      raise exception 'as told' using errcode = v_errcode;
    end if;
    return null;
  end
  $$;
  insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'act', 'sql', 'app.act');
  select webhook.add_endpoint('shop', 'shop', '{OPS_SITE_SECRET}', 'queued', '{"max_attempts": 3, "lease_sec": 3600}', 'ada');
  select webhook.add_endpoint('stripe', 'stripe', '{OPS_SITE_SECRET}', 'queued', '{"max_attempts": 3, "lease_sec": 3600}', 'ada');`;

/** The ledger is insert only. Its owner can disable the trigger, and only this sweep between histories does. */
export const SWEEP = `
  alter table public.credit_ledger disable trigger credit_ledger_is_insert_only;
  truncate public.credit_ledger, public.payments, public.payment_refunds, public.payment_transactions, public.webhook_events, public.webhook_alarms,
    app.effects;
  set session_replication_role = replica;
  truncate audit.audit_logs, audit.seals;
  set session_replication_role = origin;
  alter table public.credit_ledger enable always trigger credit_ledger_is_insert_only;`;

export const STATE = `
  select json_build_object(
    'events', (
      select coalesce(json_agg(json_build_object(
        'eventId', e.event_id, 'status', e.status, 'attempts', e.attempts, 'takeovers', e.takeovers,
        'isLeased', e.lease_token is not null,
        'isDue', coalesce(e.next_attempt_at <= clock_timestamp(), false)
          and e.status in ('pending', 'failed', 'processing'),
        'effects', (select count(*) from app.effects f where f.event_id = e.event_id)
      )), '[]')
      from public.webhook_events e where e.event_id like $1
    ),
    'payments', (
      select coalesce(json_agg(json_build_object(
        'payment', p.object_id, 'state', p.state, 'refunded', p.refunded
      )), '[]')
      from public.payments p where p.object_id like $1
    ),
    'credits', (
      select coalesce(json_agg(json_build_object(
        'payment', c.object_id, 'kind', c.kind, 'amount', c.amount, 'key', c.business_key, 'user', c.user_id
      )), '[]')
      from public.credit_ledger c where c.object_id like $1
    ),
    'alarms', (select count(*) from public.webhook_alarms a where a.event_id like $1),
    'audit', (select coalesce(json_agg(a.action), '[]') from audit.audit_logs a where a.actor = $2)
  ) as state`;

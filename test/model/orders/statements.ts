// The statements of this model's world: its pools, time that passes, what both databases hold, and clean tables.

/** Before any history: endpoints of two tenants, and what moves time. `stripe` is made for the events already. */
export const PREPARE_LEDGER = `
  select webhook.add_endpoint('other', 'stripe', '{OPS_SITE_SECRET}', 'queued', '{"max_attempts": 3, "lease_sec": 3600}', 'ada');
  create schema model;
  create function model.advance(p_sec int) returns void language plpgsql as $$
  declare
    v_by interval := make_interval(secs => p_sec);
  begin
    update public.claim_outbox set next_attempt_at = next_attempt_at - v_by, created_at = created_at - v_by;
    update public.refunds_due set next_attempt_at = next_attempt_at - v_by, created_at = created_at - v_by;
    update public.webhook_events set next_attempt_at = next_attempt_at - v_by, occurred_at = occurred_at - v_by
    where status in ('pending', 'failed', 'processing');
    update public.payments set occurred_at = occurred_at - v_by, refund_told_at = refund_told_at - v_by;
    update public.payment_refunds set failed_at = failed_at - v_by where failed_at is not null;
  end
  $$;`;

export const PREPARE_INTAKE = `
  create schema model;
  create function model.advance(p_sec int) returns void language plpgsql as $$
  declare
    v_by interval := make_interval(secs => p_sec);
  begin
    update public.orders set hold_until = hold_until - v_by, grace_until = grace_until - v_by, ended_at = ended_at - v_by;
    update public.claims set hold_until = hold_until - v_by, end_due = end_due - v_by where freed_at is null;
    update public.checkouts set next_attempt_at = next_attempt_at - v_by, created_at = created_at - v_by,
      params = jsonb_set(params, '{expires_at}', to_jsonb((params ->> 'expires_at')::bigint - p_sec));
    update pgmq.q_intake_queue set vt = vt - v_by where vt < 'infinity';
  end
  $$;`;

const INTAKE_TABLES = [
  ...['pgmq.q_intake_queue', 'pgmq.q_intake_dlq', 'pgmq.a_intake_dlq'],
  ...['public.order_payments', 'public.checkouts', 'public.orders', 'public.claims'],
  ...['public.inventory_slots', 'public.slot_manifest', 'public.engine_config'],
  ...['intake.pool_totals', 'intake.pool_marks', 'audit.audit_logs'],
];

const LEDGER_TABLES = [
  ...['public.confirmed_tickets', 'public.voided_tickets', 'public.refunds_due', 'public.claim_outbox'],
  ...['public.payments', 'public.payment_refunds', 'public.payment_transactions'],
  ...['public.webhook_events', 'audit.audit_logs'],
];

/** Replica: the triggers that keep manifest and marks in step, and the record of tickets whole, would refuse it. */
const asReplica = (statements: string): string => `
  set session_replication_role = replica;
  ${statements}
  set session_replication_role = origin;`;

const clean = (tables: readonly string[]): string =>
  asReplica(tables.map((table) => `delete from ${table};`).join('\n  '));

export const CLEAN_INTAKE = clean(INTAKE_TABLES);
export const CLEAN_LEDGER = clean(LEDGER_TABLES);

/** What many histories have left, as dead rows and in tables that only grow, goes at once. */
const sweep = (tables: readonly string[]): string => asReplica(`truncate ${tables.join(', ')} cascade;`);

export const SWEEP_INTAKE = sweep([...INTAKE_TABLES, 'pgmq.a_intake_queue', 'audit.seals']);
/** The ledger's own guard holds for a replica too, so it is off for a moment. */
const INSERT_ONLY = 'trigger credit_ledger_is_insert_only';
export const SWEEP_LEDGER = `
  alter table public.credit_ledger disable ${INSERT_ONLY};
  ${sweep([...LEDGER_TABLES, 'public.credit_ledger', 'audit.seals'])}
  alter table public.credit_ledger enable always ${INSERT_ONLY};`;

export const INTAKE = `
  select json_build_object(
    'slots', (select coalesce(json_agg(json_build_object('id', s.id, 'pool', s.pool_id, 'status', s.status)), '[]')
      from public.inventory_slots s),
    'claims', (
      select coalesce(json_agg(json_build_object(
        'id', c.claim_id, 'slot', c.slot_id, 'pool', c.pool_id, 'user', c.user_id, 'state', c.state,
        'isFreed', c.freed_at is not null, 'order', c.order_id, 'replaces', c.replaces
      ) order by c.claimed_at, c.claim_id), '[]')
      from public.claims c
    ),
    'orders', (
      select coalesce(json_agg(json_build_object(
        'id', o.order_id, 'pool', o.pool_id, 'user', o.user_id, 'seats', o.seats, 'unitPrice', o.unit_price,
        'holdSec', extract(epoch from o.hold_until - clock_timestamp()),
        'graceSec', extract(epoch from o.grace_until - clock_timestamp()), 'endAs', o.end_as, 'paymentKey', o.payment_key
      ) order by o.order_id), '[]')
      from public.orders o
    ),
    'decisions', (
      select coalesce(json_agg(json_build_object(
        'key', p.payment_key, 'order', p.order_id, 'decision', p.decision, 'reason', p.reason, 'isOwn', p.is_own
      )), '[]')
      from public.order_payments p
    ),
    'checkouts', (
      select coalesce(json_agg(json_build_object(
        'order', k.order_id, 'n', k.n, 'session', k.session_id, 'intent', k.payment_intent, 'state', k.state
      )), '[]')
      from public.checkouts k
    ),
    'messages', (
      select coalesce(json_agg(json_build_object('id', q.msg_id, 'claim', q.message ->> 'claim_id') order by q.msg_id), '[]')
      from pgmq.q_intake_queue q
    ),
    'letters', (
      select coalesce(json_agg(json_build_object('id', d.msg_id, 'claim', d.message ->> 'claim_id') order by d.msg_id), '[]')
      from pgmq.q_intake_dlq d
    )
  ) as state`;

/** Credits stay from history to history: the ledger is insert only. $1 is what stands in all ids of this one. */
export const LEDGER = `
  select json_build_object(
    'tickets', (
      select coalesce(json_agg(json_build_object(
        'slot', t.resource_id, 'claim', t.claim_id, 'user', t.user_id, 'order', t.order_id
      )), '[]')
      from public.confirmed_tickets t
    ),
    'voided', (
      select coalesce(json_agg(json_build_object('claim', v.claim_id, 'order', v.order_id)), '[]') from public.voided_tickets v
    ),
    'outbox', (
      select coalesce(json_agg(json_build_object(
        'id', o.id, 'kind', o.kind, 'state', o.state, 'result', o.result ->> 'decision'
      )), '[]')
      from public.claim_outbox o
    ),
    'refunds', (
      select coalesce(json_agg(json_build_object(
        'id', r.id, 'key', r.payment_key, 'amount', r.amount::float8, 'state', r.state
      )), '[]')
      from public.refunds_due r
    ),
    'payments', (
      select coalesce(json_agg(json_build_object(
        'key', p.provider || '/' || p.object_id, 'state', p.state, 'refunded', p.refunded::float8
      )), '[]')
      from public.payments p
    ),
    'credits', (
      select coalesce(json_agg(json_build_object(
        'key', c.provider || '/' || c.object_id, 'kind', c.kind, 'amount', c.amount::float8
      )), '[]')
      from public.credit_ledger c where c.object_id like $1
    ),
    'deadEvents', (
      select coalesce(json_agg(json_build_object('id', e.event_id, 'error', e.error)), '[]')
      from public.webhook_events e where e.status = 'dead_letter'
    )
  ) as state`;

// The statements of this model's world: read the state, empty the tables, and break things.

/** Replica: the triggers that keep manifest and marks in step would undo each other's work here. */
export const CLEAN = `
  set session_replication_role = replica;
  delete from pgmq.q_intake_queue;
  delete from pgmq.a_intake_queue;
  delete from pgmq.q_intake_dlq;
  delete from pgmq.a_intake_dlq;
  delete from public.claims;
  delete from public.inventory_slots;
  delete from public.slot_manifest;
  delete from public.engine_config;
  delete from intake.pool_totals;
  delete from intake.pool_marks;
  delete from audit.audit_logs;
  set session_replication_role = origin;`;

/** What many histories have left as dead rows goes at once. */
export const SWEEP = `
  set session_replication_role = replica;
  truncate audit.audit_logs, audit.seals;
  set session_replication_role = origin;
  truncate pgmq.q_intake_queue, pgmq.a_intake_queue, pgmq.q_intake_dlq, pgmq.a_intake_dlq, public.claims,
    public.inventory_slots, public.slot_manifest, public.engine_config, intake.pool_totals, intake.pool_marks;`;

export const INTAKE_STATE = `
  select json_build_object(
    'slots', (select coalesce(json_agg(json_build_object('id', s.id, 'status', s.status)), '[]') from public.inventory_slots s),
    'totals', (select coalesce(json_agg(json_build_object('pool', t.pool_id, 'slots', t.slots)), '[]') from intake.pool_totals t),
    'claims', (
      select coalesce(json_agg(json_build_object(
        'id', c.claim_id, 'slot', c.slot_id, 'pool', c.pool_id, 'user', c.user_id, 'request', c.request_id,
        'state', c.state, 'msgId', c.msg_id,
        'hold', case when c.hold_until is null then 'none' when c.hold_until < now() then 'over' else 'running' end,
        'isFreed', c.freed_at is not null, 'endAs', c.end_as
      )), '[]')
      from public.claims c
    ),
    'messages', (
      select coalesce(json_agg(json_build_object(
        'id', q.msg_id, 'claim', q.message ->> 'claim_id', 'slot', q.message ->> 'resource_id', 'readCt', q.read_ct,
        'seen', coalesce(q.message -> 'seen', '0'), 'tried', coalesce(q.message -> 'tried', '0'),
        'state', q.message -> 'state', 'isVisible', q.vt <= clock_timestamp()
      )), '[]')
      from pgmq.q_intake_queue q
    ),
    'letters', (
      select coalesce(json_agg(json_build_object(
        'id', d.msg_id, 'claim', d.message ->> 'claim_id', 'slot', d.message ->> 'resource_id',
        'reason', coalesce(d.message ->> 'reason', 'max_retries'), 'readCt', d.message -> 'final_read_ct',
        'msgId', d.message -> 'original_msg_id'
      )), '[]')
      from pgmq.q_intake_dlq d
    ),
    'audit', (select coalesce(json_agg(a.action), '[]') from audit.audit_logs a where a.action <> 'rule_change')
  ) as state`;

export const LEDGER_STATE = `
  select coalesce(json_agg(json_build_object(
    'slot', t.resource_id, 'claim', t.claim_id, 'user', t.user_id, 'pool', t.pool_id
  )), '[]') as tickets,
  (select coalesce(json_agg(v.claim_id), '[]') from public.voided_tickets v) as tombstones
  from public.confirmed_tickets t`;

/** What a crash does to the UNLOGGED tables, without a trigger that could notice it. */
export const LOSE_CACHE = `
  set session_replication_role = replica;
  delete from public.inventory_slots;
  delete from intake.pool_marks;
  delete from intake.pool_allowances;
  set session_replication_role = origin;`;

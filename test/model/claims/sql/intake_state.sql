select json_build_object(
  'slots', (select coalesce(json_agg(json_build_object('id', s.id, 'status', s.status)), '[]') from public.inventory_slots s),
  'totals', (select coalesce(json_agg(json_build_object('pool', t.pool_id, 'slots', t.slots)), '[]') from intake.pool_totals t),
  'claims', (
    select coalesce(json_agg(json_build_object(
      'id', c.claim_id, 'slot', c.slot_id, 'pool', c.pool_id, 'user', c.user_id, 'request', c.request_id,
      'state', c.state, 'msgId', c.msg_id,
      'hold', case when c.hold_until is null then 'none' when c.hold_until < now() then 'over' else 'running' end,
      'isFreed', c.freed_at is not null
    )), '[]')
    from public.claims c
  ),
  'messages', (
    select coalesce(json_agg(json_build_object(
      'id', q.msg_id, 'claim', q.message ->> 'claim_id', 'slot', q.message ->> 'resource_id', 'readCt', q.read_ct,
      'forgiven', coalesce(q.message -> 'forgiven', '0'), 'state', q.message -> 'state',
      'isVisible', q.vt <= clock_timestamp()
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
  'audit', (select coalesce(json_agg(a.action), '[]') from audit.audit_logs a)
) as state

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
) as state

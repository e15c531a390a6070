select e.id, e.provider, coalesce(p.name, e.webhook_id::text) as endpoint, e.event_id as "eventId", e.status, e.attempts,
  e.takeovers, e.error, e.skipped_by as "skippedBy"
from public.webhook_events e
left join public.webhook_endpoints p on p.webhook_id = e.webhook_id
order by e.id;

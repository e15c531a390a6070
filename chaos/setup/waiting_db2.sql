-- What has not come to its end in DB2: events that wait, failed or are worked on.
select count(*)::int as waiting from public.webhook_events e where e.status in ('pending', 'processing', 'failed')

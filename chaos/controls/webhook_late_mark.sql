-- Whoever marks an event marks it, whether or not somebody else has it by now. And who has taken one over takes its time
-- before that, so that the first one wakes up meanwhile: that breaks nothing.
select pg_temp.patch('webhook.hold_event(uuid, uuid)', 'and e.lease_token = p_lease_token', '');
select pg_temp.patch('webhook.held_tasks(uuid[], uuid[])', 'and e.lease_token = t.lease_token', '');
select pg_temp.patch(
  'webhook.held_tasks(uuid[], uuid[])', E'begin\n  perform from',
  E'begin\n  perform pg_catalog.pg_sleep(3.5) from public.webhook_events e
    where e.id = any (p_ids) and e.lease_token = any (p_lease_tokens) and e.takeovers > 0;\n  perform from'
);

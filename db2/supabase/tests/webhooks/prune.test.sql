-- prune_payloads removes what may go, and never a key.
begin;
select plan(15);

select webhook.add_endpoint('kept', 'shop', '{A}', 'queued', '{}', 'ann');
select webhook.add_endpoint('brief', 'shop', '{A}', 'queued', '{"keep_payload_days": 10}', 'ann');
insert into public.webhook_bodies (id, body) values ('00000000-0000-4000-8000-000000000001', 'both');
insert into public.webhook_events
  (webhook_id, provider, event_id, status, received_at, payload, raw_body, body_id, payload_hash)
select f.webhook_id, 'shop', t.event_id, t.status::public.webhook_event_status, now() - make_interval(days => t.days),
  '{}', case when t.body_id is null then 'raw'::bytea end, t.body_id, 'hash'
from (values
  ('kept', 'k1', 'success', 50, null::uuid), ('brief', 'b1', 'success', 11, null), ('brief', 'b2', 'success', 9, null),
  ('brief', 'b3', 'dead_letter', 50, null), ('brief', 'b4', 'failed', 50, null), ('brief', 'b5', 'skipped', 50, null),
  ('brief', 'p1', 'success', 50, '00000000-0000-4000-8000-000000000001'),
  ('brief', 'p2', 'dead_letter', 50, '00000000-0000-4000-8000-000000000001')
) as t (name, event_id, status, days, body_id)
cross join lateral webhook.find_endpoint(t.name) f;

insert into public.webhook_alarms (at, webhook_id, provider, event_id, received_hash, body)
select now() - make_interval(days => t.days), f.webhook_id, 'shop', t.event_id, 'other', 'forged'
from (values ('kept', 'k1', 50), ('brief', 'b1', 11), ('brief', 'b2', 9)) as t (name, event_id, days)
cross join lateral webhook.find_endpoint(t.name) f;

create function pg_temp.with_payload()
returns text
language sql
as $$
  select string_agg(event_id, ' ' order by event_id) from public.webhook_events where payload is not null;
$$;

select is(webhook.prune_payloads(p_limit => 2), 2, 'no more than asked for');
select is(webhook.prune_payloads(), 1, 'then the rest');
select is(webhook.prune_payloads(), 0, 'then nothing');
select is(
  pg_temp.with_payload(), 'b2 b3 b4 k1 p2',
  'what has ended and is older than its endpoint keeps it is gone; dead letters and the young stay'
);
select is_empty(
  $$ select event_id from public.webhook_events where payload is null and (raw_body is not null or body_id is not null) $$,
  'with its bytes'
);
select bag_eq(
  'select event_id, body is null from public.webhook_alarms', $$ values ('k1', false), ('b1', true), ('b2', false) $$,
  'also of alarms, which stay'
);
select is((select count(*)::int from public.webhook_bodies), 1, 'a body that a dead letter needs stays');
select results_eq(
  $$ select r.outcome
     from public.webhook_events e
     cross join lateral webhook.record_events(
       array[e.webhook_id], array['b1'], null, null, null, array[encode('{}', 'base64')], null, '{hash}', null, null, null
     ) r
     where e.event_id = 'b1' $$,
  $$ values ('duplicate') $$,
  'what was pruned is still known: delivered again it is a duplicate'
);
select is_empty($$ select * from audit.audit_logs where action = 'webhook_prune' $$, 'the clock leaves no audit row');

select is(webhook.prune_payloads(5, 100, 'ann', 'law'), 2, 'a person can say how many days');
select is(pg_temp.with_payload(), 'b3 b4 p2', 'also for endpoints that keep theirs');
select results_eq(
  $$ select actor, reason, details from audit.audit_logs where action = 'webhook_prune' $$,
  $$ values ('ann', 'law', '{"days": 5, "pruned": 2}'::jsonb) $$,
  'which is in the audit log'
);
select throws_ok($$ select webhook.prune_payloads(-1) $$, 'SL001', null, 'the future is not pruned');
update public.webhook_events set status = 'skipped' where event_id = 'p2';
select webhook.prune_payloads();
select is((select count(*)::int from public.webhook_bodies), 0, 'the body goes with the last event that needs it');

insert into public.webhook_events (webhook_id, provider, event_id, status, received_at, raw_body)
select f.webhook_id, 'shop', 'q1', 'skipped', now() - interval '50 days', 'raw' from webhook.find_endpoint('brief') f;
select webhook.prune_payloads();
select is(
  (select raw_body from public.webhook_events where event_id = 'q1'), null, 'so do the bytes of what was quarantined'
);

select * from finish();
rollback;

-- metrics: what waits, what went wrong, and for how long.
begin;
select plan(4);

select webhook.add_endpoint('busy', 'stripe', '{A}', 'queued', '{}', 'ann');
select webhook.add_endpoint('calm', 'twilio', '{A}', 'queued', '{}', 'ann');
insert into public.webhook_events (webhook_id, provider, event_id, status, next_attempt_at)
select f.webhook_id, 'stripe', 'e' || n, s::public.webhook_event_status, due
from webhook.find_endpoint('busy') f
cross join (values
  (1, 'pending', now() - interval '1 hour'), (2, 'pending', now() + interval '1 hour'), (3, 'failed', now()),
  (4, 'processing', now() + interval '1 hour'), (5, 'dead_letter', null), (6, 'dead_letter', null), (7, 'success', null)
) as t (n, s, due);
insert into public.webhook_events (webhook_id, event_id) values ('00000000-0000-0000-0000-000000000001', 'evt-1');

select bag_eq(
  'select name, provider, pending, failed, processing, dead_letter from webhook.metrics()',
  $$ values ('busy', 'stripe', 2::bigint, 1::bigint, 1::bigint, 2::bigint), ('calm', 'twilio', 0, 0, 0, 0),
            (null, 'unknown', 1, 0, 0, 0) $$,
  'each endpoint has its numbers, also one that is not registered'
);
select ok(
  (select oldest_due_sec between 3600 and 3700 from webhook.metrics() where name = 'busy'),
  'the age is that of the event that is longest due'
);
select is((select oldest_due_sec from webhook.metrics() where name = 'calm'), 0::double precision, 'nothing due, no age');

select webhook.add_endpoint('acme', 'hmac', '{A}', 'queued', '{"scheme": {}}', 'ann');
insert into public.webhook_events (webhook_id, provider, event_id)
select f.webhook_id, 'hmac:acme', 'e1' from webhook.find_endpoint('acme') f;
insert into public.webhook_events (webhook_id, provider, event_id)
values ('00000000-0000-0000-0000-000000000002', 'hmac:gone', 'e1');
select bag_eq(
  $$ select name, provider from webhook.metrics() where provider like 'hmac%' $$,
  $$ values ('acme', 'hmac'), (null, 'hmac') $$, 'a provider is spelled as that of the endpoint, with events and without'
);

select * from finish();
rollback;

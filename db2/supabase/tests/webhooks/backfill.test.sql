-- What a provider was asked for meets what it delivers: one event, whichever came first and whatever its bytes are.
begin;
select plan(19);

select webhook.add_endpoint('shop', 'stripe', '{A}', 'inline', '{"lease_sec": 600}', 'ann');
select webhook.add_endpoint('tests', 'stripe', '{A}', 'queued', '{"livemode": "test"}', 'ann', p_tenant => 'stripe');

create function pg_temp.record(p_body text, p_backfilled boolean, p_endpoint text default 'shop')
returns text
language sql
as $$
  select r.outcome
  from webhook.find_endpoint(p_endpoint) f
  cross join lateral webhook.record_events(
    array[f.webhook_id], array[p_body::jsonb ->> 'id'], array['charge.succeeded'], null, null,
    array[encode(convert_to(p_body, 'UTF8'), 'base64')], null, array[md5(p_body)], null, null, null, p_backfilled
  ) r;
$$;

select is(pg_temp.record('{"id": "a"}', true), 'recorded', 'what is new is recorded');
select is(pg_temp.record('{"id": "a"}', true), 'duplicate', 'what was asked for twice is there once');
select is(pg_temp.record('{"id":  "a"}', false), 'duplicate', 'a delivery of it with other bytes is a duplicate');
select is(pg_temp.record('{"id": "b"}', false), 'recorded', 'a delivery');
select is(pg_temp.record('{"id":  "b"}', true), 'duplicate', 'asked for afterwards with other bytes is a duplicate');
select is((select count(*)::int from public.webhook_alarms), 0, 'none of them is an alarm');
select is(pg_temp.record('{"id":   "b"}', false), 'body_differs', 'a second delivery with other bytes still is');
select results_eq(
  $$ select e.event_id, e.backfilled, e.next_attempt_at <= clock_timestamp() from public.webhook_events e order by 1 $$,
  $$ values ('a', true, true), ('b', false, false) $$,
  'an inline event that no server has is due at once, and marked'
);
select results_eq(
  $$ select l.event_id, l.backfilled from webhook.list_events() l order by 1 $$,
  $$ values ('a', true), ('b', false) $$, 'the list says so'
);

select is(pg_temp.record('{"id": "t", "livemode": false}', false), 'skipped', 'another endpoint of the tenant skipped it');
select is(
  pg_temp.record('{"id": "t",  "livemode": false}', true, 'tests'), 'recorded',
  'asked for by the endpoint that it is for, it is recorded there, other bytes or not'
);
select is(pg_temp.record('{"id": "u", "livemode": false}', true), 'skipped', 'what was asked for by the wrong endpoint');
select is(
  pg_temp.record('{"id": "u",  "livemode": false}', false, 'tests'), 'recorded', 'is recorded when the right one gets it'
);
select results_eq(
  $$ select e.event_id, e.backfilled, p.name from public.webhook_events e
     join public.webhook_endpoints p using (webhook_id) where e.event_id in ('t', 'u') order by 1 $$,
  $$ values ('t', true, 'tests'), ('u', false, 'tests') $$, 'and says how it came there'
);

select bag_eq(
  $$ select webhook.known_events((webhook.find_endpoint('tests')).webhook_id, '{a,b,x}') $$, $$ values ('a'), ('b') $$,
  'known is what the tenant has, whichever endpoint it came to'
);
select results_eq(
  $$ select webhook.begin_comparison((webhook.find_endpoint('shop')).webhook_id, 3600) from generate_series(1, 3) $$,
  $$ values (true), (false), (false) $$, 'one comparison an hour'
);
update public.webhook_endpoints set compared_at = compared_at - interval '1 hour';
select ok(webhook.begin_comparison((webhook.find_endpoint('shop')).webhook_id, 3600), 'and the next one after it');
select webhook.begin_backfill((webhook.find_endpoint('shop')).webhook_id, '2026-01-01', '2026-01-02', 'ann', 'outage');
select is(
  (select subject || ' ' || reason from audit.audit_logs where action = 'webhook_backfill'), 'webhook endpoint shop outage',
  'an operator who asks is in the audit log'
);
select throws_ok(
  $$ select webhook.begin_backfill(gen_random_uuid(), now(), now(), 'ann') $$, 'SL031', null::text, 'for an endpoint that exists'
);

select * from finish();
rollback;

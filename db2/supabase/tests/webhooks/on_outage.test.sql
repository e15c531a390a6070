-- What an endpoint does with deliveries while DB2 is away, and how one is recorded that waited in the inbox meanwhile.
begin;
select plan(16);

create function pg_temp.on_outage(p_name text) returns text language sql as $$
  select e.on_outage from public.webhook_endpoints e where e.name = p_name;
$$;
select webhook.add_endpoint('t_queued', 'twilio', '{TWILIO_AUTH_TOKEN}', 'queued', '{}', 'ann');
select webhook.add_endpoint('t_inline', 'twilio', '{TWILIO_AUTH_TOKEN}', 'inline', '{}', 'ann');
select webhook.add_endpoint('s_queued', 'stripe', '{STRIPE_WEBHOOK_SECRET}', 'queued', '{}', 'ann');
select webhook.add_endpoint('s_accept', 'stripe', '{STRIPE_WEBHOOK_SECRET}', 'inline', '{"on_outage": "accept"}', 'ann');

select is(pg_temp.on_outage('t_queued'), 'accept', 'a queued endpoint of Twilio accepts: Twilio delivers only once more');
select is(pg_temp.on_outage('t_inline'), 'refuse', 'an inline one refuses: a handler may answer with TwiML');
select is(pg_temp.on_outage('s_queued'), 'refuse', 'other providers deliver again for hours: refused');
select is(pg_temp.on_outage('s_accept'), 'accept', 'what is said counts');
select throws_ok(
  $$ select webhook.change_endpoint('s_queued', '{"on_outage": "perhaps"}', 'ann') $$, 'SL001', null, 'there is nothing between the two'
);
select webhook.change_endpoint('t_queued', '{"mode": "inline"}', 'ann');
select is(pg_temp.on_outage('t_queued'), 'refuse', 'the default goes with the mode');
select webhook.change_endpoint('t_queued', '{"mode": "inline", "on_outage": "accept"}', 'ann');
select webhook.change_endpoint('t_queued', '{"mode": "queued"}', 'ann');
select webhook.change_endpoint('t_queued', '{"on_outage": "refuse"}', 'ann');
select webhook.change_endpoint('t_queued', '{"mode": "inline"}', 'ann');
select webhook.change_endpoint('t_queued', '{"mode": "queued"}', 'ann');
select is(pg_temp.on_outage('t_queued'), 'accept', 'and a choice that equals the default follows it');
select webhook.change_endpoint('s_accept', '{"mode": "queued"}', 'ann');
select is(pg_temp.on_outage('s_accept'), 'accept', 'another choice stays whatever the mode');
insert into public.webhook_endpoints (name, provider, secret_names, tenant) values ('by_hand', 'twilio', '{TWILIO_AUTH_TOKEN}', 'twilio');
select is(pg_temp.on_outage('by_hand'), 'accept', 'an endpoint put there by hand has the default');

create function pg_temp.record(p_name text, p_event_id text, p_received_at timestamptz) returns text language sql as $$
  select r.outcome from webhook.record_events(
    array[(select e.webhook_id from public.webhook_endpoints e where e.name = p_name)], array[p_event_id], '{t}', array[null::timestamptz],
    '{"{}"}', '{e30=}', array[null::uuid], array[p_event_id], array[null], '{s}', array[null], p_received_at => array[p_received_at]) r;
$$;
select is(pg_temp.record('t_inline', 'waited', '2026-02-24 10:00Z'), 'recorded', 'a delivery that waited is recorded');
select is(pg_temp.record('t_inline', 'waited', '2026-02-24 10:05Z'), 'duplicate', 'once, whatever the second says about its arrival');
select pg_temp.record('t_inline', 'came', null);
select results_eq(
  $$ select e.received_at from public.webhook_events e where e.event_id = 'waited' $$, $$ values ('2026-02-24 10:00Z'::timestamptz) $$,
  'received_at is its arrival'
);
select results_eq(
  $$ select e.event_id, e.next_attempt_at <= now() from public.webhook_events e where e.event_id in ('waited', 'came') order by 1 $$,
  $$ values ('came', false), ('waited', true) $$, 'no server waits for its effect: it is due at once, also where the mode is inline'
);

select calls.add_site('quiet', '{}', false, null, 'ann', null, 'accept');
select is((select s.on_outage from public.call_sites s where s.site_id = 'quiet'), 'accept', 'a site may accept too');
create function pg_temp.record_call() returns setof text language sql as $$
  select r.outcome from calls.record_calls('{quiet}', array[null], '{ring}', '{"{}"}', '{2026-02-24 09:00Z}', array[null],
    '{01990000-0000-7000-8000-000000000001}', '{2026-02-24 10:00Z}') r;
$$;
select results_eq('select pg_temp.record_call() from generate_series(1, 2)', $$ values ('recorded'), ('recorded') $$,
  'an unsigned call may be told twice under one id');
select results_eq(
  $$ select c.received_at from public.calls c where c.site_id = 'quiet' $$, $$ values ('2026-02-24 10:00Z'::timestamptz) $$,
  'and is one row, received when it came'
);

select * from finish();
rollback;

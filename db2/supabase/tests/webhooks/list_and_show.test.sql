-- list_events pages through what the filters leave; show_event tells all about one.
begin;
select plan(30);

select webhook.add_endpoint('shop', 'stripe', '{A}', 'queued', '{}', 'ann');
insert into public.webhook_events
  (id, webhook_id, provider, event_id, status, received_at, payload, raw_body, payload_hash)
select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, coalesce(f.webhook_id, gen_random_uuid()),
  case when n % 2 = 0 then 'stripe' else 'twilio' end, 'e' || n,
  (array['pending', 'failed', 'dead_letter'])[1 + n % 3]::public.webhook_event_status,
  '2026-01-01'::timestamptz + make_interval(days => n), '{"n": 1}', 'raw', 'h'
from generate_series(1, 6) n
left join webhook.find_endpoint('shop') f on n <= 3;

-- The ids that the arguments leave, as numbers.
create function pg_temp.listed(p_arguments text)
returns text
language plpgsql
as $$
declare
  v_events text;
begin
  execute 'select string_agg(event_id, '' '' order by id) from webhook.list_events(' || p_arguments || ')' into v_events;
  return v_events;
end
$$;

select is(pg_temp.listed(''), 'e1 e2 e3 e4 e5 e6', 'without filters all are listed');
select is(pg_temp.listed('p_limit => 2'), 'e1 e2', 'a page');
select is(
  pg_temp.listed($$p_limit => 2, p_after => '00000000-0000-7000-8000-000000000002'$$), 'e3 e4', 'and the next one'
);
select results_eq(
  $$ select event_id from webhook.list_events(p_limit => 2, p_newest_first => true) $$, $$ values ('e6'), ('e5') $$,
  'the newest first, where that is asked for'
);
select results_eq(
  $$ select event_id from webhook.list_events(
       p_limit => 2, p_newest_first => true, p_after => '00000000-0000-7000-8000-000000000005'
     ) $$,
  $$ values ('e4'), ('e3') $$, 'and the page after that is older'
);
select is(
  pg_temp.listed('p_webhook_id => (select webhook_id from public.webhook_endpoints)'), 'e1 e2 e3', 'of an endpoint'
);
select is(pg_temp.listed($$p_event_id => 'e5'$$), 'e5', 'of an id');
select is(pg_temp.listed($$p_event_id => 'e%'$$), null, 'which is not a pattern');
select is(pg_temp.listed($$p_provider => 'twilio'$$), 'e1 e3 e5', 'of a provider');
update public.webhook_events set provider = 'hmac:shop' where event_id = 'e1';
select is(pg_temp.listed($$p_provider => 'hmac'$$), 'e1', 'hmac is that of every endpoint');
select is(pg_temp.listed($$p_provider => 'hmac:shop'$$), 'e1', 'hmac:shop that of one');
update public.webhook_events set provider = 'twilio' where event_id = 'e1';
select is(pg_temp.listed($$p_statuses => '{failed,dead_letter}'$$), 'e1 e2 e4 e5', 'of these states');
select throws_ok($$ select pg_temp.listed('p_statuses => ''{lost}''') $$, '22P02', null, 'an unknown state is an error');
select is(pg_temp.listed($$p_since => '2026-01-03', p_until => '2026-01-05'$$), 'e2 e3', 'of a time');
select is(
  pg_temp.listed($$p_provider => 'stripe', p_statuses => '{failed}', p_since => '2026-01-02'$$), 'e4', 'all of it together'
);
update public.webhook_events
set event_type = 'type.' || event_id, error = 'Broke ' || event_id, payload = jsonb_build_object('n', right(event_id, 1)::int)
where event_id <> 'e6';
select is(pg_temp.listed($$p_event_type => 'type.e2'$$), 'e2', 'of a type');
select is(pg_temp.listed($$p_event_type => 'type.*'$$), 'e1 e2 e3 e4 e5', 'of types that begin alike');
select is(pg_temp.listed($$p_error => 'broke E3'$$), 'e3', 'of an error, by a part of it in any case');
select is(pg_temp.listed($$p_path => '$.n > 3'$$), 'e4 e5', 'by what is in the payload');
select is(pg_temp.listed($$p_path => '$ ? (@.n == 2)'$$), 'e2', 'in the other form of a path');
select is(pg_temp.listed($$p_path => '$.n.double()'$$), 'e1 e2 e3 e4 e5 e6', 'whatever it finds');
select throws_ok($$ select webhook.list_events(p_path => '$.[') $$, 'SL001', null, 'a text that is not a path is an error');
update public.webhook_events set payload = '{"n": 1}' where event_id = 'e1';
select results_eq(
  $$ select name, status::text from webhook.list_events(p_event_id => 'e1') $$, $$ values ('shop', 'failed') $$,
  'a listed event names its endpoint'
);

insert into public.webhook_alarms (webhook_id, provider, event_id, received_hash, body)
values (gen_random_uuid(), 'twilio', 'e1', 'other', 'forged');
select results_eq(
  $$ select name, event ->> 'event_id', event -> 'payload', event ? 'raw_body', raw_body, alarms -> 0 ->> 'received_hash',
       alarms -> 0 ->> 'body'
     from webhook.show_event('00000000-0000-7000-8000-000000000001') $$,
  $$ values ('shop', 'e1', '{"n": 1}'::jsonb, false, encode('raw', 'base64'), 'other', encode('forged', 'base64')) $$,
  'an event is shown with payload, bytes and alarms'
);
select is(
  (select alarms from webhook.show_event('00000000-0000-7000-8000-000000000002')), '[]', 'without alarms the list is empty'
);
select is_empty($$ select * from webhook.show_event(gen_random_uuid()) $$, 'an unknown id is not shown');
insert into public.webhook_bodies (id, body) values ('00000000-0000-4000-8000-000000000009', 'both');
update public.webhook_events set raw_body = null, body_id = '00000000-0000-4000-8000-000000000009' where event_id = 'e2';
select is(
  (select raw_body from webhook.show_event('00000000-0000-7000-8000-000000000002')), encode('both', 'base64'),
  'one of several in a delivery is shown with the whole delivery'
);
select is(
  (select event ? 'lease_token' from webhook.show_event('00000000-0000-7000-8000-000000000001')), false,
  'the token of a lease is not shown'
);

insert into public.webhook_handlers (provider, event_type, kind, name) values ('daily', 'order.*', 'sql', 'public.orders');
select webhook.add_endpoint('own', 'daily', '{A}', 'queued', '{"max_attempts": 3}', 'ann');
insert into public.webhook_events (id, webhook_id, provider, event_id, event_type, payload)
select '00000000-0000-7000-8000-000000000011'::uuid, f.webhook_id, 'daily', 'e11', 'order.paid', '{}'::jsonb from webhook.find_endpoint('own') f
union all
select '00000000-0000-7000-8000-000000000012', gen_random_uuid(), 'other', 'e12', 'order.paid', '{}';
select results_eq(
  $$ select handler, max_attempts from webhook.show_event('00000000-0000-7000-8000-000000000011') $$, $$ values ('public.orders', 3) $$,
  'the handler that has it is named, and how many attempts its endpoint allows'
);
select results_eq(
  $$ select handler, max_attempts from webhook.show_event('00000000-0000-7000-8000-000000000012') $$, $$ values (null::text, 5) $$,
  'an event that no handler has names none, and one of an unknown endpoint has the attempts of the product'
);

select * from finish();
rollback;

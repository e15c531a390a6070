-- The numbers of an endpoint that names none stand in one place: changed there, they are changed everywhere.
begin;
select plan(9);

create or replace function webhook.default_limits()
returns webhook.limits
language sql
immutable
as $$
  select (2, 40, 50, 1000)::webhook.limits;
$$;

select webhook.add_endpoint('added', 'shop', '{A}', 'queued', '{}', 'ann');
insert into public.webhook_endpoints (name, provider, secret_names) values ('inserted', 'shop', '{A}');
select results_eq(
  $$ select name, max_attempts, backoff_cap_sec, lease_sec, max_body_bytes from public.webhook_endpoints order by name $$,
  $$ values ('added', 2, 40, 50, 1000), ('inserted', 2, 40, 50, 1000) $$, 'an endpoint has them, however it came'
);

-- An event whose endpoint is unknown.
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'typed', 'typescript', 'mine');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
select gen_random_uuid(), 'shop', t, t, '{}' from unnest(array['paid', 'typed']) t;
create temp table taken as select * from tests.take(1);
create function pg_temp.lease(p_event_id text)
returns int
language sql
as $$
  select round(extract(epoch from e.lease_until - e.last_attempt_at))::int from public.webhook_events e
  where e.event_id = p_event_id;
$$;
select is((select max_attempts from taken), 2, 'a worker is told how often it is tried');
select is(pg_temp.lease('paid'), 50, 'its lease is as long');
update public.webhook_events set lease_until = now() where event_id = 'paid';
select isnt_empty($$ select webhook.extend_leases(array[id], array[lease_token]) from taken $$, 'a lease is extended');
select is(
  (select round(extract(epoch from e.lease_until - clock_timestamp()))::int from public.webhook_events e
   where e.event_id = 'paid'),
  50, 'by as much'
);
select is((select max_attempts from webhook.begin_typescript_event(
  (select id from public.webhook_events where event_id = 'typed'), '{mine}'
)), 2, 'a server that begins one is told the same');
select is(pg_temp.lease('typed'), 50, 'and its lease is as long');
select webhook.finish_event(id, lease_token, 'later') from taken;
select ok(
  (select next_attempt_at - last_attempt_at between interval '32 seconds' and interval '48 seconds'
   from public.webhook_events where event_id = 'paid'),
  'the longest wait is theirs, give or take a fifth'
);
update public.webhook_events set next_attempt_at = now(), attempts = 1 where event_id = 'paid';
select is(
  (select webhook.finish_event(t.id, t.lease_token, 'failed', 'no') from tests.take(1) t), 'dead_letter',
  'and so is the last attempt'
);

select * from finish();
rollback;

-- take_events and take_suspect: due events under a lease, each to one worker; a lease that has run out is taken over, not
-- for ever, and alone.
begin;
select plan(27);

select webhook.add_endpoint('shop', 'shop', '{A}', 'queued', '{"lease_sec": 30, "max_attempts": 7}', 'ann') as shop;
insert into public.webhook_handlers (provider, event_type, webhook_id, kind, name) values
  ('shop', 'paid', null, 'sql', 'app.paid'),
  ('shop', 'sent*', null, 'sql', 'app.sent_any'),
  ('shop', 'sent.late*', null, 'sql', 'app.sent_late'),
  ('shop', 'sent.lost', null, 'typescript', 'lost'),
  ('shop', 'sent.lost', (select webhook_id from public.webhook_endpoints), 'sql', 'app.lost_here');

create function pg_temp.event(p_id text, p_type text default 'paid', p_provider text default 'shop')
returns void
language sql
as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
  values ('00000000-0000-4000-8000-000000000001', p_provider, p_id, p_type, '{}');
$$;

create function pg_temp.taken(p_limit int default 10, p_handlers text[] default '{}')
returns text
language sql
as $$
  select string_agg(t.event_id, ' ') from tests.take(p_limit, p_handlers) t;
$$;

create function pg_temp.suspect()
returns text
language sql
as $$
  select string_agg(t.event_id, ' ') from webhook.take_suspect(array(select l.lane from webhook.event_lanes() l)) t;
$$;

select pg_temp.event('e1');
select pg_temp.event('e2');
select pg_temp.event('e3');
select results_eq(
  $$ select event_id, attempts, handler_kind, handler_name, idempotency_key, max_attempts, takeovers,
       lease_token is not null, payload
     from tests.take(2) $$,
  $$ values ('e1', 1, 'sql', 'app.paid', 'shop:e1', 5, 0, true, null::jsonb),
            ('e2', 1, 'sql', 'app.paid', 'shop:e2', 5, 0, true, null) $$,
  'as many as asked for, in the order of arrival, with handler and key; SQL needs no payload carried around'
);
select is(pg_temp.taken(), 'e3', 'the next call gets the others');
select is(pg_temp.taken(), null, 'and then there is nothing due');
select results_eq(
  $$ select distinct status::text, lease_until = next_attempt_at, lease_until > clock_timestamp() + interval '50 seconds'
     from public.webhook_events $$,
  $$ values ('processing', true, true) $$,
  'a taken event is processing, and due again when its lease ends'
);

select lives_ok(
  $$ update public.webhook_events set next_attempt_at = now(), lease_until = now() where event_id = 'e2' $$,
  'a lease runs out'
);
create temp table old as select lease_token from public.webhook_events where event_id = 'e2';
select is(pg_temp.taken(), null, 'the common take leaves it out');
select results_eq(
  $$ select event_id, attempts, takeovers, lease_token = (select lease_token from old)
     from webhook.take_suspect(array(select l.lane from webhook.event_lanes() l)) $$,
  $$ values ('e2', 1, 1, false) $$,
  'it is taken over: another token, not another attempt'
);
select is((select attempts from public.webhook_events where event_id = 'e2'), 0, 'which no take counts');
update public.webhook_events set next_attempt_at = now(), takeovers = 8 where event_id = 'e2';
select is(pg_temp.suspect(), 'e2', 'the ninth time too');
update public.webhook_events set next_attempt_at = now() where event_id = 'e2';
select is(pg_temp.suspect(), null, 'the tenth time no worker gets it');
select results_eq(
  $$ select status::text, error, lease_token, next_attempt_at from public.webhook_events where event_id = 'e2' $$,
  $$ values ('dead_letter', 'lease_lost_repeatedly', null::uuid, null::timestamptz) $$,
  'it is a dead letter'
);

select webhook.finish_event(id, lease_token, 'failed', 'no') from public.webhook_events where event_id = 'e1';
update public.webhook_events set next_attempt_at = now() + interval '1 hour' where event_id = 'e1';
select is(pg_temp.taken(), null, 'a failed event waits for its time');
update public.webhook_events set next_attempt_at = now() where event_id = 'e1';
select results_eq(
  $$ select event_id, attempts from tests.take(5) $$, $$ values ('e1', 2) $$, 'and is then another attempt'
);

select pg_temp.event('t1', 'sent.lost');
select is(pg_temp.taken(), null, 'an event for a handler that this worker does not have stays');
select is(pg_temp.taken(5, '{other}'), null, 'also when it has others');
select results_eq(
  $$ select event_id, payload from tests.take(5, '{other,lost}') $$, $$ values ('t1', '{}'::jsonb) $$,
  'who has it takes it, with its payload'
);

select pg_temp.event('h1', 'sent');
select pg_temp.event('h2', 'sent.late.again');
select pg_temp.event('h3', 'nothing');
select results_eq(
  $$ select event_id, handler_name from tests.take(9) $$,
  $$ values ('h1', 'app.sent_any'), ('h2', 'app.sent_late'), ('h3', null) $$,
  'the longer prefix wins, and an event without a handler is taken too'
);
insert into public.webhook_events (webhook_id, provider, event_id, event_type)
select webhook_id, 'shop', 'h4', 'sent.lost' from public.webhook_endpoints;
select results_eq(
  $$ select event_id, handler_kind, handler_name, max_attempts from tests.take(9) $$,
  $$ values ('h4', 'sql', 'app.lost_here', 7) $$,
  'a handler for the endpoint wins over one for the provider'
);
select is(
  (select lease_until - last_attempt_at from public.webhook_events where event_id = 'h4'), interval '30 seconds',
  'the lease is as long as the endpoint says'
);
select throws_ok(
  $$ insert into public.webhook_handlers values ('shop', 'sent*', null, 'sql', 'app.another') $$, '23505', null,
  'a type has one handler'
);

-- Suspects: s1 was longest due, then h5, s2, h6.
delete from public.webhook_events;
create function pg_temp.due(p_id text, p_seconds int, p_takeovers int)
returns void
language sql
as $$
  select pg_temp.event(p_id);
  update public.webhook_events
  set next_attempt_at = now() - make_interval(secs => p_seconds), takeovers = p_takeovers,
    status = case p_takeovers when 0 then 'pending' else 'processing' end::public.webhook_event_status
  where event_id = p_id;
$$;
select pg_temp.due('s1', 50, 1);
select pg_temp.due('s0', 45, 9);
select pg_temp.due('h5', 40, 0);
select pg_temp.due('s2', 30, 1);
select pg_temp.due('h6', 20, 0);
update public.webhook_events set status = 'failed' where event_id = 's2';
select is(pg_temp.taken(), 'h5 h6', 'suspects are left out of the common take');
select is(pg_temp.suspect(), 's1', 'the one that is longest due is taken alone');
select is(pg_temp.suspect(), 's2', 'then the next, failed in between or not');
select is(
  (select error from public.webhook_events where event_id = 's0'), 'lease_lost_repeatedly',
  'one that was lost for the last time is not taken at all'
);
select is(pg_temp.suspect(), null, 'so all are reached');

update public.webhook_events set next_attempt_at = now(), takeovers = 3 where event_id = 's1';
create temp table last as select * from webhook.take_suspect(array(select l.lane from webhook.event_lanes() l));
select is((select takeovers from last), 4, 'a suspect is taken over once more');
select webhook.finish_event(id, lease_token, 'failed', 'at last') from last;
select is(
  (select takeovers from public.webhook_events where event_id = 's1'), 0, 'a try that ended clears it of the suspicion'
);

select * from finish();
rollback;

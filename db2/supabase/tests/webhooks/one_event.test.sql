-- One event at a time: processed while the provider waits, or under a lease by a handler's own transaction.
begin;
select plan(31);

select webhook.add_endpoint('shop', 'shop', '{A}', 'inline', '{"max_attempts": 2, "lease_sec": 30}', 'ann');
insert into public.webhook_handlers (provider, event_type, kind, name)
values ('shop', 'act', 'sql', 'tests.act'), ('shop', 'ts', 'typescript', 'mine');

create function pg_temp.event(p_id text, p_payload jsonb default '{}', p_type text default 'act')
returns uuid
language sql
as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload, next_attempt_at)
  select f.webhook_id, 'shop', p_id, p_type, p_payload, now() + interval '1 hour' from webhook.find_endpoint('shop') f
  returning id;
$$;

create function pg_temp.id(p_event_id text)
returns uuid
language sql
as $$
  select id from public.webhook_events where event_id = p_event_id;
$$;

create function pg_temp.answer(p_event_id text)
returns text
language sql
as $$
  select format('%s %s %s', p.outcome, p.status, p.error) from webhook.process_event(pg_temp.id(p_event_id)) p;
$$;

select pg_temp.event('e1');
select is(pg_temp.answer('e1'), 'success success ', 'an event is processed at once, before it is due');
select is(pg_temp.answer('e1'), 'success success ', 'the second time it answers the same');
select results_eq(
  $$ select attempts, (select count(*) from tests.effects) from public.webhook_events $$, $$ values (1, 1::bigint) $$,
  'after one attempt with one effect'
);
select pg_temp.event('e2', '{"skip": "old news"}');
select is(pg_temp.answer('e2'), 'skipped skipped old news', 'skipped with the reason');
select pg_temp.event('e3', '{"raise": "P0001"}');
select is(pg_temp.answer('e3'), 'failed failed as told', 'what fails is recorded as failed');
update public.webhook_events set payload = '{}' where event_id = 'e3';
select is(pg_temp.answer('e3'), 'success success ', 'and the retry succeeds');
select is((select attempts from public.webhook_events where event_id = 'e3'), 2, 'as the second attempt');
select pg_temp.event('e4', '{"raise": "P0001"}');
select is(pg_temp.answer('e4'), 'failed failed as told', 'it fails once');
select is(pg_temp.answer('e4'), 'dead_letter dead_letter as told', 'and is a dead letter after the last attempt');
select is(pg_temp.answer('e4'), 'dead_letter dead_letter as told', 'which stays one');
select pg_temp.event('e5', '{}', 'ts');
select is(pg_temp.answer('e5'), 'typescript pending ', 'a handler in TypeScript is not called here');
select is_empty($$ select * from webhook.process_event(gen_random_uuid()) $$, 'an unknown id has no answer');

create function pg_temp.begin_event(p_event_id text)
returns uuid
language sql
as $$
  select t.lease_token from webhook.begin_typescript_event(pg_temp.id(p_event_id), '{mine}') t;
$$;

create temp table lease as select pg_temp.begin_event('e5') as token;
select isnt((select token from lease), null, 'it is begun under a lease');
select is(pg_temp.begin_event('e5'), null, 'by one only');
select is(pg_temp.begin_event('e1'), null, 'one that has ended is not begun');
select is(webhook.hold_event(pg_temp.id('e5'), (select token from lease)), true, 'the worker with the lease can hold it');
select is(webhook.hold_event(pg_temp.id('e5'), gen_random_uuid()), false, 'no other worker can');
select is(webhook.hold_event(pg_temp.id('e5'), null), false, 'also not without a token');
update public.webhook_events set lease_until = now(), next_attempt_at = now() where event_id = 'e5';
select results_eq(
  $$ select * from webhook.extend_leases(
       array[pg_temp.id('e5'), pg_temp.id('e5')], array[(select token from lease), gen_random_uuid()]) $$,
  $$ select pg_temp.id('e5') $$,
  'a lease that is still held can be extended'
);
select ok(
  (select lease_until = next_attempt_at and lease_until > clock_timestamp() + interval '20 seconds'
   from public.webhook_events where event_id = 'e5'),
  'by what the endpoint says'
);
select is(
  webhook.finish_event(pg_temp.id('e5'), gen_random_uuid(), 'success'), 'lost_lease', 'no other worker can finish it'
);
select is(
  webhook.finish_event(pg_temp.id('e5'), (select token from lease), 'pending'), 'pending', 'it can be handed back'
);
select is((select attempts from public.webhook_events where event_id = 'e5'), 0, 'and then it was no attempt');
update lease set token = pg_temp.begin_event('e5');
select throws_ok(
  $$ select webhook.finish_event(pg_temp.id('e5'), (select token from lease), 'done') $$, 'SL001', null,
  'it ends as something known'
);
select is(
  webhook.finish_event(pg_temp.id('e5'), (select token from lease), 'failed', 'no luck'), 'failed', 'it can fail'
);
update lease set token = pg_temp.begin_event('e5');
select is(
  webhook.finish_event(pg_temp.id('e5'), (select token from lease), 'failed', 'no luck'), 'dead_letter',
  'the last time as a dead letter'
);
select is(
  webhook.finish_event(pg_temp.id('e5'), (select token from lease), 'success'), 'lost_lease', 'and that is its end'
);

select pg_temp.event('e6', '{}', 'ts');
update lease set token = pg_temp.begin_event('e6');
select throws_ok(
  $$ select webhook.finish_event(pg_temp.id('e6'), (select token from lease), 'success') $$, 'SL030', null,
  'an effect outside of the transaction that holds the event is not a success'
);
select is(webhook.hold_event(pg_temp.id('e6'), (select token from lease)), true, 'it is held');
select is(
  webhook.finish_event(pg_temp.id('e6'), (select token from lease), 'again', 'in the way'), 'failed', 'and put off'
);
select results_eq(
  $$ select attempts, error from public.webhook_events where event_id = 'e6' $$, $$ values (0, 'in the way') $$,
  'uncounted, with its error'
);

select * from finish();
rollback;

-- claim_next_event and mark_event_result, for workers that know no tokens; events put there with a plain insert.
begin;
select plan(26);

select enum_has_labels(
  'public', 'webhook_event_status', array['pending', 'processing', 'success', 'skipped', 'failed', 'dead_letter'],
  'an event has one of these states'
);
select col_is_unique(
  'public', 'webhook_events', array['webhook_id', 'event_id'], 'an event is stored once for its endpoint'
);
select col_is_unique('public', 'webhook_events', array['provider', 'event_id'], 'and once for its provider');
select has_index('public', 'webhook_events', 'idx_webhook_events_webhook_status', 'what went wrong has an index');

create function pg_temp.put(p_event_id text, p_webhook int default 1)
returns uuid
language sql
as $$
  insert into webhook_events (webhook_id, event_id, payload, status, received_at)
  values (('00000000-0000-0000-0000-00000000000' || p_webhook)::uuid, p_event_id, '{"foo": "bar"}', 'pending', now())
  on conflict (webhook_id, event_id) do nothing
  returning id;
$$;

select isnt(pg_temp.put('evt-1'), null, 'a plain insert puts an event');
select is(pg_temp.put('evt-1'), null, 'the second one puts nothing');
select pg_temp.put('evt-2', 2);
select pg_temp.put('evt-3');

select results_eq(
  $$ select webhook_id::text, event_id, payload, signature from webhook.claim_next_event() $$,
  $$ values ('00000000-0000-0000-0000-000000000001', 'evt-1', '{"foo": "bar"}'::jsonb, null) $$,
  'the first one is claimed'
);
select results_eq(
  $$ select event_id from webhook.claim_next_event('00000000-0000-0000-0000-000000000001') $$, $$ values ('evt-3') $$,
  'then the next one of an endpoint'
);
select results_eq($$ select event_id from webhook.claim_next_event() $$, $$ values ('evt-2') $$, 'then the last one');
select is_empty($$ select * from webhook.claim_next_event() $$, 'and then there is none');
select results_eq(
  $$ select status::text, attempts, last_attempt_at is not null from webhook_events where event_id = 'evt-1' $$,
  $$ values ('processing', 1, true) $$,
  'a claimed event is processing'
);

create function pg_temp.mark(p_event_id text, p_status webhook_event_status, p_error text default null)
returns text
language plpgsql
as $$
begin
  perform webhook.mark_event_result((select id from webhook_events where event_id = p_event_id), p_status, p_error);
  return (select format('%s %s %s', status, attempts, error) from webhook_events where event_id = p_event_id);
end
$$;

select is(pg_temp.mark('evt-1', 'success'), 'success 1 ', 'it is marked');
select isnt((select processed_at from webhook_events where event_id = 'evt-1'), null, 'with the time');
select throws_ok($$ select pg_temp.mark('evt-1', 'failed') $$, 'SL033', null, 'once');
select throws_ok($$ select pg_temp.mark('evt-2', 'processing') $$, 'SL001', null, 'with a result');
select is(pg_temp.mark('evt-2', 'failed', 'down'), 'failed 1 down', 'a failure is kept');
select throws_ok($$ select webhook.mark_event_result(gen_random_uuid(), 'success') $$, 'SL033', null, 'nothing unknown');
select is(pg_temp.mark('evt-3', 'pending'), 'pending 0 ', 'it can be put back');
select results_eq($$ select event_id from webhook.claim_next_event() $$, $$ values ('evt-3') $$, 'to be claimed again');
update webhook_events set lease_until = now() where event_id = 'evt-3';
select throws_ok($$ select pg_temp.mark('evt-3', 'success') $$, 'SL033', null, 'a late mark is refused');
update webhook_events set attempts = 5, lease_until = now() + interval '1 minute' where event_id = 'evt-3';
select is(pg_temp.mark('evt-3', 'failed', 'still down'), 'dead_letter 5 still down', 'the fifth failure is a dead letter');

-- Another session took it over: played by another token, and by forgetting what this session claimed.
select pg_temp.put('evt-4');
select pg_temp.put('evt-5');
select event_id from webhook.claim_next_event();
select event_id from webhook.claim_next_event();
update webhook_events set lease_token = gen_random_uuid(), takeovers = 1 where event_id = 'evt-4';
select throws_ok(
  $$ select pg_temp.mark('evt-4', 'success') $$, 'SL033', null, 'what another has taken over is not marked by the first'
);
select set_config('webhook.claims', '', false);
select throws_ok(
  $$ select pg_temp.mark('evt-4', 'success') $$, 'SL033', null, 'nor by a session that does not know whose it is'
);
select is(pg_temp.mark('evt-5', 'success'), 'success 1 ', 'which may mark an event that was never taken over');
update webhook_events set next_attempt_at = now(), lease_until = now() where event_id = 'evt-4';
select results_eq($$ select event_id from webhook.claim_next_event() $$, $$ values ('evt-4') $$, 'the next claims it');
select is(pg_temp.mark('evt-4', 'success'), 'success 1 ', 'and marks it');

select * from finish();
rollback;

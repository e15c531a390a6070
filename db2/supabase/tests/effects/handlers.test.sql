-- Which events have an effect without anybody's doing, and the effect of those that are only kept.
begin;
select plan(8);

create function pg_temp.apply(p_event_id text, p_payload jsonb)
returns text
language sql
as $$
  select webhook.apply_side_effect(jsonb_populate_record(null::public.webhook_events, jsonb_build_object(
    'provider', 'twilio', 'event_id', p_event_id, 'event_type', 'call.completed', 'payload', p_payload
  )));
$$;

select is(pg_temp.apply('CA1', '{"n": 1}'), null, 'an event leaves its mark');
select is(pg_temp.apply('CA1', '{"n": 2}'), 'effect already taken', 'the same event again does not');
select results_eq(
  $$ select provider, event_id, payload from public.webhook_side_effects $$,
  $$ values ('twilio', 'CA1', '{"n": 1}'::jsonb) $$,
  'one row, as it came first'
);
select bag_eq(
  $$ select provider, event_type from public.webhook_handlers where name = 'webhook.apply_side_effect' $$,
  $$ values ('twilio', '*'), ('whatsapp', '*'), ('daily', 'participant*'), ('daily', 'meeting*'),
       ('daily', 'recording*'), ('daily', 'transcript*'), ('daily', 'streaming*'), ('daily', 'waiting-participant*') $$,
  'events of calls and messages are kept'
);
select bag_eq(
  $$ select event_type from public.webhook_handlers where name = 'webhook.apply_payment' and provider = 'stripe' $$,
  $$ select distinct event_type from public.payment_rules $$,
  'every type with a rule has its handler'
);
select bag_eq(
  $$ select event_type from public.webhook_handlers where name = 'stripe-thin' and kind = 'typescript' $$,
  $$ select distinct 'v1.' || event_type from public.payment_rules $$,
  'and so has its thin event'
);
select is_empty(
  $$ select name from public.webhook_handlers
     where kind = 'sql' and to_regprocedure(name || '(public.webhook_events)') is null $$,
  'every handler is a function of an event'
);
select throws_ok(
  $$ insert into public.payment_rules (event_type, state) values ('x', 'refunded') $$,
  '23514', null::text, 'no rule tells a state that only the sum of refunds gives'
);

select * from finish();
rollback;

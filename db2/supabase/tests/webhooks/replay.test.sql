-- replay_events and skip_events: one transaction with one audit row an event, and an answer for each id.
begin;
select plan(22);

create function pg_temp.id(p_number int)
returns uuid
language sql
as $$
  select ('00000000-0000-7000-8000-' || lpad(p_number::text, 12, '0'))::uuid;
$$;

insert into public.webhook_events
  (id, webhook_id, provider, event_id, status, attempts, takeovers, error, payload, lease_until, skipped_by,
  next_attempt_at)
select pg_temp.id(n), '00000000-0000-4000-8000-000000000001', 'shop', 'e' || n, s::public.webhook_event_status, 5, 2,
  'broken', p, now() + lease, who, null
from (values
  (1, 'failed', '{}'::jsonb, null::interval, null), (2, 'dead_letter', '{}', null, null),
  (3, 'skipped', '{}', null, 'bob'),
  (4, 'skipped', '{}', null, null), (5, 'success', '{}', null, null), (6, 'pending', '{}', null, null),
  (7, 'processing', '{}', '1 minute', null), (8, 'processing', '{}', '-1 minute', null),
  (9, 'dead_letter', null, null, null)
) as t (n, s, p, lease, who);

create function pg_temp.ids()
returns uuid[]
language sql
as $$
  select array_agg(pg_temp.id(n)) from generate_series(1, 10) n;
$$;

create function pg_temp.told(p_dry_run boolean)
returns text
language sql
as $$
  select string_agg(coalesce(event_id, '?') || ' ' || outcome, ', ' order by id)
  from webhook.replay_events(pg_temp.ids(), 'ann', 'fixed', p_dry_run, 'again-1');
$$;

create function pg_temp.skipped(p_dry_run boolean)
returns text
language sql
as $$
  select string_agg(coalesce(event_id, '?') || ' ' || outcome, ', ' order by id)
  from webhook.skip_events(pg_temp.ids(), 'ann', 'never mind', p_dry_run);
$$;

create temp table before as select tests.events() as events;
select is(
  pg_temp.told(true),
  'e1 would_replay, e2 would_replay, e3 would_replay, e4 already_processed, e5 already_processed, e6 in_flight, '
  'e7 in_flight, e8 in_flight, e9 quarantined, ? unknown',
  'a dry run tells what would happen'
);
select is(
  pg_temp.skipped(true),
  'e1 would_skip, e2 would_skip, e3 already_skipped, e4 already_skipped, e5 already_processed, e6 would_skip, '
  'e7 in_flight, e8 would_skip, e9 would_skip, ? unknown',
  'also of skipping'
);
select is(tests.events(), (select events from before), 'and changes nothing');
select is_empty($$ select * from audit.audit_logs where action <> 'rule_change' $$, 'and leaves no audit row');

select throws_ok(
  $$ select webhook.replay_events(pg_temp.ids(), null, 'x') $$, '23502', null, 'an action has an actor'
);
select throws_ok(
  $$ select webhook.replay_events(pg_temp.ids(), 'ann', 'x', false, '') $$, 'SL001', null, 'a key is not empty'
);
select is(tests.events(), (select events from before), 'what is refused changes nothing');

select is(
  pg_temp.told(false),
  'e1 replayed, e2 replayed, e3 replayed, e4 already_processed, e5 already_processed, e6 in_flight, '
  'e7 in_flight, e8 in_flight, e9 quarantined, ? unknown',
  'a replay answers for each id'
);
select results_eq(
  $$ select distinct status::text, attempts, takeovers, error, next_attempt_at <= clock_timestamp(), idempotency_key,
       skipped_by
     from public.webhook_events where event_id in ('e1', 'e2', 'e3') $$,
  $$ values ('pending', 0, 0, null, true, 'again-1', null) $$,
  'what is replayed begins anew, due at once, with the key that was given'
);
select results_eq(
  $$ select actor, action, subject, reason, details ->> 'event_id', details ->> 'status', details ->> 'attempts',
       details ->> 'error', details ->> 'idempotency_key'
     from audit.audit_logs where action <> 'rule_change' order by id $$,
  $$ values
    ('ann', 'webhook_replay', 'webhook event ' || pg_temp.id(1), 'fixed', 'e1', 'failed', '5', 'broken', 'again-1'),
    ('ann', 'webhook_replay', 'webhook event ' || pg_temp.id(2), 'fixed', 'e2', 'dead_letter', '5', 'broken', 'again-1'),
    ('ann', 'webhook_replay', 'webhook event ' || pg_temp.id(3), 'fixed', 'e3', 'skipped', '5', 'broken', 'again-1') $$,
  'and what it was is in the audit log'
);
select results_eq(
  $$ select idempotency_key from tests.take(1) $$, $$ values ('again-1') $$, 'its handler gets that key'
);
select is(
  pg_temp.told(false),
  'e1 in_flight, e2 in_flight, e3 in_flight, e4 already_processed, e5 already_processed, e6 in_flight, '
  'e7 in_flight, e8 in_flight, e9 quarantined, ? unknown',
  'the second replay finds them in flight'
);
select results_eq(
  'select * from webhook.replay_totals()',
  $$ values ('00000000-0000-4000-8000-000000000001'::uuid, 'ann', 3::bigint) $$,
  'the totals count what was replayed'
);

select is(
  pg_temp.skipped(false),
  'e1 in_flight, e2 skipped, e3 skipped, e4 already_skipped, e5 already_processed, e6 skipped, e7 in_flight, e8 skipped, '
  'e9 skipped, ? unknown',
  'skipping answers for each id'
);
select results_eq(
  $$ select distinct status::text, skipped_by, error, next_attempt_at, processed_at is not null
     from public.webhook_events where event_id in ('e2', 'e3', 'e6', 'e8', 'e9') $$,
  $$ values ('skipped', 'ann', 'never mind', null::timestamptz, true) $$,
  'what is skipped says by whom and why'
);
select is(
  (select count(*)::int from audit.audit_logs where action = 'webhook_skip' and reason = 'never mind'), 5,
  'with an audit row each'
);
select is(
  (select string_agg(outcome, ' ' order by id) from webhook.skip_events(array[pg_temp.id(2), pg_temp.id(2), null], 'ann')),
  'already_skipped', 'an id counts once, and null is none'
);
select is(
  (select outcome from webhook.replay_events(array[pg_temp.id(2)], 'ann')), 'replayed',
  'what an operator skipped can be replayed'
);
select is(
  (select idempotency_key from public.webhook_events where id = pg_temp.id(2)), 'again-1',
  'a replay without a key keeps the one it has'
);
select is_empty($$ select * from webhook.replay_events('{}', 'ann') $$, 'no ids, no answers');

insert into public.webhook_events
  (id, webhook_id, provider, event_id, event_type, status, attempts, error, payload, next_attempt_at)
select pg_temp.id(20 + n), '00000000-0000-4000-8000-000000000001', 'shop', 'f' || n, 'act', 'skipped', 1, e, '{}', null
from (values (1, 'no handler for act'), (2, 'no handler for this'), (3, null)) as t (n, e);
select is(
  (select string_agg(outcome, ' ' order by id)
   from webhook.replay_events(array[pg_temp.id(21), pg_temp.id(22), pg_temp.id(23)], 'ann')),
  'replayed already_processed already_processed', 'what had no handler may have one now'
);
select is((select status::text from public.webhook_events where event_id = 'f1'), 'pending', 'and is tried again');

select * from finish();
rollback;

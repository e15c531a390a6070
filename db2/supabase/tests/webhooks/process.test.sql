-- process_events: effect and mark together; who fails takes nothing of the others with it.
begin;
select plan(30);

select webhook.add_endpoint('shop', 'shop', '{A}', 'queued', '{"max_attempts": 2, "backoff_cap_sec": 3}', 'ann');
insert into public.webhook_handlers (provider, event_type, kind, name) values
  ('shop', 'act', 'sql', 'tests.act'), ('shop', 'gone', 'sql', 'tests.gone'),
  ('shop', 'odd', 'sql', 'tests.act(); drop table x'),
  ('shop', 'ts', 'typescript', 'mine');

create function pg_temp.event(p_id text, p_payload jsonb default '{}', p_type text default 'act')
returns void
language sql
as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
  select f.webhook_id, 'shop', p_id, p_type, p_payload from webhook.find_endpoint('shop') f;
$$;

-- Takes and processes all that is due, and says what became of it.
create function pg_temp.work()
returns table (event_id text, outcome text, error text)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_ids uuid[];
  v_tokens uuid[];
begin
  select array_agg(t.id), array_agg(t.lease_token) into v_ids, v_tokens from tests.take(100, null) t;
  return query
  select e.event_id, p.outcome, p.error
  from webhook.process_events(v_ids, v_tokens) p join public.webhook_events e on e.id = p.id;
end
$$;

select pg_temp.event('a1');
select pg_temp.event('a2', '{"skip": "nothing to do"}');
select pg_temp.event('a3', '{}', 'unheard');
select bag_eq(
  'select * from pg_temp.work()',
  $$ values ('a1', 'success', null), ('a2', 'skipped', 'nothing to do'), ('a3', 'skipped', 'no handler for unheard') $$,
  'success, or skipped with the reason'
);
select bag_eq(
  $$ select event_id, status::text, attempts, error, processed_at is not null, next_attempt_at, lease_token
     from public.webhook_events $$,
  $$ values ('a1', 'success', 1, null, true, null::timestamptz, null::uuid),
            ('a2', 'skipped', 1, 'nothing to do', true, null, null),
            ('a3', 'skipped', 1, 'no handler for unheard', true, null, null) $$,
  'and so it is marked'
);
select bag_eq('select event_id from tests.effects', $$ values ('a1'), ('a2') $$, 'with the effects');

select pg_temp.event('b1');
select pg_temp.event('b2', '{"raise": "P0001"}');
select pg_temp.event('b3', '{"raise": "SL030"}');
select pg_temp.event('b4', '{"raise": "40P01"}');
select pg_temp.event('b5', '{"raise": "55P03"}');
select pg_temp.event('b6', '{"raise": "40001"}');
select pg_temp.event('b7', '{}', 'gone');
select pg_temp.event('b8', '{}', 'odd');
select pg_temp.event('b9');
select bag_eq(
  'select event_id, outcome from pg_temp.work()',
  $$ values ('b1', 'success'), ('b2', 'failed'), ('b3', 'dead_letter'), ('b4', 'failed'), ('b5', 'failed'),
            ('b6', 'failed'), ('b7', 'failed'), ('b8', 'failed'), ('b9', 'success') $$,
  'in a batch with trouble each has its own end'
);
select bag_eq(
  $$ select event_id from tests.effects where event_id like 'b%' $$, $$ values ('b1'), ('b9') $$,
  'what failed has no effect, what did not has one'
);
select results_eq(
  $$ select error from public.webhook_events where event_id in ('b2', 'b7') order by event_id $$,
  $$ values ('as told'), ('the function tests.gone(public.webhook_events) does not exist') $$,
  'the error is kept'
);
select bag_eq(
  $$ select event_id, attempts from public.webhook_events where status = 'failed' $$,
  $$ values ('b2', 1), ('b4', 0), ('b5', 0), ('b6', 0), ('b7', 1), ('b8', 1) $$,
  'a deadlock, a lock and a serialization failure are not counted'
);
select ok(
  (select next_attempt_at - last_attempt_at between interval '1.6 seconds' and interval '2.4 seconds'
   from public.webhook_events where event_id = 'b2'),
  'the next try is in 2 seconds, give or take a fifth'
);
select is_empty(
  $$ select event_id from public.webhook_events where status = 'failed' and next_attempt_at <= last_attempt_at $$,
  'nothing that failed is due at once'
);

update public.webhook_events set next_attempt_at = now() + interval '1 hour' where status = 'failed';
update public.webhook_events set next_attempt_at = now() where event_id = 'b2';
select results_eq(
  'select * from pg_temp.work()', $$ values ('b2', 'dead_letter', 'as told') $$, 'the last attempt makes a dead letter'
);
update public.webhook_events set status = 'pending', attempts = 0, payload = '{}', next_attempt_at = now()
where event_id = 'b2';
select results_eq(
  'select * from pg_temp.work()', $$ values ('b2', 'success', null) $$, 'once its cause is gone it succeeds'
);

select pg_temp.event('l1');
select pg_temp.event('l2');
create temp table lease as select * from tests.take(2);
update public.webhook_events set lease_token = gen_random_uuid() where event_id = 'l1';
select bag_eq(
  $$ select e.event_id, p.outcome, p.status::text
     from webhook.process_events((select array_agg(id) from lease), (select array_agg(lease_token) from lease)) p
     join lease e on e.id = p.id $$,
  $$ values ('l1', 'lost_lease', null), ('l2', 'success', 'success') $$,
  'a lost lease is told'
);
select bag_eq(
  $$ select event_id, status::text from public.webhook_events where event_id like 'l%' $$,
  $$ values ('l1', 'processing'), ('l2', 'success') $$,
  'and changes nothing'
);
select bag_eq($$ select event_id from tests.effects where event_id like 'l%' $$, $$ values ('l2') $$, 'nor has it an effect');
select bag_eq(
  $$ select p.outcome
     from webhook.process_events((select array_agg(id) from lease), (select array_agg(lease_token) from lease)) p $$,
  $$ values ('lost_lease'), ('lost_lease') $$,
  'the second call has lost them all'
);

select pg_temp.event('t1', '{}', 'ts');
select results_eq('select * from pg_temp.work()', $$ values ('t1', 'typescript', null) $$, 'not for SQL to process');
select results_eq(
  $$ select status::text, lease_token is not null from public.webhook_events where event_id = 't1' $$,
  $$ values ('processing', true) $$,
  'and so left to who has the lease'
);

-- A constraint that waits for the commit.
create table tests.late (n int, constraint late_is_unique unique (n) deferrable initially deferred);
create function tests.defer(p_event public.webhook_events)
returns text
language sql
as $$
  insert into tests.late values (1), ((p_event.payload ->> 'n')::int);
  select null::text;
$$;
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'late', 'sql', 'tests.defer');
select pg_temp.event('d1', '{"n": 1}', 'late');
select pg_temp.event('d2', '{"n": 2}', 'late');
select bag_eq(
  'select event_id, outcome from pg_temp.work()', $$ values ('d1', 'failed'), ('d2', 'success') $$,
  'a constraint that would fail at the commit fails its own event only'
);

-- Counts what is there before it adds itself.
create table tests.seen (event_id text, before bigint);
create function tests.look(p_event public.webhook_events)
returns text
language sql
as $$
  insert into tests.seen select p_event.event_id, count(*) from tests.seen;
  select null::text;
$$;
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'look', 'sql', 'tests.look');
select pg_temp.event('s1', '{}', 'look');
select pg_temp.event('s2', '{}', 'look');
select pg_temp.event('s3', '{}', 'look');
select pg_temp.work();
select bag_eq(
  'select * from tests.seen', $$ values ('s1', 0::bigint), ('s2', 1), ('s3', 2) $$,
  'within a batch each event sees what those before it did'
);

select is_empty($$ select * from webhook.process_events('{}', '{}') $$, 'an empty batch has no answers');

-- What is not the event's fault, and what only looks special.
delete from public.webhook_events;
select pg_temp.event('x' || code, jsonb_build_object('raise', code))
from unnest(array['08006', '53100', '57P03', '58030', '25006', 'SL034', 'P0004', '22012', '25001']) code;
select bag_eq(
  'select event_id, outcome from pg_temp.work()',
  $$ select 'x' || code as event_id, 'failed' as outcome
     from unnest(array['08006', '53100', '57P03', '58030', '25006', 'SL034', 'P0004', '22012', '25001']) code $$,
  'none of them stops the others, an assertion neither'
);
select bag_eq(
  $$ select event_id, attempts, waiting_since is not null as is_waiting,
       next_attempt_at - last_attempt_at > interval '2.4 seconds' as is_longer
     from public.webhook_events $$,
  $$ values ('x08006', 0, true, true), ('x53100', 0, true, true), ('x57P03', 0, true, true), ('x58030', 0, true, true),
            ('x25006', 0, true, true), ('xSL034', 0, true, true), ('xP0004', 1, false, false),
            ('x22012', 1, false, false), ('x25001', 1, false, false) $$,
  'outages and "not now" are not counted, and wait longer than a first failure'
);
update public.webhook_events set next_attempt_at = now(), payload = '{}' where event_id = 'x53100';
select pg_temp.work();
select results_eq(
  $$ select status::text, waiting_since from public.webhook_events where event_id = 'x53100' $$,
  $$ values ('success', null::timestamptz) $$, 'and when the outage is over it takes effect'
);
select results_eq(
  $$ select extract(epoch from webhook.backoff(n, 3600)) between b * 0.8 and b * 1.2
     from (values (4, 60), (5, 120), (6, 240), (9, 1920), (10, 3600), (2000000000, 3600)) as t (n, b) $$,
  $$ select true from generate_series(1, 6) $$, 'with a cap above a minute the wait goes on doubling up to it'
);
select results_eq(
  $$ select extract(epoch from webhook.backoff(n, (webhook.default_limits()).backoff_cap_sec)) between b * 0.8 and b * 1.2
     from (values (1, 2), (2, 5), (3, 15), (4, 60)) as t (n, b) $$,
  $$ select true from generate_series(1, 4) $$, 'an endpoint that says nothing else waits 2, 5, 15 and 60 seconds'
);

create function tests.many(p_event public.webhook_events)
returns setof text
language sql
as $$
  select null::text where false;
$$;
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'many', 'sql', 'tests.many');
-- The failed ones above come round again after two seconds.
delete from public.webhook_events;
select pg_temp.event('m1', '{}', 'many');
select results_eq(
  'select outcome, error from pg_temp.work()',
  $$ values ('failed', 'tests.many(public.webhook_events) is not a function that returns text') $$, 'a handler answers once'
);

delete from public.webhook_events;
select pg_temp.event('y1');
select pg_temp.event('y2', '{"raise": "P0001"}');
create temp table twice as select * from tests.take(5);
select lives_ok(
  $$ select webhook.process_events(array_agg(id), array_agg(lease_token))
     from (select * from twice union all select * from twice) t $$,
  'an event that is named twice'
);
select is((select status::text from public.webhook_events where event_id = 'y1'), 'success', 'takes effect once');

-- A handler that is slow, next to one that fails: as many as there is patience for.
create function tests.slow(p_event public.webhook_events)
returns text
language plpgsql
as $$
begin
  perform pg_sleep((p_event.payload ->> 'sec')::float);
  return 1 / (p_event.payload ->> 'divisor')::int;
end
$$;
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'slow', 'sql', 'tests.slow');
delete from public.webhook_events;
select pg_temp.event('z1', '{"sec": 0, "divisor": 0}', 'slow');
select pg_temp.event('z2', '{"sec": 5.1, "divisor": 0}', 'slow');
select pg_temp.event('z3', '{"sec": 0, "divisor": 1}', 'slow');
select bag_eq(
  'select event_id, outcome, error from pg_temp.work()',
  $$ values ('z1', 'failed', 'division by zero'), ('z2', 'failed', 'division by zero'), ('z3', 'failed', null) $$,
  'when patience has run out the rest is put off'
);
select results_eq(
  $$ select attempts, next_attempt_at < clock_timestamp() + interval '2 seconds'
     from public.webhook_events where event_id = 'z3' $$,
  $$ values (0, true) $$, 'uncounted, for a moment'
);

select * from finish();
rollback;

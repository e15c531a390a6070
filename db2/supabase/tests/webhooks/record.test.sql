-- record_events: one row a key, whatever is delivered how often; what differs raises an alarm and changes nothing.
begin;
select plan(27);

select webhook.add_endpoint('shop', 'stripe', '{A}', 'queued', '{}', 'ann');
select webhook.add_endpoint('door', 'stripe', '{A}', 'inline', '{"lease_sec": 90}', 'ann', null, 'stripe');
select webhook.add_endpoint('hub', 'github', '{A}', 'queued', '{}', 'ann');
select webhook.add_endpoint('one', 'hmac', '{A}', 'queued', '{"scheme": {}}', 'ann');
select webhook.add_endpoint('two', 'hmac', '{A}', 'queued', '{"scheme": {}}', 'ann');

-- Events of one endpoint, each an array of id, body and perhaps dedupe hash and quarantine.
create function pg_temp.record(p_endpoint text, variadic p_events jsonb[])
returns table (ordinal int, id uuid, outcome text, status public.webhook_event_status)
language sql
as $$
  select r.ordinal, r.id, r.outcome, r.status
  from (
    select array_agg(f.webhook_id) as webhook_ids, array_agg(e ->> 0 order by n) as ids,
      array_agg(e ->> 1 order by n) as bodies, array_agg(e ->> 2 order by n) as dedupes,
      array_agg(e ->> 3 order by n) as quarantines
    from unnest(p_events) with ordinality e (e, n), webhook.find_endpoint(p_endpoint) f
  ) a
  cross join lateral webhook.record_events(
    a.webhook_ids, a.ids, array_fill('t'::text, array[cardinality(a.ids)]), null, null,
    array(select encode(convert_to(b, 'UTF8'), 'base64') from unnest(a.bodies) b), null,
    array(select md5(b) from unnest(a.bodies) b), a.dedupes, array_fill('sig'::text, array[cardinality(a.ids)]),
    a.quarantines
  ) r;
$$;

create function pg_temp.outcomes(p_endpoint text, variadic p_events jsonb[])
returns text
language sql
as $$
  select string_agg(r.outcome, ' ' order by r.ordinal) from pg_temp.record(p_endpoint, variadic p_events) r;
$$;

select is(pg_temp.outcomes('shop', '["e2", "{\"n\": 2}"]', '["e1", "{\"n\": 1}"]'), 'recorded recorded', 'new events');
select results_eq(
  $$ select event_id, provider, event_type, status::text, attempts, payload, encode(raw_body, 'escape'), signature,
       next_attempt_at = now()
     from public.webhook_events order by arrival $$,
  $$ values ('e2', 'stripe', 't', 'pending', 0, '{"n": 2}'::jsonb, '{"n": 2}', 'sig', true),
            ('e1', 'stripe', 't', 'pending', 0, '{"n": 1}', '{"n": 1}', 'sig', true) $$,
  'each is stored with payload and bytes, due at once, in the order of arrival'
);
create temp table before as select tests.events() as events;
select is(
  pg_temp.outcomes('shop', '["e1", "{\"n\": 1}"]', '["e2", "{\"n\": 2}"]'), 'duplicate duplicate',
  'the same again is a duplicate'
);
select is(
  pg_temp.outcomes('door', '["e1", "{\"n\": 1}"]'), 'duplicate',
  'also at another endpoint of the tenant'
);
select is(pg_temp.outcomes('shop', '["e1", "{\"n\": 9}"]'), 'body_differs', 'a known id with another body is told');
select is(pg_temp.outcomes('shop', '["e1", "{\"n\": 9}"]'), 'body_differs', 'and told again');
select is(tests.events(), (select events from before), 'none of that touches an event');
select results_eq(
  $$ select event_id, kind, stored_hash = md5('{"n": 1}'), received_hash = md5('{"n": 9}'), encode(body, 'escape')
     from public.webhook_alarms $$,
  $$ values ('e1', 'body_differs', true, true, '{"n": 9}') $$,
  'one alarm keeps the other body, however often it came'
);
select is(
  pg_temp.outcomes('shop', '["e1", "{\"n\": 1}"]', '["e3", "{}"]', '["e3", "{}"]', '["e3", "[]"]'),
  'duplicate recorded duplicate body_differs', 'new and known ones in one batch, and one twice: the first counts'
);
update public.webhook_events set status = 'success' where event_id = 'e1';
select results_eq(
  $$ select outcome, status::text from pg_temp.record('shop', '["e1", "{\"n\": 1}"]') $$,
  $$ values ('duplicate', 'success') $$,
  'a duplicate answers the status of today'
);

select is(pg_temp.outcomes('hub', '["d1", "{}", "hash"]'), 'recorded', 'an event whose id is not signed');
select is(
  pg_temp.outcomes('hub', '["d2", "{}", "hash"]'), 'duplicate', 'the same signed body under another id is the same event'
);
select is(pg_temp.outcomes('shop', '["d2", "{}", "hash"]'), 'recorded', 'from another provider it is a new one');

select is(pg_temp.outcomes('one', '["1", "{\"a\": 1}"]'), 'recorded', 'a sender that counts from 1');
select is(pg_temp.outcomes('two', '["1", "{\"b\": 1}"]'), 'recorded', 'is not mixed up with another one that does');

select is(
  pg_temp.outcomes('shop', '["q1", "{\"a\": \"\\u0000\"}", null, "nul"]'), 'quarantined',
  'what jsonb cannot hold is kept'
);
select results_eq(
  $$ select status::text, error, payload, encode(raw_body, 'escape'), next_attempt_at
     from public.webhook_events where event_id = 'q1' $$,
  $$ values ('dead_letter', 'quarantine: nul', null::jsonb, '{"a": "\\u0000"}', null::timestamptz) $$,
  'as a dead letter, with its bytes'
);
select is(
  pg_temp.outcomes('shop', '["q1", "{\"a\": \"\\u0000\"}", null, "nul"]'), 'duplicate', 'and a duplicate the second time'
);
select throws_ok(
  $$ select pg_temp.outcomes('shop', '["q2", "{\"a\": \"\\u0000\"}"]') $$, '22P05', null,
  'negative control: without the quarantine it is an error'
);

select is(pg_temp.outcomes('door', '["i1", "{}"]'), 'recorded', 'an event of an inline endpoint');
select is(
  (select next_attempt_at from public.webhook_events where event_id = 'i1'), now() + interval '90 seconds',
  'is due for a worker only when the server that has it must have died'
);

-- A delivery of two events: the first row carries the body.
create function pg_temp.pair(p_first text, p_second text)
returns text
language sql
as $$
  select string_agg(r.outcome, ' ' order by r.ordinal)
  from webhook.find_endpoint('shop') f
  cross join lateral webhook.record_events(
    array[f.webhook_id, f.webhook_id], array[p_first, p_second], '{t,t}', null, '{"{\"u\": 1}", "{\"u\": 2}"}',
    array[encode('both', 'base64'), null],
    array['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000001']::uuid[],
    '{h1,h2}', null, null, null
  ) r;
$$;
select is(pg_temp.pair('p1', 'p2'), 'recorded recorded', 'one delivery can hold two events');
select results_eq(
  $$ select e.event_id, e.payload, e.raw_body, encode(b.body, 'escape')
     from public.webhook_events e join public.webhook_bodies b on b.id = e.body_id order by e.event_id $$,
  $$ values ('p1', '{"u": 1}'::jsonb, null::bytea, 'both'), ('p2', '{"u": 2}', null, 'both') $$,
  'both have their own payload and share the body'
);
delete from public.webhook_bodies;
select is(pg_temp.pair('p1', 'p2'), 'duplicate duplicate', 'delivered again both are duplicates');
select is_empty('select * from public.webhook_bodies', 'and the body is not kept a second time');

select webhook.add_endpoint('mine', 'standard', '{A}', 'queued', '{}', 'ann');
select webhook.add_endpoint('yours', 'standard', '{A}', 'queued', '{}', 'ann');
select is(
  pg_temp.outcomes('mine', '["1", "{}"]') || ' ' || pg_temp.outcomes('yours', '["1", "[]"]'), 'recorded recorded',
  'so do senders of the standard scheme'
);
select bag_eq(
  $$ select provider from public.webhook_events where provider like 'standard%' $$,
  $$ values ('standard:mine'), ('standard:yours') $$, 'under their endpoint'
);

select * from finish();
rollback;

-- record_calls says for each call: recorded, duplicate or event_conflict; the index decides, not the caller.
begin;
select plan(17);

-- Records calls given as 'site event kind payload hash', with a dash for null; the outcomes in order.
create function pg_temp.outcomes(variadic p_calls text[])
returns text
language sql
as $$
  select string_agg(r.outcome, ' ' order by r.ordinal)
  from (
    select array_agg(split_part(c, ' ', 1) order by o) as sites,
      array_agg(nullif(split_part(c, ' ', 2), '-') order by o) as events,
      array_agg(split_part(c, ' ', 3) order by o) as kinds,
      array_agg(split_part(c, ' ', 4) order by o) as payloads,
      array_agg('2026-02-24T10:00:00Z'::timestamptz order by o) as times,
      array_agg(nullif(split_part(c, ' ', 5), '-') order by o) as hashes
    from unnest(p_calls) with ordinality as u (c, o)
  ) a
  cross join lateral calls.record_calls(a.sites, a.events, a.kinds, a.payloads, a.times, a.hashes) r;
$$;

select is(pg_temp.outcomes('a - ring {} h1', 'a - ring {} h2', 'b - ring {} h1'),
  'recorded recorded recorded', 'new signatures are recorded; two sites may have the same one');
select is(pg_temp.outcomes('a - ring {} h1'), 'duplicate', 'a signature that is there is a duplicate');
select is(pg_temp.outcomes('a - ring {} h3', 'a - ring {} h3'), 'recorded duplicate',
  'the same signature twice in one batch is recorded once');
select is(pg_temp.outcomes('a - ring {} h1', 'a - ring {} h4', 'a - ring {} h2'), 'duplicate recorded duplicate',
  'a duplicate does not stop the rest of the batch');
select is((select count(*)::int from public.calls), 5, 'and each signature has one row');

select is(pg_temp.outcomes('a - ring {} -', 'a - ring {} -'), 'recorded recorded', 'calls without a signature never conflict');
select is(pg_temp.outcomes('a u1 ring {} -', 'a u1 hang {} -'), 'recorded recorded',
  'calls without a signature do not conflict by their event id either');
select is(pg_temp.outcomes('a u1 ring {} h5'), 'recorded', 'and they do not take the event id of a signed call');

select is(pg_temp.outcomes('a e1 ring {"n":1} h6', 'a e1 ring {"n":1} h7'), 'recorded duplicate',
  'an event that was signed anew is a duplicate of itself');
select is(pg_temp.outcomes('a e1 ring {"n":2} h8'), 'event_conflict', 'the same event id with another payload is a conflict');
select is(pg_temp.outcomes('a e1 hang {"n":1} h9'), 'event_conflict', 'and with another kind');
select is(pg_temp.outcomes('a e1 hang {"n":1} h9', 'a e9 ring {} h10'), 'event_conflict recorded',
  'a conflict does not stop the rest of the batch');
select is(pg_temp.outcomes('b e1 ring {"n":2} h8'), 'recorded', 'two sites may have the same event id');
select is((select count(*)::int from public.calls where event_id = 'e1'), 2, 'a conflict writes nothing');

select is(
  (select r.id from calls.record_calls('{a}', '{null}', '{ring}', '{"{}"}', '{2026-02-24T10:00:00Z}', '{h1}') r),
  (select c.id from public.calls c where c.site_id = 'a' and c.signature_hash = 'h1'),
  'a duplicate names the row that is there'
);
select is_empty($$ select calls.record_calls('{}', '{}', '{}', '{}', '{}', '{}') $$, 'an empty batch has no answers');

drop index public.calls_site_signature_hash_uq;
select is(pg_temp.outcomes('a - ring {} h1'), 'recorded', 'without the index a second row would be there: it is the guard');

select * from finish();
rollback;

-- An SQL handler that fails event after event uses up three attempts of a set, and the others keep theirs.
begin;
select plan(7);

select webhook.add_endpoint('shop', 'shop', '{A}', 'queued', '{}', 'ann');
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'act', 'sql', 'tests.act');

create function pg_temp.events(p_prefix text, p_raise text[]) returns void
language sql as $$
  insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
  select f.webhook_id, 'shop', p_prefix || r.n, 'act', jsonb_strip_nulls(jsonb_build_object('raise', r.code))
  from webhook.find_endpoint('shop') f
  cross join unnest(p_raise) with ordinality as r (code, n)
  order by r.n;
$$;

-- Takes and processes all that is due; each event with the verdict of its try and its attempts.
create function pg_temp.work() returns setof text
language plpgsql as $$
declare
  v_ids uuid[];
  v_tokens uuid[];
begin
  select array_agg(t.id), array_agg(t.lease_token) into v_ids, v_tokens from tests.take(100, null) t;
  return query
  select e.event_id || ' ' || p.verdict || ' ' || e.attempts
  from webhook.process_events(v_ids, v_tokens) p join public.webhook_events e on e.id = p.id
  order by e.event_id;
end
$$;

select pg_temp.events('a', array_fill('P0001'::text, array[6]));
select results_eq(
  'select pg_temp.work()',
  $$ values ('a1 failed 0'), ('a2 failed 0'), ('a3 failed 0'), ('a4 again 0'), ('a5 again 0'), ('a6 again 0') $$,
  'the first three that are tried fail, the others are not tried'
);
select results_eq(
  $$ select event_id || ' ' || status || ' ' || attempts || ' ' || coalesce(error, '-') from public.webhook_events order by 1 $$,
  $$ values ('a1 failed 1 as told'), ('a2 failed 1 as told'), ('a3 failed 1 as told'), ('a4 failed 0 -'), ('a5 failed 0 -'),
       ('a6 failed 0 -') $$,
  'and keep their attempts'
);
update public.webhook_events set next_attempt_at = now(), payload = '{}' where event_id = 'a6';
update public.webhook_events set next_attempt_at = now() where event_id = 'a1';
select pg_temp.events('b', array['P0001', 'P0001']);
select results_eq(
  $$ select w from pg_temp.work() w where w not like 'b%' $$, $$ values ('a1 failed 1'), ('a6 success 0') $$,
  'those that were not tried come before one that failed'
);
delete from public.webhook_events;
select pg_temp.events('c', array['P0001', 'P0001', null, 'P0001', 'P0001', 'P0001', 'P0001']);
select is(
  (select string_agg(split_part(w, ' ', 2), ' ') from pg_temp.work() w), 'failed failed success failed failed failed failed',
  'one that succeeds shows that the handler works: each of the others fails by itself'
);
delete from public.webhook_events;
select pg_temp.events('d', array['SL030', 'SL030', 'SL030', 'P0001']);
select is(
  (select string_agg(split_part(w, ' ', 2), ' ') from pg_temp.work() w), 'dead_letter dead_letter dead_letter failed',
  'an event that a handler gives up says nothing about the handler'
);
delete from public.webhook_events;
select pg_temp.events('e', array['53100', '40P01', 'SL034', 'P0001']);
select is(
  (select string_agg(split_part(w, ' ', 2), ' ') from pg_temp.work() w), 'outage again later failed',
  'nor does an outage, a deadlock, or one that comes too early'
);
delete from public.webhook_events;
select pg_temp.events('f', array['P0001']);
update public.webhook_events set attempts = 4;
select is(
  (select p.outcome || ' ' || p.verdict from tests.take(1) t
   cross join lateral webhook.process_events(array[t.id], array[t.lease_token]) p),
  'dead_letter failed', 'the last attempt is a dead letter because it failed'
);

select * from finish();
rollback;

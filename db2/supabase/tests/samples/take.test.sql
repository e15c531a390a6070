-- The ledger's samples: tickets with their latency, endpoints, and minutes from both.
begin;
select plan(18);

delete from audit.samples;
delete from audit.minute_samples;
delete from audit.marks;
update audit.sampler set parts = '{}';

create function pg_temp.at(p_sec int) returns timestamptz language sql
as $$ select timestamptz '2026-03-01 10:00:00+00' + make_interval(secs => p_sec) $$;
create function pg_temp.claim_made(p_ago_ms int) returns uuid language sql
as $$
  select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint - p_ago_ms), 12, '0') || '-7' || substr(gen_random_uuid()::text, 16))::uuid
$$;

select is(public.take_sample('[]', pg_temp.at(0)) #> '{latency,p50_sec}', 'null', 'without tickets nothing is known of their latency');
insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id, confirmed_at)
select gen_random_uuid(), 'gig', 'u' || i, pg_temp.claim_made(i * 1000), now() from generate_series(1, 3) i;
insert into public.confirmed_tickets (resource_id, pool_id, user_id, confirmed_at) values (gen_random_uuid(), 'gig', 'by hand', now());
select is(
  public.take_sample('[]', pg_temp.at(2)) -> 'latency' ->> 'p50_sec', '2.000', 'half of the tickets took two seconds from their claims'
);
select is(
  (public.take_sample('[]', pg_temp.at(2)) #>> '{latency,tickets}')::int, 3, 'a ticket that names no claim does not count'
);
select is(public.take_sample('[]', pg_temp.at(2)) #> '{latency,pools,gig,2}', '3', 'each pool has its own');

select webhook.add_endpoint('shop', 'shop', '{A}', 'queued', '{}', 'ann');
insert into public.webhook_events (webhook_id, provider, event_id, status)
select f.webhook_id, 'shop', 'e' || i, case when i > 2 then 'dead_letter' else 'pending' end::public.webhook_event_status
from webhook.find_endpoint('shop') f, generate_series(1, 3) i;
select results_eq(
  $$ select e ->> 'name', (e ->> 'waiting')::int, (e ->> 'dead_letters')::int, (e ->> 'per_sec')::numeric
     from jsonb_array_elements(public.take_sample('[]', pg_temp.at(4)) -> 'endpoints') e where e ->> 'name' = 'shop' $$,
  $$ values ('shop', 2, 1, 0.3) $$, 'an endpoint has its backlog, dead letters and rate'
);
select is(public.take_sample('[]', pg_temp.at(4)), (select look from audit.samples where at = pg_temp.at(4)), 'the second server is given the same');

select public.take_sample('[]', pg_temp.at(60));
select results_eq(
  'select at, samples, tickets >= 4, ticket_p50_sec, backlog, dead_letters from audit.minute_samples',
  $$ values (pg_temp.at(0), 3, true, 2::real, 2, 1) $$, 'the minute has the highest of each, and of the half the mean'
);
select is((select parts ? 'endpoint shop' and parts ? 'pool gig' from audit.minute_samples), true, 'and its parts');
select is(
  (select array_agg(m.subject order by m.subject) from audit.marks m where m.kind = 'alert' and m.subject not like '%no webhook worker%'),
  array['events are among the dead letters'], 'alerts are noted'
);
-- Another session may be a webhook worker while this test runs, so these looks are made up.
select is(
  audit.alerts_in('{"webhooks": {"backlog": 1}, "webhook_workers": 0}'), array['events wait and no webhook worker is connected'],
  'a missing worker is an alert while events wait'
);
select is(audit.alerts_in('{"webhooks": {"backlog": 0}, "webhook_workers": 0}'), array[]::text[], 'without events it is none');
select is(audit.alerts_in('{"webhooks": {"backlog": 1}, "webhook_workers": 1}'), array[]::text[], 'and none where a worker is connected');
select is(
  public.read_samples(pg_temp.at(0), pg_temp.at(60), 2, 'endpoint shop') -> 'part' -> -1 -> 1 -> 0, '2', 'a part is read by its samples'
);
select is(
  public.read_samples(pg_temp.at(0), pg_temp.at(120), 60, 'endpoint shop') -> 'part' -> 0 -> 1 -> 2, '1', 'and by its minutes'
);
select public.note_issues();
select is(
  public.take_sample('[]', pg_temp.at(122)) #>> '{issues,open}', (select count(*) from audit.issues where resolved_at is null)::text,
  'open issues are counted'
);
select is(
  (select bool_or(i ->> 'kind' = 'event') and not bool_or(i ? 'error')
   from jsonb_array_elements(public.take_sample('[]', pg_temp.at(122)) #> '{issues,newest}') i), true, 'and the newest named, without their errors'
);
select public.note_marks(
  '[{"kind": "secret", "subject": "endpoint shop", "began_ms": 0, "why": "SHOP_SECRET is not set."}]', pg_temp.at(122));
select is(
  (select t ->> 'why' from jsonb_array_elements(public.take_sample('[]', pg_temp.at(124)) -> 'troubles') t), 'SHOP_SECRET is not set.',
  'a sample has what waits for a person, with its cause'
);
select is(tests.is_cheap('audit.ticket_latency()'), true, 'the latency reads the end of the table and nothing else');

select * from finish();
rollback;

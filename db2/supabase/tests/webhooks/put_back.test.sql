-- A plain update to pending, as the requirement's replay tool and its worker do: the event goes round at once.
begin;
select plan(10);

create function pg_temp.id(p_number int) returns uuid language sql
as $$ select ('00000000-0000-7000-8000-' || lpad(p_number::text, 12, '0'))::uuid $$;
create function pg_temp.due() returns text language sql as $$
  select string_agg(t.event_id || ' ' || t.attempts, ', ' order by t.event_id) from tests.take(10, null) t
$$;

insert into public.webhook_events
  (id, webhook_id, provider, event_id, event_type, status, attempts, takeovers, error, payload, next_attempt_at, processed_at)
select pg_temp.id(n), '00000000-0000-4000-8000-000000000001', 'shop', 'e' || n, 'put_back', s::public.webhook_event_status, 5, 2,
  'broken', '{}', due, done
from (values
  (1, 'dead_letter', null::timestamptz, null::timestamptz), (2, 'failed', now() + interval '1 hour', null),
  (3, 'skipped', null, now()), (4, 'dead_letter', null, null), (5, 'dead_letter', null, null)
) as t (n, s, due, done);
insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'put_back', 'sql', 'tests.act');

select is(pg_temp.due(), null, 'nothing is due');
update webhook_events set status = 'pending', attempts = 0, last_attempt_at = null, error = null
where id in (pg_temp.id(1), pg_temp.id(2), pg_temp.id(3));
select results_eq(
  $$ select e.event_id, e.takeovers, e.processed_at, e.lane = h.lane
     from public.webhook_events e, public.webhook_handlers h
     where e.status = 'pending' and h.event_type = 'put_back' order by 1 $$,
  $$ values ('e1', 0, null::timestamptz, true), ('e2', 0, null, true), ('e3', 0, null, true) $$,
  'what is put back is in the lane of the handler that it has now'
);
select is(pg_temp.due(), 'e1 1, e2 1, e3 1', 'a dead letter, a failed and a skipped event are taken at once');

update webhook_events set status = 'pending', attempts = 0, next_attempt_at = now() + interval '1 hour' where id = pg_temp.id(4);
select is(pg_temp.due(), null, 'an update that says when has its way');

update webhook_events set status = 'dead_letter', next_attempt_at = null where status <> 'dead_letter';
update webhook_events set status = 'pending', attempts = 0 where id = pg_temp.id(5);
select is((select event_id from webhook.claim_next_event()), 'e5', 'a worker without tokens claims it too');
update webhook_events set status = 'pending' where id = pg_temp.id(5);
select results_eq(
  $$ select lease_token, lease_until, attempts from public.webhook_events where id = pg_temp.id(5) $$,
  $$ values (null::uuid, null::timestamptz, 1) $$,
  'putting a claimed event back ends its lease, and its attempts stay counted'
);
select throws_ok(
  $$ select webhook.mark_event_result(pg_temp.id(5), 'success') $$, 'SL033', null, 'so a late mark is refused'
);
select is((select event_id from webhook.claim_next_event()), 'e5', 'and the next worker has it without waiting');
create temp table before as select tests.events() as events;
update webhook_events set status = status;
select is(tests.events(), (select events from before), 'an update that changes no status changes nothing');
update webhook_events set status = 'failed', next_attempt_at = null where id = pg_temp.id(5);
select is(
  (select next_attempt_at from public.webhook_events where id = pg_temp.id(5)), null, 'only pending is put back'
);

select * from finish();
rollback;

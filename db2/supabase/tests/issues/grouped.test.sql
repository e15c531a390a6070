-- Failures and dead letters that are alike are one issue: of one handler, type and shape of the error. It can be replayed whole, and
-- its events are found by its own words.
begin;
select plan(22);

select is(
  audit.error_shape('payment pi_3Mtw is known in usd of user ann@7, not in usd of user bob@example.com'),
  'payment # is known in usd of user ann@#, not in usd of user #', 'shapes are those of DB1'
);

insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'order.*', 'sql', 'public.orders');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, received_at, last_attempt_at, error, payload)
select gen_random_uuid(), e.provider, e.event_id, e.event_type, e.status::public.webhook_event_status,
  '2026-01-01'::timestamptz + e.n * interval '1 hour', '2026-01-02'::timestamptz + e.n * interval '1 hour', e.error, '{}'
from (values
  (1, 'shop', 'e1', 'order.paid', 'dead_letter', 'order 17 is not known'),
  (2, 'shop', 'e2', 'order.paid', 'failed', 'order 18 is not known'),
  (3, 'shop', 'e3', 'order.paid', 'dead_letter', 'order 19 is not known'),
  (4, 'shop', 'e4', 'order.void', 'dead_letter', 'order 20 is not known'),
  (5, 'shop', 'e5', 'order.paid', 'dead_letter', 'no such place'),
  (6, 'other', 'e6', 'x', 'dead_letter', null),
  (7, 'shop', 'e7', 'order.paid', 'skipped', 'order 21 is not known'),
  (8, 'shop', 'e8', 'order.paid', 'pending', null)
) as e (n, provider, event_id, event_type, status, error);
insert into public.claim_outbox (id, kind, payment_key, fact, state, error)
values ('settle:stripe/pi_1', 'settle', 'stripe/pi_1', '{}', 'dead_letter', 'order 7 is not one');

create function pg_temp.issues(p_arguments text default '') returns setof text language plpgsql as $$
begin
  return query execute 'select concat_ws('' | '', kind, coalesce(lane, ''-''), type, error, failures, dead_letters, state) from '
    || 'public.issue_list(' || p_arguments || ')';
end
$$;
create function pg_temp.id_of(p_kind text, p_type text) returns uuid language sql
as $$ select i.id from audit.issues i where i.kind = p_kind and i.type = p_type order by i.failures desc limit 1 $$;

select set_eq(
  $$ select pg_temp.issues() $$,
  $$ values ('event | public.orders | order.paid | order # is not known | 3 | 2 | open'), ('event | - | x | 1 | 1 | open'),
       ('event | public.orders | order.paid | no such place | 1 | 1 | open'),
       ('event | public.orders | order.void | order # is not known | 1 | 1 | open'),
       ('question | stripe | settle | order # is not one | 1 | 1 | open') $$,
  'alike are those of one handler, type and shape; questions of the outbox are among them'
);
select results_eq(
  $$ select first_seen_at::text, last_seen_at::text, example_error, (select e.event_id from public.webhook_events e where e.id::text = i.example_id)
     from public.issue_list(p_type => 'order.paid') i where i.failures = 3 $$,
  $$ select ('2026-01-01 01:00:00'::timestamp at time zone 'UTC')::text, ('2026-01-02 03:00:00'::timestamp at time zone 'UTC')::text,
       'order 19 is not known', 'e3' $$,
  'with when the first came, when the last was tried, and the newest as an example'
);
select results_eq(
  $$ select pg_temp.issues($a$p_type => 'order.v*'$a$) $$,
  $$ values ('event | public.orders | order.void | order # is not known | 1 | 1 | open') $$, 'of types that begin alike'
);
select set_eq(
  $$ select event_id from webhook.list_events(p_event_type => 'order.paid', p_error => 'order # is not known',
       p_statuses => '{failed,dead_letter}') $$,
  $$ values ('e1'), ('e2'), ('e3') $$, 'the words of an issue find its events'
);
select set_eq(
  $$ select event_id from webhook.list_events(p_error => 'ORDER 17') $$, $$ values ('e1') $$, 'a part of an error still does'
);
select is_empty($$ select event_id from webhook.list_events(p_error => 'order # is known') $$, 'other words find none');

select results_eq(
  $$ select outcome, count(*)::int from public.issue_replay(pg_temp.id_of('event', 'order.paid'), 'ann', p_dry_run => true) group by 1 $$,
  $$ values ('would_replay', 3) $$, 'the plan of a replay names all of the issue'
);
select results_eq(
  $$ select outcome, count(*)::int from public.issue_replay(pg_temp.id_of('event', 'order.paid'), 'ann', 'mended') group by 1 $$,
  $$ values ('replayed', 3) $$, 'a replay sends all of it round again'
);
select results_eq(
  $$ select event_id from public.webhook_events where status = 'pending' order by 1 $$, $$ values ('e1'), ('e2'), ('e3'), ('e8') $$,
  'and nothing else'
);
select is(
  (select i.state || ' by ' || i.resolved_by from public.issue_list(p_type => 'order.paid') i where i.error = 'order # is not known'),
  'resolved by ann', 'which resolves it'
);
select is(
  (select i.example_error from public.issue_list(p_type => 'order.paid') i where i.error = 'order # is not known'), 'order 19 is not known',
  'and its example keeps its words'
);
update public.webhook_events set status = 'failed', attempts = 1, error = 'order 17 is not known', last_attempt_at = clock_timestamp(),
  next_attempt_at = now() where event_id = 'e1';
select is(
  (select i.state from public.issue_list(p_type => 'order.paid') i where i.error = 'order # is not known'), 'reopened',
  'until it comes back'
);

select results_eq(
  $$ select outcome from public.issue_replay(pg_temp.id_of('question', 'settle'), 'ann', p_dry_run => true) $$, $$ values ('would_replay') $$,
  'a question of the outbox has a plan too'
);
select results_eq(
  $$ select outcome from public.issue_replay(pg_temp.id_of('question', 'settle'), 'ann') $$, $$ values ('replayed') $$, 'and is asked again'
);
select is((select state from public.claim_outbox where id = 'settle:stripe/pi_1'), 'due', 'by the courier');

-- What a sample has of them costs the same however many there are.
insert into audit.issues (id, kind, type, failures, dead_letters, first_seen_at, last_seen_at, example_id, opened_at, resolved_at)
select gen_random_uuid(), 'k', 'n' || n, 1, 1, now(), now() + n * interval '1 second', 'x', now(), case when n > 1100 then now() end
from generate_series(1, 1200) n;
select is((audit.open_issues() ->> 'open')::int, 1000, 'open issues are counted up to 1000');
select is(
  (select string_agg(i ->> 'type', ' ') from jsonb_array_elements(audit.open_issues() -> 'newest') i), 'n1100 n1099 n1098 n1097 n1096',
  'those that were seen last come first, and none that is resolved'
);
delete from audit.issues where kind = 'k' and type <> 'n7';
select is(
  (audit.open_issues() ->> 'open')::int, (select count(*)::int from audit.issues where resolved_at is null), 'fewer are counted exactly'
);

insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, error)
select gen_random_uuid(), 'shop', 'many-' || n, 'order.paid', 'dead_letter', 'the shop is away' from generate_series(1, 100) n;
create sequence pg_temp.shapes;
create or replace function audit.error_shape(p_error text) returns text language plpgsql as $$
begin
  perform nextval('pg_temp.shapes');
  return p_error;
end
$$;
select audit.note_issues(clock_timestamp());
select cmp_ok((select last_value from pg_temp.shapes), '<', 20::bigint, 'a hundred dead letters with one error have one look at it');

create or replace function audit.error_shape(p_error text) returns text language plpgsql as $$
begin
  raise query_canceled;
end
$$;
update audit.sampler set issues_due_at = now();
select is(public.note_issues(), false, 'a look that the server cancels notes nothing');
select cmp_ok((select issues_due_at from audit.sampler), '>', clock_timestamp(), 'and is not repeated at once');

select * from finish();
rollback;

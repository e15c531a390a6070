-- Failures and dead letters that are alike stand in one group, and a group can be replayed or skipped by its own words.
begin;
select plan(16);

select is(webhook.error_shape(null), null, 'no error has no shape');
select is(webhook.error_shape('amount is above 10^15'), 'amount is above #^#', 'numbers do not count');
select is(
  webhook.error_shape('payment pi_3Mtw is known in usd of user ann@7, not in usd of user bob@8'),
  'payment # is known in usd of user ann@#, not in usd of user bob@#', 'nor ids with a digit in them'
);
select is(
  webhook.error_shape('event 0190b2c1-7a2e-7c3d-9f00-aabbccddeeff at 2026-02-24T10:00:00Z'), 'event # at #:#:#',
  'nor uuids and times'
);
select is(
  webhook.error_shape('column "user" of relation "orders" says ''no way'' in `code`'),
  'column "…" of relation "…" says "…" in "…"', 'nor what is quoted, however it is quoted'
);
select is(
  webhook.error_shape('it isn''t there, and the user''s gone'), 'it isn''t there, and the user''s gone',
  'an apostrophe quotes nothing'
);
select is(length(webhook.error_shape(repeat('word ', 400))), 200, 'a shape is short enough to be given as a filter');

insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'order.*', 'sql', 'public.orders');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, received_at, last_attempt_at, error)
select gen_random_uuid(), e.provider, e.event_id, e.event_type, e.status::public.webhook_event_status,
  '2026-01-01'::timestamptz + e.n * interval '1 hour', '2026-01-02'::timestamptz + e.n * interval '1 hour', e.error
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

create function pg_temp.grouped(p_arguments text) returns setof text
language plpgsql as $$
begin
  return query execute 'select concat_ws('' | '', coalesce(handler, ''-''), event_type, error, events, dead_letters) from '
    || 'webhook.group_events(' || p_arguments || ')';
end
$$;

select results_eq(
  $$ select pg_temp.grouped('') $$,
  $$ values ('public.orders | order.paid | order # is not known | 3 | 2'), ('- | x | 1 | 1'),
       ('public.orders | order.paid | no such place | 1 | 1'), ('public.orders | order.void | order # is not known | 1 | 1') $$,
  'alike are those of one handler, type and shape; the largest group first, then the one seen last'
);
select results_eq(
  $$ select first_seen_at::text, last_seen_at::text, example_error, (select e.event_id from public.webhook_events e where e.id = g.example_id)
     from webhook.group_events() g limit 1 $$,
  $$ select ('2026-01-01 01:00:00'::timestamp at time zone 'UTC')::text, ('2026-01-02 03:00:00'::timestamp at time zone 'UTC')::text,
       'order 19 is not known', 'e3' $$,
  'with when the first came, when the last was tried, and the newest as an example'
);
select results_eq(
  $$ select pg_temp.grouped($a$p_provider => 'other'$a$) $$, $$ values ('- | x | 1 | 1') $$, 'of a provider'
);
select results_eq(
  $$ select pg_temp.grouped($a$p_event_type => 'order.v*', p_since => '2026-01-01'$a$) $$,
  $$ values ('public.orders | order.void | order # is not known | 1 | 1') $$, 'of types and a time'
);
select is_empty($$ select pg_temp.grouped($a$p_until => '2026-01-01'$a$) $$, 'before then there were none');
select results_eq(
  $$ select pg_temp.grouped($a$p_limit => 1$a$) $$, $$ values ('public.orders | order.paid | order # is not known | 3 | 2') $$,
  'no more than asked for'
);
select set_eq(
  $$ select event_id from webhook.list_events(p_event_type => 'order.paid', p_error => 'order # is not known',
       p_statuses => '{failed,dead_letter}') $$,
  $$ values ('e1'), ('e2'), ('e3') $$, 'the words of a group find its events'
);
select set_eq(
  $$ select event_id from webhook.list_events(p_error => 'ORDER 17') $$, $$ values ('e1') $$, 'a part of an error still does'
);
select is_empty(
  $$ select event_id from webhook.list_events(p_error => 'order # is known') $$, 'other words find none'
);

select * from finish();
rollback;

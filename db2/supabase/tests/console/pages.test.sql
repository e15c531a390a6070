-- A page costs what it holds, however far down it begins, and an id is found by an index: on every Postgres since 15,
-- where a function in SQL is planned without its arguments.
begin;
select plan(12);

-- The nth of the ids.
create function pg_temp.id(p_number int)
returns uuid
language sql
immutable
as $$
  select lpad(to_hex(p_number), 32, '0')::uuid;
$$;

insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
select pg_temp.id(n), 'p', 'u', pg_temp.id(n) from generate_series(1, 20000) n;
insert into public.calls (id, site_id) select pg_temp.id(n), 's' from generate_series(1, 20000) n;
insert into audit.audit_logs (actor, action, subject) select 'ann', 'act', 'it' from generate_series(1, 20000);
insert into public.webhook_events (id, webhook_id, provider, event_id, status, next_attempt_at)
select pg_temp.id(n), pg_temp.id(n % 5), 'stripe', 'e' || n, 'success', null from generate_series(1, 20000) n;
analyze public.confirmed_tickets, public.calls, audit.audit_logs, public.webhook_events;

select ok(tests.is_cheap('public.tickets_page(null, 5)'), 'the first page of tickets');
select ok(tests.is_cheap('public.tickets_page(pg_temp.id(19990), 5)'), 'the last one');
select ok(
  tests.is_cheap('public.tickets_page(null, 5, array[pg_temp.id(3), pg_temp.id(19990)])'), 'the tickets of some slots'
);
select ok(tests.is_cheap('calls.list_calls(p_limit => 5)'), 'the newest calls');
select ok(tests.is_cheap('calls.list_calls(p_before => pg_temp.id(10), p_limit => 5)'), 'the oldest ones');
select ok(tests.is_cheap('public.audit_page(null, 5)'), 'the newest of the audit log');
select ok(
  tests.is_cheap('public.audit_page((select min(id) + 10 from audit.audit_logs), 5)'), 'the oldest of it'
);
select ok(tests.is_cheap($$webhook.list_events(p_event_id => 'e19990')$$), 'an event by nothing but its id');
select ok(
  tests.is_cheap($$webhook.list_events(p_event_id => 'e19990', p_webhook_id => pg_temp.id(0))$$), 'or its endpoint''s'
);
select ok(tests.is_cheap($$webhook.list_events(p_event_id => 'none')$$), 'or that it is not there');
select results_eq(
  $$ select event_id from webhook.list_events(p_event_id => 'e19990') $$, array['e19990'], 'it is that event'
);

-- Negative control: what no index helps with is seen.
select ok(
  not tests.is_cheap($$webhook.list_events(p_statuses => '{skipped}')$$), 'a filter without an index is not cheap'
);

select * from finish();
rollback;

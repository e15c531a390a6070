-- The courier: rows under leases, finished once, put off without an attempt where the intake is away.
begin;
select plan(24);

create function pg_temp.later(p_id text, p_token uuid, p_error text default null, p_is_final boolean default false) returns text
language sql as $$
  select l.outcome from public.outbox_later_all(jsonb_build_array(jsonb_build_object(
    'id', p_id, 'token', p_token, 'delay_sec', 0, 'error', p_error, 'is_final', p_is_final))) l;
$$;

select tests.pay(1);
select tests.pay(2, '{"id": "pi_2"}');
create temp table taken as select * from public.outbox_take(1, 60);
select is((select count(*)::int from taken), 1, 'a take has at most as many as it wants');
select is((select fact ->> 'payment_key' || ' ' || kind from taken), 'stripe/pi_1 settle', 'the longest due one first');
select is((select count(*)::int from public.outbox_take(10, 60)), 1, 'another take has the other');
select is((select count(*)::int from public.outbox_take(10, 60)), 0, 'then none is due');
select tests.refuses(
  $$ select public.outbox_finish(id, token, '{"decision": "unknown"}') from taken $$, 'SL001', 'unknown is not a decision'
);
select tests.refuses($$ select public.outbox_finish(id, token, null) from taken $$, 'SL001', 'nor is nothing');
select is(
  (select pg_temp.later(id, gen_random_uuid()) from taken), 'lost_lease', 'who does not have the lease puts nothing off'
);
select is((select pg_temp.later(id, token) from taken), 'due', 'an outage puts it off');
select is((select attempts || ' ' || (error is null) from public.claim_outbox where id = 'settle:stripe/pi_1'), '0 true', 'and counts for nothing');
select is((select pg_temp.later(id, token) from taken), 'lost_lease', 'a second time the lease is gone');
create temp table again as select * from public.outbox_take(1, 60);
select is((select pg_temp.later(id, token, 'refused') from again), 'due', 'a failure puts it off too');
select is((select attempts || ' ' || error from public.claim_outbox where id = 'settle:stripe/pi_1'), '1 refused', 'and counts');
select is((select count(*)::int from public.outbox_take(10, 0)), 1, 'a lease of no time');
create temp table last as select * from public.outbox_take(10, 60);
select is((select attempts from last), 1, 'is taken over at once');
select is((select public.outbox_finish(id, token, '{"decision": "ignored"}') from again), 'lost_lease', 'the first one has lost it');
select is((select state from public.claim_outbox where id = 'settle:stripe/pi_1'), 'due', 'and changes nothing');
select is((select public.outbox_finish(id, token, '{"decision": "ignored"}') from last), 'done', 'the second one finishes it');
select is(
  (select state || ' ' || (result ->> 'decision') || ' ' || (finished_at = now()) from public.claim_outbox where id = 'settle:stripe/pi_1'),
  'done ignored true', 'with what the intake answered'
);
select is((select public.outbox_finish(id, token, '{"decision": "funds"}') from last), 'lost_lease', 'once');
select is(public.outbox_finish('settle:none', gen_random_uuid(), '{}'), 'lost_lease', 'an id that is none finishes nothing');

update public.claim_outbox set next_attempt_at = now(), state = 'due', finished_at = null;
select is(
  (select string_agg(f.id || ' ' || f.outcome, ', ' order by f.id) from public.outbox_finish_all(
    (select jsonb_agg(jsonb_build_object('id', t.id, 'token', t.token, 'result', '{"decision": "void"}'::jsonb)) from public.outbox_take(10, 60) t)
  ) f), 'settle:stripe/pi_1 done, settle:stripe/pi_2 done', 'many are finished in one call'
);
select is(
  tests.as_caller('service_role', null, 'select count(*) from public.outbox_take(1, 1)'), '0', 'service_role may take'
);

select * from finish();
rollback;

-- A row of the outbox that can never be carried is given up, with its error, until an operator lets it be tried again.
begin;
select plan(17);

create function pg_temp.fail(p_id text, p_is_final boolean default false) returns text
language sql as $$
  select l.outcome from public.outbox_take(10, 60) t, public.outbox_later_all(jsonb_build_array(jsonb_build_object(
    'id', t.id, 'token', t.token, 'delay_sec', 0, 'error', 'SL001 no amount', 'is_final', p_is_final))) l
  where t.id = p_id;
$$;
create function pg_temp.row(p_id text) returns text
language sql as $$
  select concat_ws(' ', o.state, o.attempts, o.error) from public.claim_outbox o where o.id = p_id;
$$;

select tests.pay(1);
select is(pg_temp.fail('settle:stripe/pi_1', true), 'dead_letter', 'what no other try can end better');
select is(pg_temp.row('settle:stripe/pi_1'), 'dead_letter 1 SL001 no amount', 'is given up, and says why');
select is((select count(*)::int from public.outbox_take(10, 60)), 0, 'it is not taken any more');
select is(
  (select o.outcome from public.claim_outbox c, public.outbox_finish_all(jsonb_build_array(jsonb_build_object(
    'id', c.id, 'token', c.token, 'result', '{"decision": "funds"}'::jsonb))) o), 'lost_lease', 'nor finished'
);
select is(tests.pay(1), 'already known', 'an event that comes again');
select is(pg_temp.row('settle:stripe/pi_1'), 'dead_letter 1 SL001 no amount', 'does not change it');
select is((public.ledger_order_metrics() #>> '{outbox,settle,dead_letters}'), '1', 'it is counted');
select is((public.ledger_order_metrics() #>> '{outbox,settle,due}'), '0', 'and waits for no courier');
select results_eq(
  $$ select id, decision, error from public.settled_payments() $$,
  $$ values ('settle:stripe/pi_1', 'dead_letter', 'SL001 no amount') $$, 'the comparison with the intake names it'
);
select is(public.resettle_payments('{settle:stripe/pi_1}', 'bob', 'mended'), 1, 'an operator lets it be tried again');
select is(pg_temp.row('settle:stripe/pi_1'), 'due 0 SL001 no amount', 'from the beginning');
select is(
  (select string_agg(pg_temp.fail('settle:stripe/pi_1'), ' ') from generate_series(1, 10)),
  'due due due due due due due due due dead_letter', 'the tenth failure is the last'
);
select public.resettle_payments('{settle:stripe/pi_1}', 'bob');
select is(tests.settle('funds'), 'done', 'once it is mended, it is decided');
select is(pg_temp.row('settle:stripe/pi_1'), 'done 0', 'and nothing is left of the error');

select public.request_void(array[tests.claim_id(1)], false, 'bob');
select is((select pg_temp.fail(id, true) from public.claim_outbox where kind = 'void'), 'dead_letter', 'a void is given up too');
select is((select public.resettle_payments(array[id], 'bob') from public.claim_outbox where kind = 'void'), 1, 'and tried again');
select is(
  (select string_agg(split_part(subject, ':', 1), ', ' order by id) from audit.audit_logs where action = 'payment_resettle'),
  'payment stripe/pi_1, payment stripe/pi_1, outbox operator', 'each time with an audit row'
);

select * from finish();
rollback;

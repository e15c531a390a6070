-- The intake can be restored to an earlier moment, and decide otherwise, and be restored again. The ledger follows each decision.
begin;
select plan(18);

create function pg_temp.decide(p_decision text) returns text
language sql as $$
  select public.resettle_payments('{settle:stripe/pi_1}', 'bob', 'restored');
  select tests.settle(p_decision);
  select tests.owed();
$$;
create function pg_temp.refunds() returns text
language sql as $$
  select string_agg(replace(r.id, 'stripe/pi_1', '') || ' ' || r.state, ', ' order by r.id) from public.refunds_due r;
$$;

select tests.sell_two();
select is(tests.owed(), '0 0', 'a payment bought tickets');
savepoint sold;
select is(pg_temp.decide('refund'), '2000 2000', 'the restored intake says that it did not');
select is(pg_temp.refunds(), 'settle: due', 'so it is owed');
select is(pg_temp.decide('funds'), '0 0', 'the intake has found the decision, and the purchase is one again');
select is(pg_temp.refunds(), 'settle: done', 'and is not owed any more');
select is_empty('select from public.refunds_take(10, 60)', 'the refunder does not send it');
select is(pg_temp.decide('funds'), '0 0', 'the same decision again changes nothing');
select is(pg_temp.decide('refund'), '2000 2000', 'it turns again');
select is(pg_temp.refunds(), 'settle: done, settle::1 due', 'and is owed again');
select is(pg_temp.decide('refund'), '2000 2000', 'once');
select is(pg_temp.decide('funds'), '0 0', 'and back');
select results_eq(
  $$ select kind, amount::int, event_id from public.credit_ledger where kind like 'purchase%' order by id $$,
  $$ values ('purchase', -2000, 'settle:stripe/pi_1'), ('purchase_void', 2000, 'settle:stripe/pi_1'),
    ('purchase', -2000, 'settle:stripe/pi_1:2'), ('purchase_void', 2000, 'settle:stripe/pi_1:3'),
    ('purchase', -2000, 'settle:stripe/pi_1:4') $$, 'the ledger has each turn'
);

-- One of the two tickets is taken back for good meanwhile.
select public.request_void(array[tests.claim_id(2)], true, 'bob');
select public.void_order_tickets((select o.id from public.claim_outbox o where o.id like 'operator:%'), tests.targets(2));
select is(tests.owed(), '1000 1000', 'a ticket is taken back and owed');
select is(pg_temp.decide('refund'), '2000 2000', 'the other one was not bought either');
select is(pg_temp.decide('funds'), '1000 1000', 'or was: the first stays taken back');

rollback to sold;
select is(tests.take_back(false, 1), 'voided', 'an operator takes one ticket back, and the seller keeps its price');
select is(pg_temp.decide('refund'), '1000 1000', 'the restored intake owes the other one alone');
select is(pg_temp.decide('funds'), '0 0', 'or finds that it was bought');

select * from finish();
rollback;

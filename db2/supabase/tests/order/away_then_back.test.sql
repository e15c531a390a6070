-- An operator takes tickets back, with a refund, while their money is away for a time. When it comes back, it is owed.
begin;
select plan(20);

create function pg_temp.refunds() returns text language sql as $$
  select coalesce(string_agg(split_part(r.id, ':', 1) || ' ' || r.amount || ' ' || r.state, ', ' order by r.id), 'none') from public.refunds_due r
$$;

select is(tests.sell_two(), 'committed committed', 'two tickets are sold');
savepoint sold;

select is(tests.dispute('needs_response', -2000), null, 'a dispute takes the money');
select is(tests.take_back(true, 1, 2), 'voided voided', 'both tickets are taken back');
select is(pg_temp.refunds(), 'none', 'and nothing is owed while the bank has the money');
savepoint away;
select is(tests.dispute('won', -2000, 2000), null, 'the dispute is won');
select is(pg_temp.refunds(), 'back 2000 review', 'what came back is owed');
select is(tests.owed(), '2000 2000', 'as the ledger says');
select is(tests.dispute('won', -2000, 2000), 'already known', 'told again');
select is(pg_temp.refunds(), 'back 2000 review', 'it is owed once');

rollback to away;
select tests.dispute('lost', -2000);
select is(pg_temp.refunds() || ' ' || tests.owed(), 'none 0 0', 'where the dispute is lost, the buyer has the money');

rollback to sold;
select tests.dispute('needs_response', -2000);
select is(tests.take_back(true, 1), 'voided', 'one of the two is taken back');
select tests.dispute('won', -2000, 2000);
select is(pg_temp.refunds() || ' ' || tests.owed(), 'back 1000 review 1000 1000', 'what came back is owed for this one, and not for the ticket that lives');

rollback to sold;
select tests.dispute('needs_response', -2000);
select is(tests.take_back(false, 1), 'voided', 'one is taken back without a refund');
select is(tests.take_back(true, 2), 'voided', 'the other with one');
select tests.dispute('won', -2000, 2000);
select is(pg_temp.refunds() || ' ' || tests.owed(), 'back 1000 review 1000 1000', 'the seller keeps the money of the first');

rollback to sold;
select is(tests.refund_outside('re_1', 1200, 'pending'), null, 'a part is on its way back, by the dashboard');
select is(tests.take_back(true, 1, 2), 'voided voided', 'both tickets are taken back');
select is(regexp_count(pg_temp.refunds(), 'void \d+ due') || ' ' || tests.owed(), '1 800 800', 'what is left is owed');
select is(tests.refund_outside('re_1', 1200, 'failed'), null, 'the part comes back');
select is(tests.owed(), '2000 2000', 'all is owed');

select * from finish();
rollback;

-- A dispute that is lost for a part leaves the rest of the payment with the seller. Stripe does not say which seat the part is for.
begin;
select plan(32);

create function pg_temp.standing() returns text language sql as $$
  select (select count(*) from public.confirmed_tickets) || ' tickets, '
    || coalesce((select o.state from public.claim_outbox o where o.id = 'void:stripe/pi_1'), 'not asked') || ', '
    || coalesce((select string_agg(split_part(r.id, ':', 1) || ' ' || r.amount || ' ' || r.state, ', ' order by r.id) from public.refunds_due r), 'none')
$$;

create function pg_temp.kept() returns text language sql as $$
  select coalesce(-sum(c.amount), 0)::text from public.credit_ledger c where c.kind = 'forfeit'
$$;

savepoint unsold;
select tests.pay(1);
select tests.settle('refund');
select is(pg_temp.standing(), '0 tickets, not asked, settle 2000 due', 'a payment that bought nothing is owed');
select is(tests.dispute('lost', -500), null, 'a dispute of a part is lost');
select is(pg_temp.standing(), '0 tickets, not asked, settle 2000 due', 'the rest is still owed');
select is((select r.error from public.refunds_due r), null, 'and the row does not say that it went back');
select is(tests.refund_outside('re_1', 1500), null, 'an operator refunds the rest in the dashboard');
select is(pg_temp.standing(), '0 tickets, due, settle 2000 done', 'nothing is left, so nothing is owed');

rollback to unsold;
select is(tests.sell_two(), 'committed committed', 'two tickets are sold');
savepoint sold;
select is(tests.dispute('lost', -500), null, 'a dispute of a part is lost');
select is(pg_temp.standing(), '2 tickets, not asked, none', 'and voids nothing');
select is(tests.dispute('lost', -500, -1500), null, 'the rest is lost too');
select is(pg_temp.standing(), '0 tickets, due, none', 'and voids both');

rollback to sold;
select tests.dispute('lost', -500);
select tests.refund_outside('re_1', 1500);
select is(pg_temp.standing(), '0 tickets, due, none', 'a refund of the rest voids both too');

rollback to sold;
select is(tests.dispute('lost', variadic '{}'), null, 'a dispute is lost, and Stripe does not say for how much');
select is(pg_temp.standing(), '0 tickets, due, none', 'it counts as all');
select is(tests.dispute('lost', -500), null, 'and was a part, as Stripe says then');
select is(pg_temp.standing(), '0 tickets, due, back 1500 review', 'the rest is owed, because its tickets are void');
select is(tests.owed(), '1500 1500', 'as the ledger says');

rollback to sold;
select tests.dispute('lost', -2000);
select is(pg_temp.standing(), '0 tickets, due, none', 'all is lost');
select is(tests.dispute('lost', -2000, 800), null, 'an appeal gives a part back');
select is(pg_temp.standing(), '0 tickets, due, back 800 review', 'it is owed');
select tests.dispute('lost', -2000, 800, 1200);
select is(tests.owed(), '2000 2000', 'and so is the rest, when it follows');

rollback to sold;
select tests.dispute_of(1, 'lost', -500);
select is(tests.dispute_of(2, 'needs_response', -1500), null, 'the bank opens another dispute, for the rest');
select is(pg_temp.standing(), '2 tickets, not asked, none', 'which voids nothing while it is open');
savepoint open_beside_lost;
select is(tests.dispute_of(2, 'lost', -1500), null, 'that one is lost too');
select is(pg_temp.standing(), '0 tickets, due, none', 'and both tickets are void');
rollback to open_beside_lost;
select tests.dispute_of(2, 'won', -1500, 1500);
select is(pg_temp.standing(), '2 tickets, not asked, none', 'where it is won, the tickets live');

rollback to sold;
select tests.take_back(false, 1, 2);
select tests.dispute_of(1, 'lost', -500);
select is(pg_temp.kept(), '1500', 'of forfeited tickets the seller keeps what a lost dispute has left');
select tests.dispute_of(2, 'needs_response', -1500);
select is(pg_temp.kept(), '1500', 'an open dispute beside it changes nothing');
select tests.dispute_of(2, 'won', -1500, 1500);
select is(pg_temp.kept() || ' ' || tests.owed(), '1500 0 0', 'nor does its end, where the money comes back');

rollback to sold;
select tests.dispute_of(1, 'lost', variadic '{}');
select tests.dispute_of(2, 'lost', -500);
select is(pg_temp.standing(), '0 tickets, due, none', 'a lost dispute without an amount counts as all beside another one');

rollback to unsold;
select tests.dispute('lost', -500);
select is(tests.sell_two(), 'committed committed', 'the dispute overtakes its payment');
select is(pg_temp.standing(), '2 tickets, not asked, none', 'which buys its tickets');

select * from finish();
rollback;

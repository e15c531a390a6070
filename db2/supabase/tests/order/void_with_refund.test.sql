-- What a void with a refund sends: never what another ticket is worth, and also a price that was kept before.
begin;
select plan(24);

create function pg_temp.refunds() returns text language sql as $$
  select string_agg(right(r.id, 1) || ' ' || r.amount || ' ' || r.state, ', ' order by r.id) from public.refunds_due r
$$;
create function pg_temp.kept() returns bigint language sql as $$
  select coalesce(-sum(c.amount), 0) from public.credit_ledger c where c.kind = 'forfeit'
$$;
create function pg_temp.told() returns text language sql as $$
  select string_agg(right(k::text, 1), '') from public.kept_claims(array[tests.claim_id(1), tests.claim_id(2), tests.claim_id(3)]) k
$$;
select tests.sell_two();
savepoint sold;

-- A part is gone: Stripe does not say for which seat.
select tests.refund_outside('re_1', 1000);
savepoint part;
select is(tests.take_back(true, 1), 'voided', 'one ticket of two is taken back, after a refund of its price in the dashboard');
select is(pg_temp.refunds(), '1 1000 review', 'what is left is the other ticket''s, so an operator decides');
select is((select error from public.refunds_due), 'other tickets of the payment are worth what is left of it', 'and reads why');
rollback to part;
select is(tests.take_back(true, 1, 2), 'voided voided', 'both are taken back at once');
select is(pg_temp.refunds() || ', ' || tests.owed(), '1 1000 due, 1000 1000', 'no ticket stands against the rest, which is sent');
rollback to sold;
select tests.dispute('lost', -600);
select tests.take_back(true, 1);
select is(pg_temp.refunds(), '1 1000 review', 'the same after a dispute that was lost for a part');
rollback to sold;
select tests.refund_outside('re_1', 300);
select tests.take_back(false, 1);
select is(pg_temp.kept(), 700::bigint, 'the seller keeps what is left of a price');
select tests.take_back(true, 2);
select is(pg_temp.refunds(), '2 1000 due', 'which stands against no refund of the other');
rollback to sold;
select tests.take_back(true, 1);
select tests.take_back(true, 2);
select is(pg_temp.refunds() || ', ' || tests.owed(), '1 1000 due, 2 1000 due, 2000 2000', 'one after the other both are sent');

-- A void without a refund is corrected by one with it.
rollback to sold;
select is(pg_temp.told(), null, 'nothing is kept of tickets that live');
select tests.take_back(false, 1);
select is(pg_temp.kept() || ' ' || pg_temp.told(), '1000 1', 'the seller keeps a price');
savepoint kept;
select is(tests.take_back(true, 1), 'already', 'the claim is voided again, with a refund');
select is(pg_temp.refunds() || ', ' || tests.owed(), '1 1000 due, 1000 1000', 'its price is owed');
select is(pg_temp.kept(), 0::bigint, 'and not kept any more');
select is(pg_temp.told(), null, 'nor said to be');
create temp table after as
select (select count(*) from public.credit_ledger) as credits, (select count(*) from public.refunds_due) as refunds;
select tests.take_back(true, 1);
select tests.take_back(false, 1);
select results_eq(
  $$ select (select count(*) from public.credit_ledger), (select count(*) from public.refunds_due) $$, 'select * from after',
  'a further void changes nothing'
);
rollback to kept;
select tests.take_back(true, 1, 2);
select is(pg_temp.refunds() || ', ' || tests.owed(), '1 1000 due, 2 1000 due, 2000 2000', 'with one that is new, both are owed');
rollback to kept;
select tests.refund_outside('re_1', 1000);
select is(pg_temp.kept() || ' ' || coalesce(pg_temp.told(), 'nothing'), '0 nothing', 'the dashboard gave the price back');
select tests.take_back(true, 1);
select is(pg_temp.refunds(), null, 'it is not sent twice');
rollback to kept;
select tests.refund_outside('re_1', 1500);
select tests.take_back(true, 1);
select is(pg_temp.kept(), 0::bigint, 'nothing is kept where more went back');
rollback to sold;
select tests.take_back(true, 1);
update public.refunds_due set state = 'review';
select public.decide_refunds(array['void:' || tests.claim_id(1)], 'skip', 'bob');
select is(pg_temp.kept() || ' ' || coalesce(pg_temp.told(), 'nothing'), '1000 nothing', 'a refund that an operator skipped');
select tests.take_back(true, 1);
select is(pg_temp.refunds() || ', ' || tests.owed(), '1 1000 skipped, 0 0', 'stays skipped');
rollback to sold;
select tests.refund_outside('re_1', 2000);
select is(pg_temp.told(), null, 'nothing is kept of a payment that is gone');
select tests.take_back(true, 1);
select is(pg_temp.refunds(), null, 'and nothing of it can be sent');

select * from finish();
rollback;

-- The courier takes claims back: a tombstone each, the ticket moved, what it cost owed or kept, all of it once.
begin;
select plan(27);

create function pg_temp.void(p_id text, variadic p_claims int[]) returns text language sql as $$
  select string_agg(v.outcome, ' ' order by v.claim_id) from public.void_order_tickets(p_id, tests.targets(variadic p_claims)) v
$$;
create temp table ids (name text, id text);
select tests.sell_two();
insert into ids values ('back', public.request_void(array[tests.claim_id(1)], true, 'bob', 'moved')),
  ('kept', public.request_void(array[tests.claim_id(2)], false, 'bob'));
savepoint sold;

select tests.refuses($$ select * from public.void_order_tickets('void:none', '[]') $$, 'SL001', 'a void that was never requested');
select tests.refuses(
  $$ select * from public.void_order_tickets('settle:stripe/pi_1', tests.targets(1)) $$, 'SL001', 'or that is none'
);
select is(pg_temp.void((select id from ids where name = 'back'), 1), 'voided', 'a ticket is taken back');
select results_eq(
  $$ select right(resource_id::text, 1), order_id, confirmed_at, cause, outbox_id from public.voided_tickets $$,
  $$ select '1', tests.claim_id(1), now(), 'operator', id from ids where name = 'back' $$, 'it has a tombstone that knows what it was'
);
select is((select string_agg(right(claim_id::text, 1), '') from public.confirmed_tickets), '2', 'and is gone');
select results_eq(
  $$ select id, amount, state, reason, is_auto, decided_by from public.refunds_due $$,
  $$ values ('void:' || tests.claim_id(1), 1000::bigint, 'due', 'moved', false, 'bob') $$, 'what it cost is owed'
);
select is(tests.owed(), '1000 1000', 'the sums agree');
create temp table after as select tests.state() as state;
select is(pg_temp.void((select id from ids where name = 'back'), 1), 'already', 'a second call');
select is(tests.state(), (select state from after), 'changes nothing');
select is(tests.outcomes(tests.ticket(1, 'ann', 1)), 'voided', 'the claim never is a ticket again');
select is(tests.outcomes(tests.ticket(1, 'cyd', 9)), 'committed', 'its slot is the next buyer''s');
select is(pg_temp.void((select id from ids where name = 'back'), 1), 'already', 'a late call');
select is(
  (select user_id from public.confirmed_tickets where right(resource_id::text, 1) = '1'), 'cyd', 'takes nothing from that one'
);
select is(pg_temp.void((select id from ids where name = 'kept'), 2), 'voided', 'the other is taken back without a refund');
select is(
  (select string_agg(kind || ' ' || amount, ', ' order by id) from public.credit_ledger),
  'payment 2000, purchase -2000, purchase_void 1000, purchase_void 1000, forfeit -1000', 'the seller keeps that money'
);
select is(tests.owed(), '1000 1000', 'and the sums agree');
select is(
  (select count(*)::int from public.void_order_tickets((select id from ids where name = 'back'), '[]')), 0, 'no targets, nothing to do'
);

rollback to sold;
select is(
  (select string_agg(v.outcome, ' ') from public.void_order_tickets(
    (select id from ids where name = 'back'), jsonb_build_array(tests.ticket(7, 'dan', 7) || '{"verified": false}')) v),
  'voided', 'a claim that is not paid, and not a ticket yet'
);
select is(
  (select confirmed_at is null and not verified from public.voided_tickets), true, 'has a tombstone that says so'
);
select is((select count(*)::int from public.refunds_due), 0, 'and owes nothing');
select is(tests.outcomes(tests.ticket(7, 'dan', 7)), 'voided', 'its late ticket is refused');

insert into public.confirmed_tickets (resource_id, pool_id, user_id) select (tests.ticket(8, 'eve') ->> 'resource_id')::uuid, 'p', 'eve';
select is(
  (select string_agg(v.outcome, ' ') from public.void_order_tickets(
    (select id from ids where name = 'back'), jsonb_build_array(tests.ticket(8, 'eve', 8))) v),
  'voided', 'the ticket of a claim that its pool''s own function wrote without naming it'
);
select is((select count(*)::int from public.confirmed_tickets where user_id = 'eve'), 0, 'is gone too');

rollback to sold;
select tests.refuses(
  $$ delete from public.confirmed_tickets where claim_id = tests.claim_id(1) $$, '23001', 'a ticket that has no tombstone cannot be deleted'
);

select * from finish();
rollback;

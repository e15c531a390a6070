-- A user is erased, and events about the payment go on: they name the user, or another payment comes that does.
begin;
select plan(10);

create function pg_temp.erase(p_user text) returns text
language plpgsql as $$
declare
  v_name text := public.begin_erasure(p_user, null, null, 'op', 'asked to');
begin
  loop
    exit when (select s.is_clean from public.erase_step(p_user) s);
  end loop;
  perform public.finish_erasure(p_user);
  return v_name;
end
$$;
create function pg_temp.worth() returns text
language sql as $$
  select coalesce(string_agg(w.who || ' ' || w.amount, ', ' order by w.who), 'none') from (
    select case when audit.is_replacement(c.user_id) then 'erased' else c.user_id end as who, sum(c.amount) as amount
    from public.credit_ledger c group by 1
  ) w;
$$;

select tests.sell_two();
savepoint sold;
select tests.dispute('needs_response', -2000);
update public.payments p set user_id = 'erased:' || md5('ann');
select tests.dispute('won', -2000, 2000);
select is_empty('select from public.refunds_due', 'tickets keep their worth while the payment has its new name and the ledger the old one');
rollback to sold;
select isnt(pg_temp.erase('ann'), null, 'the buyer is erased');
select is(pg_temp.worth(), 'erased 0', 'and the sums stay');
select is(
  tests.pay(1, '{"id": "ch_1", "payment_intent": "pi_1", "amount_captured": 2000}', 'charge.succeeded'), 'already known',
  'an event that names the user again is not a contradiction'
);
select is(
  tests.pay(1, '{"id": "ch_1", "payment_intent": "pi_1", "amount_captured": 2000, "amount_refunded": 2000, "captured": true}',
    'charge.refunded'), null, 'nor is a refund'
);
select is(pg_temp.worth(), 'erased 0', 'whose rows have the replacement, all of them');
select is((select count(*)::int from public.voided_tickets), 2, 'the tickets are void');
select is((select count(*)::int from public.credit_ledger where user_id = 'ann'), 0, 'and no row names the user');

-- The claim was made before, the payment comes after.
select tests.pay(3, '{"id": "pi_3"}');
select tests.settle('funds', '{3,4}', '{}', 'pi_3');
select public.request_void(array[tests.claim_id(3)], true, 'bob');
select is(
  (select v.outcome from public.void_order_tickets(
    (select o.id from public.claim_outbox o where o.id like 'operator:%'), jsonb_build_array(tests.ticket(3, 'erased:' || md5('ann'), 3)
      || jsonb_build_object('payment_key', 'stripe/pi_3', 'unit_price', 1000, 'currency', 'usd', 'order_id', tests.claim_id(3)))) v),
  'voided', 'a ticket of an erased user is taken back'
);
select is(pg_temp.worth(), 'ann 1000, erased 0', 'in the name that its payment has');

select * from finish();
rollback;

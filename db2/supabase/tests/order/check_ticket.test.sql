-- A ticket is let in once.
begin;
select plan(17);

create function pg_temp.check(p_claim int, p_actor text default 'gate 1') returns text language sql as $$
  select concat_ws(' ', c.outcome, c.used_at = now(), c.used_by, c.pool_id, right(c.resource_id::text, 1), c.user_id)
  from public.check_ticket(tests.claim_id(p_claim), p_actor) c
$$;
select tests.sell_two();
select is(pg_temp.check(1), 'valid t gate 1 p 1 ann', 'a ticket is valid');
select is(pg_temp.check(1, 'gate 2'), 'used t gate 1 p 1 ann', 'once');
select results_eq(
  $$ select claim_id, used_at, used_by from public.ticket_uses $$, $$ values (tests.claim_id(1), now(), 'gate 1') $$,
  'the first gate has let it in'
);
select is(pg_temp.check(9), 'unknown', 'a claim without a ticket is unknown');
select is(pg_temp.check(null), 'unknown', 'as is none');
select tests.refuses($$ select public.check_ticket(tests.claim_id(2), '') $$, '23514', 'a scanner without a name');
select is(
  (select concat_ws(' ', pool_id, user_id, order_id = tests.claim_id(1), confirmed_at = now(), voided_at is null, cause, used_at = now())
   from public.ticket_details(tests.claim_id(1))), 'p ann t t t t', 'its page knows that it was used'
);
select is((select used_at is null from public.ticket_details(tests.claim_id(2))), true, 'and that the other was not');
select tests.apply_payment('refund.created', '{"id": "re_1", "payment_intent": "pi_1", "amount": 2000, "currency": "usd"}');
select is(pg_temp.check(2), 'voided p 2 ann', 'a ticket that was voided is not let in');
select is(pg_temp.check(1), 'voided t gate 1 p 1 ann', 'nor one that was used before that');
select is((select count(*)::int from public.ticket_uses), 1, 'and no use is noted');
select is(
  (select concat_ws(' ', pool_id, user_id, confirmed_at = now(), voided_at = now(), cause, used_at = now())
   from public.ticket_details(tests.claim_id(1))), 'p ann t t refund t', 'its page stays'
);
select public.void_tickets(jsonb_build_array(tests.ticket(7, 'dan', 7) || '{"cause": "released"}'));
select is(pg_temp.check(7), 'unknown', 'a claim that ended and never was a ticket is unknown');
select is((select count(*)::int from public.ticket_details(tests.claim_id(7))), 0, 'and has no page');
select is(
  tests.as_caller('service_role', null, format($$ select outcome from public.check_ticket(%L, 'gate') $$, tests.claim_id(2))), 'voided',
  'service_role may check'
);
select throws_ok(
  format($$ select tests.as_caller('authenticated', null, $q$ select outcome from public.check_ticket(%L, 'me') $q$) $$, tests.claim_id(2)),
  '42501', null, 'a buyer may not'
);

select * from finish();
rollback;

-- Money that names no user stays visible, and is credited when its user is named.
begin;
select plan(17);

create function pg_temp.waiting() returns text
language sql as $$
  select coalesce(string_agg(p.object_id || ' ' || p.captured || ' ' || p.refunded, ', '), 'none')
  from webhook.payments_without_user() p;
$$;
create function pg_temp.credits() returns text
language sql as $$
  select coalesce(string_agg(c.user_id || ' ' || c.kind || ' ' || c.amount, ', ' order by c.id), 'none')
  from public.credit_ledger c;
$$;

select is(tests.apply('payment_intent.created', '{"id": "pi_0", "metadata": {}}'), null, 'a payment begins');
select is(pg_temp.waiting(), 'none', 'that no money has moved for does not wait');
select is(tests.apply('payment_intent.succeeded', '{"metadata": {}}'), null, 'a payment without a user has an effect');
select is(
  tests.apply('refund.created', '{"id": "re_1", "payment_intent": "pi_1", "amount": 300, "metadata": {"user_id": "eve"}}'),
  null, 'so has its refund'
);
select is(pg_temp.waiting(), 'pi_1 1000 300', 'both stay visible, and a refund names no user');
select is(pg_temp.credits(), 'none', 'no user is credited');
select is(tests.apply('charge.succeeded', '{"id": "ch_1", "payment_intent": "pi_1"}'), null, 'an event names the user');
select is(pg_temp.credits(), 'ann payment 1000, ann refund -300', 'who has all that moved');
select is(pg_temp.waiting(), 'none', 'and nothing waits');
select is(
  tests.apply('charge.updated', '{"id": "ch_1", "payment_intent": "pi_1", "captured": true, "status": "succeeded"}'),
  'already known', 'the same again changes nothing'
);

select is(tests.apply('payment_intent.succeeded', '{"id": "pi_2", "metadata": null}'), null, 'another payment without a user');
select throws_ok(
  $$ select webhook.name_payment_user('stripe', 'pi_2', '', 'op') $$, 'SL001', null, 'an empty name is refused'
);
select is(webhook.name_payment_user('stripe', 'pi_2', 'bob', 'op', 'ticket 7'), true, 'an operator names its user');
select is(webhook.name_payment_user('stripe', 'pi_2', 'eve', 'op'), false, 'once');
select results_eq(
  $$ select user_id, amount::int, business_key from public.credit_ledger where object_id = 'pi_2' $$,
  $$ values ('bob', 1000, 'payment:pi_2:2') $$, 'the user has the money'
);
select results_eq(
  $$ select actor, action, reason, details ->> 'user_id' from audit.audit_logs where subject = 'payment pi_2' $$,
  $$ values ('op', 'payment_name_user', 'ticket 7', audit.pseudonym('bob')) $$, 'and the audit log says who did that'
);
select throws_ok(
  $$ select tests.apply('charge.succeeded', '{"id": "ch_2", "payment_intent": "pi_2"}') $$,
  'SL030', 'payment pi_2 is known as another user''s', 'another user contradicts that'
);

select * from finish();
rollback;

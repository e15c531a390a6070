-- What operators see of orders, what the metrics page shows, and what reconcile asks.
begin;
select plan(19);

select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
select is(
  public.ledger_order_details(tests.claim_id(1)),
  '{"payments": [], "ledger": [], "events": [], "outbox": [], "refunds": [], "tickets": [], "voided": []}'::jsonb, 'an order that is not known'
);
select is(
  public.ledger_order_metrics(),
  '{"outbox": {"settle": {"due": 0, "oldest_sec": 0, "dead_letters": 0}, "void": {"due": 0, "oldest_sec": 0, "dead_letters": 0}}, "refunds": {"due": 0, "review": 0, "failed": 0},
    "refunds_oldest_sec": 0, "braked": 0, "decisions": {"funds": 0, "refund": 0, "void": 0, "ignored": 0}}'::jsonb, 'nothing waits'
);
select tests.sell_two();
select tests.pay(3, '{"id": "pi_3"}');
update public.claim_outbox set created_at = now() - interval '90 seconds' where state = 'due';
select public.request_void(array[tests.claim_id(1)], true, 'bob');
select is(
  public.ledger_order_metrics() #- '{outbox,settle,oldest_sec}' #- '{outbox,void,oldest_sec}',
  '{"outbox": {"settle": {"due": 1, "dead_letters": 0}, "void": {"due": 1, "dead_letters": 0}}, "refunds": {"due": 0, "review": 0, "failed": 0},
    "refunds_oldest_sec": 0, "braked": 0, "decisions": {"funds": 1, "refund": 0, "void": 0, "ignored": 0}}'::jsonb, 'what waits, and what was decided'
);
select cmp_ok((public.ledger_order_metrics() #>> '{outbox,settle,oldest_sec}')::numeric, '>=', 90.0, 'and for how long');
select public.void_order_tickets(id, tests.targets(1)) from public.claim_outbox where id like 'operator:%';
select is((public.ledger_order_metrics() #>> '{refunds,due}'), '1', 'a refund is due');
update public.refunds_due set created_at = now() - interval '10 minutes';
select cmp_ok((public.ledger_order_metrics() ->> 'refunds_oldest_sec')::numeric, '>=', 600.0, 'and for how long');
select is(
  (select jsonb_object_agg(e.key, jsonb_array_length(e.value)) from jsonb_each(public.ledger_order_details(tests.claim_id(1))) e),
  '{"payments": 1, "ledger": 3, "events": 0, "outbox": 2, "refunds": 1, "tickets": 1, "voided": 1}'::jsonb, 'an order has its whole story'
);
select is(
  jsonb_path_exists(public.ledger_order_details(tests.claim_id(1)), '$.**.token'), false, 'and no token of a lease'
);
select public.refund_sent(t.id, t.token, '{"id": "re_1", "object": "refund", "payment_intent": "pi_1", "amount": 1000, "currency": "usd"}')
from public.refunds_take(10, 60) t;
select is(
  public.ledger_order_details(tests.claim_id(1)) #>> '{events,0,event_id}', 'pull:re_1', 'with the events that moved its money'
);

select is((select string_agg(id, ' ') from public.order_refunds(tests.claim_id(1))), 'void:' || tests.claim_id(1), 'its refunds');
insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, refund_key, created_at)
select 'r' || n, 'stripe/pi_9', 1, 'usd', 'test', case when n < 3 then 'review' else 'due' end, false, 'r' || n, now() + make_interval(secs => n)
from generate_series(1, 4) n;
select is((select string_agg(id, ' ') from public.list_refunds(null, null, 3)), 'r4 r3 r2', 'refunds are listed newest first');
select is((select string_agg(id, ' ') from public.list_refunds(null, 'r3', 2)), 'r2 r1', 'page by page');
select is((select string_agg(id, ' ') from public.list_refunds('review')), 'r2 r1', 'those in one state');

select results_eq(
  $$ select claim_id, cause, is_underway from public.voided_claims(array[tests.claim_id(1), tests.claim_id(2)]) $$,
  $$ values (tests.claim_id(1), 'operator', true) $$, 'a void that the courier still carries'
);
select public.outbox_finish(t.id, t.token, '{}') from public.outbox_take(10, 60) t where t.kind = 'void';
select is((select is_underway from public.voided_claims(array[tests.claim_id(1)])), false, 'and one that the intake should know');
select results_eq(
  $$ select id, payment_key, order_id, decision from public.settled_payments() $$,
  $$ values ('settle:stripe/pi_1', 'stripe/pi_1', tests.claim_id(1), 'funds') $$, 'the payments that the intake has decided'
);
select is((select count(*)::int from public.settled_payments('settle:stripe/pi_1')), 0, 'page by page');
insert into public.claim_outbox (id, kind, payment_key, fact, state, finished_at, created_at)
select 'settle:stripe/x' || n, 'settle', 'stripe/x' || n, '{}', 'done', now() - interval '2 hours', now() - interval '2 hours' from generate_series(1, 20000) n;
analyze public.claim_outbox;
select ok(tests.is_cheap('public.ledger_order_metrics()'), 'the metrics cost the same, however many payments there were');
select ok(tests.is_cheap('public.outbox_take(10, 60)'), 'and so does a take');

select * from finish();
rollback;

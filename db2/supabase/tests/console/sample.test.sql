-- What the console watches of the ledger.
begin;
select plan(10);

delete from public.confirmed_tickets;
select is(public.ledger_sample() ->> 'tickets', '0', 'an empty ledger has no tickets');
select public.finalize_batch(jsonb_build_array(jsonb_build_object(
  'resource_id', gen_random_uuid(), 'pool_id', 'p', 'user_id', 'ann', 'claim_id', '11111111-1111-4111-8111-111111111111'
)));
select is(public.ledger_sample() ->> 'tickets', '1', 'a ticket is counted at once');
select is(
  (select user_id from public.ticket_of_claim('11111111-1111-4111-8111-111111111111')), 'ann', 'and found by its claim'
);

delete from public.webhook_events;
select is(
  (public.ledger_sample() -> 'webhooks') - 'recorded', '{"backlog": 0, "oldest_sec": null, "dead_letters": 0, "payments_without_user": 0, "silent_disputes": 0}',
  'without events nothing waits'
);
insert into public.webhook_events (webhook_id, event_id, status, received_at)
select gen_random_uuid(), 'e' || n, s::public.webhook_event_status, now() - n * interval '1 hour'
from (values (1, 'pending'), (2, 'failed'), (3, 'processing'), (4, 'dead_letter'), (5, 'success'), (6, 'skipped')) t (n, s);
select results_eq(
  $$ select w ->> 'backlog', w ->> 'dead_letters' from public.webhook_sample() w $$, $$ values ('3', '1') $$,
  'what is still to take effect waits; what is dead, done or skipped does not'
);
select ok((public.webhook_sample() ->> 'oldest_sec')::numeric between 10800 and 10900, 'the oldest is one that waits');
create temp table before_one as select (public.webhook_sample() ->> 'recorded')::bigint as recorded;
insert into public.webhook_events (webhook_id, event_id) values (gen_random_uuid(), 'one more');
select is(
  (public.webhook_sample() ->> 'recorded')::bigint, (select recorded + 1 from before_one), 'each event has a number'
);

select webhook.add_endpoint('heard', 'stripe', '{A}', 'queued', '{}', 'ann');
select results_eq(
  $$ select actor, action from public.audit_page(p_limit => 1) $$,
  $$ select actor, action from audit.audit_logs order by id desc limit 1 $$, 'the newest of the audit log comes first'
);

-- Another session may be one too; before this one is, it does not count.
create temp table workers as select (public.ledger_sample() ->> 'webhook_workers')::int as before;
set application_name = 'sluice-webhook-worker';
select pg_stat_clear_snapshot();
select is(
  (public.ledger_sample() ->> 'webhook_workers')::int, (select before + 1 from workers), 'webhook workers are counted by their connections'
);
reset application_name;

select tests.apply('payment_intent.succeeded', '{"id": "pi_unnamed", "metadata": {}}');
select tests.apply('payment_intent.created', '{"id": "pi_unpaid", "metadata": {}}');
select is(
  (public.webhook_sample() -> 'payments_without_user')::int, 1, 'money that waits for its user is counted, a payment without money is not'
);

select * from finish();
rollback;

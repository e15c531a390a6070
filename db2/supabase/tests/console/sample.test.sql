-- What the console watches of the ledger.
begin;
select plan(5);

delete from public.confirmed_tickets;
select is(public.ledger_sample() ->> 'tickets', '0', 'an empty ledger has no tickets');
select public.finalize_batch(jsonb_build_array(jsonb_build_object(
  'resource_id', gen_random_uuid(), 'pool_id', 'p', 'user_id', 'ann', 'claim_id', '11111111-1111-4111-8111-111111111111'
)));
select is(public.ledger_sample() ->> 'tickets', '1', 'a ticket is counted at once');
select is(
  (select user_id from public.ticket_of_claim('11111111-1111-4111-8111-111111111111')), 'ann', 'and found by its claim'
);
select is(
  public.ledger_sample() -> 'webhooks' = 'null', to_regclass('public.webhook_events') is null,
  'webhooks have numbers exactly where they are'
);
select lives_ok($$ select * from public.audit_page() $$, 'the audit log can be read, or is not there');

select * from finish();
rollback;

-- One event of a batch fails, the batch is rolled back and each is tried alone: no credit is lost on the way.
begin;
select plan(2);

-- Whatever it is that refuses a row of the ledger, late in the handler.
alter table public.credit_ledger add constraint no_credit_for_eve check (user_id <> 'eve');

insert into public.webhook_events (webhook_id, provider, event_id, event_type, occurred_at, payload)
select '00000000-0000-4000-8000-000000000001', 'stripe', 'evt_' || n, 'payment_intent.succeeded', now(),
  jsonb_build_object('data', jsonb_build_object('object', jsonb_build_object(
    'id', 'pi_' || n, 'object', 'payment_intent', 'amount', 100, 'amount_received', 100, 'currency', 'eur',
    'metadata', jsonb_build_object('user_id', case n when 2 then 'eve' else 'ann' end)
  )))
from generate_series(1, 5) n;
select count(p.*) from (
  select array_agg(t.id) as ids, array_agg(t.lease_token) as lease_tokens from tests.take(10) t
) l cross join lateral webhook.process_events(l.ids, l.lease_tokens) p;

select bag_eq(
  $$ select event_id, status::text from public.webhook_events $$,
  $$ values ('evt_1', 'success'), ('evt_2', 'failed'), ('evt_3', 'success'), ('evt_4', 'success'),
            ('evt_5', 'success') $$,
  'one event fails, the others succeed'
);
select bag_eq(
  $$ select event_id, amount from public.credit_ledger $$,
  $$ values ('evt_1', 100::bigint), ('evt_3', 100), ('evt_4', 100), ('evt_5', 100) $$,
  'and each success is credited'
);

select * from finish();
rollback;

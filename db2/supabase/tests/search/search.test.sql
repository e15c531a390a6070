-- One question finds tickets, payments, refunds, events, calls, issues, users, endpoints, sites and audit rows.
begin;
select plan(28);

select webhook.add_endpoint('stripe_live', 'stripe', '{STRIPE_SECRET}', p_actor => 'tests');
select tests.sell_two();
insert into public.webhook_events (id, webhook_id, provider, event_id, event_type, status)
select ('0198c0de-0000-7000-8000-00000000000' || n)::uuid, w.webhook_id, 'stripe', 'evt_search_' || n, 'a.type', 'success'
from public.webhook_endpoints w, generate_series(1, 3) n where w.name = 'stripe_live';
insert into public.calls (id, site_id, event_id, kind, signature_hash)
values
  ('0198ca11-0000-7000-8000-000000000001', 'site-1', 'signed-4711', 'ring', repeat('ab', 32)),
  ('0198ca11-0000-7000-8000-000000000002', 'site-1', 'plain-4711', 'ring', null);
insert into public.call_sites (site_id, secret_names) values ('site-1', '{A}');
insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, refund_key, provider_refund_id)
values ('settle:stripe/pi_search', 'stripe/pi_search', 1, 'usd', 'test', 'review', false, 'k', 're_search');

create function pg_temp.kinds(p_q text) returns text language sql
as $$ select string_agg(distinct f.kind || ' ' || f.why, ', ' order by f.kind || ' ' || f.why) from public.search_ledger(p_q) f $$;
create function pg_temp.ids(p_q text, p_kind text) returns text language sql
as $$ select string_agg(distinct f.id, ' ' order by f.id) from public.search_ledger(p_q) f where f.kind = p_kind $$;

select is(pg_temp.ids(tests.claim_id(1)::text, 'ticket'), tests.claim_id(1)::text, 'a ticket by its claim');
select is(
  (select string_agg(f.id, ' ') from public.confirmed_tickets t cross join lateral public.search_ledger(t.resource_id::text) f
   where t.claim_id = tests.claim_id(1) and f.kind = 'ticket' and f.why = 'slot'),
  tests.claim_id(1)::text, 'and by its slot'
);
select is(pg_temp.ids('0198c0de', 'event'),
  '0198c0de-0000-7000-8000-000000000001 0198c0de-0000-7000-8000-000000000002 0198c0de-0000-7000-8000-000000000003',
  'events by the beginning of our id');
select is(pg_temp.ids('evt_search_2', 'event'), '0198c0de-0000-7000-8000-000000000002', 'by the whole of their own');
select is((select count(*)::int from public.search_ledger('evt_search') where kind = 'event'), 3, 'and by its beginning');
select is((select count(*)::int from public.search_ledger('evt_search', 2) where kind = 'event'), 2, 'at most so many');
select is(pg_temp.ids('evtXsearch', 'event'), null, 'a sign that means something elsewhere means itself');
select is(pg_temp.ids('signed-47', 'call'), '0198ca11-0000-7000-8000-000000000001', 'a call that was signed by its event');
select is(pg_temp.ids('plain-47', 'call'), '0198ca11-0000-7000-8000-000000000002', 'as is one that was not');
select is(pg_temp.ids(repeat('ab', 32), 'call'), '0198ca11-0000-7000-8000-000000000001', 'and by its signature');
select is(pg_temp.ids('site-', 'site'), 'site-1', 'a site');
select is(pg_temp.ids('LIVE', 'endpoint') is not null, true, 'an endpoint by a part of its name');
select is(
  (select pg_temp.ids(w.webhook_id::text, 'endpoint') = w.webhook_id::text from public.webhook_endpoints w where w.name = 'stripe_live'), true,
  'and by its id'
);
select is(pg_temp.ids('pi_1', 'payment'), 'stripe/pi_1', 'a payment as Stripe calls it');
select is(pg_temp.ids('stripe/pi_1', 'payment'), 'stripe/pi_1', 'with its tenant in front');
select is(pg_temp.ids('other/pi_1', 'payment'), null, 'of that tenant and no other');
select is(pg_temp.ids('settle:stripe/pi_se', 'refund'), 'settle:stripe/pi_search', 'a refund that is owed');
select is(pg_temp.ids('re_search', 'refund'), 'settle:stripe/pi_search', 'and by what the provider calls it');
select is(
  (select pg_temp.ids(t.user_id, 'user') = t.user_id from public.confirmed_tickets t where t.claim_id = tests.claim_id(1)), true, 'the user of a ticket'
);
insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
select 'credited only', 1, 'usd', 'payment', 'stripe', 'pi_x', 'e' || n, 'b' || n from generate_series(1, 3) n;
select is((select count(*)::int from public.search_ledger('credited') where kind = 'user'), 1, 'and of credits, once');
select public.request_void(array[tests.claim_id(1)], true, 'bob');
select is(pg_temp.kinds('claim ' || tests.claim_id(1)), 'audit subject', 'what operators did, by what the log calls the thing');
select is((select count(*) > 0 from public.search_ledger(tests.claim_id(1)::text) where kind = 'audit'), true, 'or by its id');
select public.void_order_tickets(id, tests.targets(1)) from public.claim_outbox where id like 'operator:%';
select is(
  (select state from public.search_ledger(tests.claim_id(1)::text) where kind = 'ticket'), 'void', 'a ticket that is void is found as such'
);

insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'order.*', 'sql', 'public.take_order');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, error, payload)
values (gen_random_uuid(), 'shop', 'evt_issue', 'order.paid', 'dead_letter', 'order 17 is not known', '{}');
select audit.note_issues(now());
create function pg_temp.issue(p_q text) returns text language sql
as $$ select concat_ws(' ', f.ref, f.user_id, f.state, f.why) from public.search_ledger(p_q) f where f.kind = 'issue' $$;
select is(
  pg_temp.issue((select left(i.id::text, 13) from audit.issues i)), 'order.paid public.take_order open id', 'an issue by the beginning of its id'
);
select is(pg_temp.issue('order 18 is not'), 'order.paid public.take_order open words', 'by its error as it was in another failure');
select is(pg_temp.issue('take_order'), 'order.paid public.take_order open words', 'and by its handler');
select is(pg_temp.kinds('nothing is called like this'), null, 'and nothing where nothing is');
select is((select count(*)::int from webhook.event_providers() p (p) where p = 'stripe'), 1, 'each provider of events once');

select * from finish();
rollback;

-- Whose events, payments and credits they are: a tenant for each endpoint, fixed when it is made.
begin;
select plan(29);

create function pg_temp.add(p_name text, p_provider text default 'stripe', p_tenant text default null)
returns text
language plpgsql
as $$
begin
  perform webhook.add_endpoint(p_name, p_provider, '{A}', 'queued',
    case p_provider when 'hmac' then '{"scheme": {}}' else '{}' end::jsonb, 'ann', null, p_tenant);
  return (select e.tenant from webhook.find_endpoint(p_name) e);
end
$$;

select is(pg_temp.add('shop'), 'stripe', 'the first endpoint of a provider has the bare name');
select is(pg_temp.add('eu'), 'stripe:eu', 'the second one has its own');
select is(pg_temp.add('old-shop', 'stripe', 'stripe'), 'stripe', 'unless it is made to share one');
select is(pg_temp.add('eu-too', 'stripe', 'stripe:eu'), 'stripe:eu', 'any that exists');
select is(pg_temp.add('phone', 'twilio'), 'twilio', 'another provider begins anew');
select is(pg_temp.add('one', 'hmac'), 'hmac:one', 'a way to sign is not a provider: not even the first has the bare name');
select is(pg_temp.add('two', 'standard'), 'standard:two', 'nor of the standard scheme');
select throws_ok($$ select pg_temp.add('x', 'stripe', 'stripe:none') $$, 'SL001',
  'the tenant stripe:none does not exist, so it cannot be shared', 'what does not exist is not shared');
select throws_ok($$ select pg_temp.add('x', 'stripe', 'twilio') $$, 'SL001', null, 'nor the tenant of another provider');
select is(
  (select details ->> 'tenant' from audit.audit_logs where subject = 'webhook endpoint eu'), 'stripe:eu',
  'the audit log says which'
);

-- By hand, as the owner.
insert into public.webhook_endpoints (name, provider, secret_names) values ('by-hand', 'stripe', '{A}');
select is((select tenant from public.webhook_endpoints where name = 'by-hand'), 'stripe:by-hand', 'also by hand');
insert into public.webhook_endpoints (name, provider, secret_names) values ('shop', 'stripe', '{A}') on conflict do nothing;
insert into public.webhook_endpoints (name, provider, secret_names) values ('shop', 'stripe', '{A}') on conflict do nothing;
select is_empty($$ select from webhook.tenants where tenant = 'stripe:shop' $$, 'an insert that does nothing makes none');

-- Nothing of another is taken over.
select throws_ok($$ update public.webhook_endpoints set tenant = 'stripe' where name = 'eu' $$, '23001', null,
  'a tenant is fixed');
select throws_ok($$ update public.webhook_endpoints set provider = 'twilio' where name = 'eu' $$, '23001', null,
  'and so is the provider');
select throws_ok($$ select webhook.change_endpoint('eu', '{"tenant": "stripe"}', 'bob') $$, 'SL001', null,
  'an operator does not change it either');
update public.webhook_endpoints set name = 'europe' where name = 'eu';
select is((select tenant from public.webhook_endpoints where name = 'europe'), 'stripe:eu', 'a renamed endpoint keeps it');
select throws_ok($$ select pg_temp.add('eu') $$, 'SL001', 'the tenant stripe:eu was that of an earlier endpoint',
  'and the next of the old name does not get it');
delete from public.webhook_endpoints where name in ('shop', 'old-shop');
select is(pg_temp.add('shop'), 'stripe:shop', 'the bare name stays with the first endpoint when that is deleted');

-- What the tenant is for.
insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
select e.webhook_id, e.tenant, 'evt_1', 'payment_intent.succeeded', jsonb_build_object('data', jsonb_build_object('object',
  jsonb_build_object('id', 'pi_1', 'amount', n * 1000, 'currency', 'eur', 'metadata', '{"user_id": "ann"}'::jsonb)))
from unnest('{europe,shop}'::text[]) with ordinality as w (name, n)
join public.webhook_endpoints e on e.name = w.name;
select webhook.process_events(array_agg(t.id), array_agg(t.lease_token)) from tests.take(10) t;
select results_eq(
  $$ select provider, amount from public.payments order by provider collate "C" $$,
  $$ values ('stripe:eu', 1000::bigint), ('stripe:shop', 2000) $$,
  'the same ids are two payments, and the handlers of the provider take both'
);
select results_eq(
  $$ select provider, currency, amount from webhook.balance('ann') order by provider collate "C" $$,
  $$ values ('stripe:eu', 'eur', 1000::bigint), ('stripe:shop', 'eur', 2000) $$, 'a balance is never one over tenants'
);
select results_eq(
  $$ select p, (select count(*) from webhook.list_events(p_provider => p))
     from unnest('{stripe,stripe:eu,twilio}'::text[]) p $$,
  $$ values ('stripe', 2::bigint), ('stripe:eu', 1), ('twilio', 0) $$, 'events are found by provider and by tenant'
);

-- Two tenants, ids made to meet.
insert into public.webhook_handlers (provider, event_type, kind, name) values ('stripe', 'keys', 'typescript', 'keys');
insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
values (gen_random_uuid(), 'stripe:eu', 'x', 'keys', '{}'), (gen_random_uuid(), 'stripe', 'eu:x', 'keys', '{}');
select bag_eq(
  $$ select idempotency_key from tests.take(10, '{keys}') $$, $$ values ('stripe/eu:x'), ('stripe:eu:x') $$,
  'their keys towards others differ'
);

-- Two endpoints of one tenant, one for tests and one for live events: an event is skipped only where it does not fit.
select webhook.add_endpoint('pair-live', 'stripe', '{A}', 'queued', '{}', 'ann', null, 'stripe:by-hand');
select webhook.add_endpoint('pair-test', 'stripe', '{A}', 'queued', '{"livemode": "test"}', 'ann', null, 'stripe:by-hand');
create function pg_temp.record(p_name text, variadic p_bodies text[]) returns text
language sql
as $$
  select string_agg(r.outcome || ' ' || r.status, ', ' order by r.ordinal)
  from webhook.find_endpoint(p_name) f
  cross join lateral webhook.record_events(
    array_fill(f.webhook_id, array[cardinality(p_bodies)]), array(select b::jsonb ->> 'id' from unnest(p_bodies) b),
    array_fill('keys'::text, array[cardinality(p_bodies)]), null, null,
    array(select encode(convert_to(b, 'UTF8'), 'base64') from unnest(p_bodies) b), null,
    array(select md5(b) from unnest(p_bodies) b), null, null, null
  ) r;
$$;
select is(pg_temp.record('pair-live', '{"id": "pair", "livemode": false}'), 'skipped skipped', 'not for the live one');
select is(
  pg_temp.record('pair-test', '{"id": "pair", "livemode": false}', '{"id": "pair", "livemode": false}'),
  'recorded pending, duplicate pending', 'the one for tests records it, once'
);
select results_eq(
  $$ select p.name, e.status::text, e.error, e.processed_at, e.next_attempt_at is not null, e.lane = h.lane
     from public.webhook_events e join public.webhook_endpoints p using (webhook_id)
     join public.webhook_handlers h on h.name = 'keys'
     where e.event_id = 'pair' $$,
  $$ values ('pair-test', 'pending', null::text, null::timestamptz, true, true) $$,
  'the event is its own now, and due in the lane of its handler'
);
select is(pg_temp.record('pair-live', '{"id": "pair", "livemode": false}'), 'duplicate pending', 'the other cannot take it back');
select is(
  pg_temp.record('pair-live', '{"id": "forged", "livemode": false}')
    || pg_temp.record('pair-test', '{"id": "forged", "livemode": false, "amount": 1}'),
  'skipped skippedbody_differs skipped', 'another body under the same id takes nothing over'
);
select pg_temp.record('pair-live', '{"id": "set-aside", "livemode": false}');
update public.webhook_events set skipped_by = 'bob' where event_id = 'set-aside';
select is(pg_temp.record('pair-test', '{"id": "set-aside", "livemode": false}'), 'duplicate skipped',
  'nor is what an operator skipped');
select pg_temp.record('pair-live', '{"id": "handled", "livemode": false}');
update public.webhook_events set attempts = 1 where event_id = 'handled';
select is(pg_temp.record('pair-test', '{"id": "handled", "livemode": false}'), 'duplicate skipped',
  'nor what a handler skipped');

select * from finish();
rollback;

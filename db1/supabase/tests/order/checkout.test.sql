-- A checkout is written before the provider is asked, once for each order, and only while there is something to pay.
begin;
select plan(31);

select tests.paid_pool('fair', 9, '{"max_quantity": 3}');
insert into public.engine_config (pool_id) values ('free');
insert into public.inventory_slots (pool_id) values ('free');
select public.claim_resource_and_queue('free', 'ann');
select tests.ask('fair', 'ann', 2), tests.ask('fair', 'bob'), tests.ask('fair', 'cid'), tests.ask('fair', 'dan');
select public.claim_batch('{fair}', '{eve}', '{e}', '{f}', p_proofs => '[{"secret_hash": "00ff"}]');

create temp table first as
select c.* from public.begin_checkout((tests.order_of('fair', 'ann')).order_id, 'ann', 'https://tickets.example.com/') c;
create temp table before as select tests.state() as state;
select results_eq(
  $$ select c.* from public.claims a
     cross join lateral public.begin_checkout(a.claim_id, 'ann', 'https://elsewhere.example.com') c
     where a.pool_id = 'fair' and a.user_id = 'ann' $$,
  $$ select f.* from first f, generate_series(1, 2) $$,
  'a second call, by any claim of the order, is the same checkout'
);
select is(tests.state(), (select state from before), 'and changes nothing');

select tests.refuses(
  $$ select public.begin_checkout(gen_random_uuid(), 'ann', 'https://a.example.com') $$, 'SL008', 'a claim that is not there'
);
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('fair', 'bob')).order_id, 'ann', 'https://a.example.com') $$, 'SL006',
  'another user''s claim'
);
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('fair', 'eve')).order_id, 'eve', 'https://a.example.com', '\x01') $$,
  'SL006', 'an unverified claim with another secret'
);
select tests.refuses(
  $$ select public.begin_checkout((tests.claim_of('free', 'ann')).claim_id, 'ann', 'https://a.example.com') $$, 'SL042',
  'a claim that is not paid for'
);
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('fair', 'bob')).order_id, 'bob', 'javascript:alert(1)') $$, 'SL001',
  'an address that is none'
);
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('fair', 'bob')).order_id, null, 'https://a.example.com') $$, 'SL001',
  'a missing user id'
);
update public.orders set hold_until = clock_timestamp() + interval '4 seconds' where user_id = 'bob';
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('fair', 'bob')).order_id, 'bob', 'https://a.example.com') $$, 'SL040',
  'a hold that is nearly over'
);
select tests.settle(tests.payment(tests.order_of('fair', 'cid'), 'pi_c'));
select tests.refuses(
  $$ select public.begin_checkout((tests.order_of('fair', 'cid')).order_id, 'cid', 'https://a.example.com') $$, 'SL041',
  'an order that is paid'
);

select results_eq(
  $$ select order_id, n, idempotency_key, tenant, livemode, session_id, url, state, hold_until, amount, currency from first $$,
  $$ select order_id, 1, 'sluice:checkout:' || order_id || ':1', 'stripe', true, null::text, null::text, 'creating',
       hold_until, 2000::bigint, 'eur' from tests.order_of('fair', 'ann') $$,
  'a checkout has a key that the provider knows it by, and what it costs'
);
select results_eq(
  $$ select params - 'expires_at' from first $$,
  $$ select jsonb_build_object(
       'mode', 'payment', 'client_reference_id', o.order_id, 'allowed_payment_method_types', '["card"]'::jsonb,
       'adaptive_pricing', '{"enabled": false}'::jsonb,
       'line_items', '[{"quantity": 2, "price_data": {"currency": "eur", "unit_amount": 1000, "product_data": {"name": "fair"}}}]'::jsonb,
       'metadata', m.metadata, 'payment_intent_data', jsonb_build_object('metadata', m.metadata),
       'success_url', 'https://tickets.example.com/drop/fair?claim=' || o.order_id,
       'cancel_url', 'https://tickets.example.com/drop/fair?claim=' || o.order_id)
     from tests.order_of('fair', 'ann') o, lateral (select jsonb_build_object(
       'claim_id', o.order_id, 'user_id', 'ann', 'verified', 'true', 'pool_id', 'fair', 'checkout', o.order_id || ':1'
     ) as metadata) m $$,
  'what the provider is asked for is kept as it takes it'
);
select is(
  (select to_timestamp((params ->> 'expires_at')::bigint) - now() between interval '30.9 minutes' and interval '31.1 minutes'
   from first), true, 'a session is asked for 31 minutes at least'
);
select is(
  (public.begin_checkout((tests.order_of('fair', 'eve')).order_id, 'eve', 'https://a.example.com', '\x00ff')).n, 1,
  'the holder of the secret may pay'
);

-- The session is there, and the answer of the provider comes twice.
select is(public.checkout_created((select order_id from first), 1, 'cs_1', 'https://pay/1'), 'held', 'the session is kept');
create temp table kept as select tests.state() as state;
select is(public.checkout_created((select order_id from first), 1, 'cs_1', 'https://pay/1'), 'held', 'the same again is answered');
select is(tests.state(), (select state from kept), 'and changes nothing');
select tests.refuses(
  $$ select public.checkout_created((select order_id from first), 1, 'cs_2', 'https://pay/2') $$, 'SL007', 'another session'
);
select tests.refuses($$ select public.checkout_created(gen_random_uuid(), 1, 'cs_3', 'x') $$, 'SL008', 'no such checkout');
select results_eq(
  $$ select state, session_id, url from public.begin_checkout((select order_id from first), 'ann', 'https://a.example.com') $$,
  $$ values ('open', 'cs_1', 'https://pay/1') $$, 'the buyer who comes again is sent to the same session'
);
select is(intake.url_segment('a b/ö?'), 'a%20b%2F%C3%B6%3F', 'a pool''s name is a segment of the path');

select * from finish();
rollback;

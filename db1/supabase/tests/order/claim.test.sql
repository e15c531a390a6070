-- In a pool that is paid for a claim is held: with an order, without a message, and only for a buyer who can be known again.
begin;
select plan(19);

select tests.paid_pool('show', 6);
select tests.ask('show', 'ann', 1, 'r1');
create temp table old as select * from public.claims where pool_id = 'show';
create temp table before as select tests.state() as state;

select results_eq(
  $$ select outcome, claim_id, resource_id, state, claimed_at, hold_until, group_claims
     from public.claim_batch('{show}', '{ann}', '{r1}') $$,
  $$ select 'same', claim_id, slot_id, 'held', claimed_at, now() + interval '10 minutes', null::jsonb from old $$,
  'the same request again is the same claim'
);
select is(tests.state(), (select state from before), 'and changes nothing');
select results_eq(
  $$ select outcome from public.claim_batch(
       '{show,show,show}', '{bob,bob,ann}', '{r2,r3,r1}', '{f,f,f}',
       p_proofs => '[{"address": "10.0.0.1"}, {"address": "10.0.0.1", "guest": true}, {"address": "10.0.0.1"}]') $$,
  array['secret_required', 'secret_required', 'secret_required'],
  'a buyer with neither a token nor a secret is refused'
);
select throws_ok(
  $$ select tests.as_caller('anon', null, 'select public.claim_resource_and_queue(''show'', ''bob'')') $$, 'SL043', null,
  'also by the API of the database'
);
select set_config('role', 'none', true);
select is(tests.state(), (select state from before), 'and nothing changes');

select results_eq(
  $$ select state::text, order_id = claim_id, msg_id, hold_until, paid, verified from old $$,
  $$ values ('held', true, null::bigint, null::timestamptz, null::boolean, true) $$,
  'a claim of its own order is held; its hold is the order''s'
);
select results_eq(
  $$ select pool_id, user_id::text, verified, seats, unit_price, currency, tenant, livemode, hold_until, grace_until,
       end_as::text, ended_at, payment_key
     from public.orders where order_id = (select claim_id from old) $$,
  $$ values ('show', 'ann', true, 1, 1000::bigint, 'eur', 'stripe', true, now() + interval '10 minutes',
       now() + interval '11 minutes', 'expired', null::timestamptz, null::text) $$,
  'the order keeps what it costs, and whose payments count'
);
select is_empty($$ select from pgmq.q_intake_queue q where q.message ->> 'pool_id' = 'show' $$, 'no message is written');
select results_eq(
  $$ select s.status::text, s.locked_by from public.inventory_slots s join old o on o.slot_id = s.id $$,
  $$ values ('RESERVED', 'ann') $$, 'the slot is taken'
);
create temp table answer as
select * from public.claim_batch('{show}', '{bob}', '{r2}', '{f}', p_proofs => '[{"secret_hash": "00ff"}]');
select is((select outcome from answer), 'claimed', 'a secret is enough');
select results_eq(
  $$ select claim_id, resource_id, state, claimed_at, hold_until, group_claims
     from public.claim_batch('{show}', '{bob}', '{r2}', '{f}', p_proofs => '[{"secret_hash": "00ff"}]') $$,
  $$ select claim_id, resource_id, state, claimed_at, hold_until, group_claims from answer $$,
  'the first answer says what the same request is told again'
);
select results_eq(
  $$ select verified, secret_hash from public.claims where pool_id = 'show' and user_id = 'bob' $$,
  $$ values (false, '\x00ff'::bytea) $$, 'and is the claim''s'
);
select is((tests.order_of('show', 'bob')).verified, false, 'the order knows of which kind its user is');

select isnt(
  tests.as_caller('authenticated', 'cid', 'select public.claim_resource_and_queue(''show'', ''cid'', ''r1'')'), null,
  'a signed-in user gets a slot by the API of the database'
);
select is((tests.claim_of('show', 'cid')).state::text, 'held', 'which is held as well');
select is((tests.order_of('show', 'cid')).seats, 1, 'with an order');

update public.engine_config set price = 2000 where pool_id = 'show';
select tests.ask('show', 'dan');
select results_eq(
  $$ select user_id::text, unit_price from public.orders where user_id in ('ann', 'dan') order by 1 $$,
  $$ values ('ann', 1000::bigint), ('dan', 2000) $$, 'an order keeps the price that it was claimed at'
);
select results_eq(
  $$ select outcome from public.claim_batch('{show,show,show}', '{eve,fay,gus}', '{e,f,g}') order by ordinal $$,
  array['claimed', 'claimed', 'sold_out'], 'the last slots are sold, and no more'
);
select is(
  (select count(*) from public.orders where pool_id = 'show'), 6::bigint, 'a request that is refused has no order'
);

select * from finish();
rollback;

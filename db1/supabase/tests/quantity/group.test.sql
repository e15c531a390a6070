-- One request claims several slots or none, in pools without payment as well; the claims are one order.
begin;
select plan(23);

select public.pool_create('group', 5, '{"max_quantity": 3, "hold_sec": 60}', 'olga');
update public.inventory_slots set label = 'seat ' || sale_order where pool_id = 'group';
create temp table answer as
select * from public.claim_batch('{group,group}', '{ann,bob}', '{r1,r1}', p_quantities => '{3,1}');
create temp table before as select tests.state() as state;

select results_eq(
  $$ select outcome, claim_id, resource_id, state, claimed_at, hold_until, group_claims
     from public.claim_batch('{group,group}', '{ann,bob}', '{r1,r1}', p_quantities => '{3,1}') order by ordinal $$,
  $$ select 'same', claim_id, resource_id, state, claimed_at, hold_until, group_claims from answer order by ordinal $$, 'the same requests again are the same claims'
);
select is(
  (select group_claims from public.claim_batch('{group}', '{ann}', '{r1}')), (select group_claims from answer where ordinal = 1),
  'also when the retry forgets how many there were'
);
select is(tests.state(), (select state from before), 'and nothing changes');
select is(tests.ask('group', 'cid', 4), 'quantity_refused', 'more than one request may claim');
select is(tests.ask('group', 'cid', 3), 'not_enough', 'more than are free');
select is(tests.ask('group', 'cid', 2), 'not_enough', 'one is free');
select is(tests.state(), (select state from before), 'and nothing changes: no slot stays taken, and the pool is not sold out');
select tests.refuses($$ select tests.ask('group', 'cid', 0) $$, 'SL001', 'no slot at all');
select tests.refuses(
  $$ select public.claim_batch('{group}', '{cid}', '{r}', p_quantities => '{1,1}') $$, 'SL001', 'more quantities than requests'
);

select results_eq(
  $$ select a.ordinal, outcome, state, hold_until, jsonb_array_length(group_claims) from answer a order by ordinal $$,
  $$ values (1, 'claimed', 'queued', now() + interval '1 minute', 3), (2, 'claimed', 'queued', now() + interval '1 minute', null) $$,
  'several slots, and one'
);
select results_eq(
  $$ select g.value ->> 'claim_id', g.value ->> 'resource_id', g.value ->> 'label'
     from answer a, jsonb_array_elements(a.group_claims) with ordinality g order by g.ordinality $$,
  $$ select c.claim_id::text, c.slot_id::text, s.label::text
     from public.claims c join public.inventory_slots s on s.id = c.slot_id
     where c.pool_id = 'group' and c.user_id = 'ann' order by c.claim_id <> c.order_id, c.claim_id $$,
  'the answer names all claims, slots and labels, the first of them first'
);
select is(
  (select claim_id::text || resource_id from answer where ordinal = 1),
  (select (group_claims #>> '{0,claim_id}') || (group_claims #>> '{0,resource_id}') from answer where ordinal = 1),
  'the first is the answer''s own'
);
select results_eq(
  $$ select user_id::text, count(order_id)::int, count(distinct order_id)::int, count(request_id)::int
     from public.claims where pool_id = 'group' group by 1 order by 1 $$,
  $$ values ('ann', 3, 1, 1), ('bob', 0, 0, 1) $$, 'a group has one order and one request; a claim alone has no order'
);
select is_empty($$ select from public.orders where pool_id = 'group' $$, 'what is not paid for has no row of orders');
select bag_eq(
  $$ select q.msg_id, q.message from pgmq.q_intake_queue q where q.message ->> 'pool_id' = 'group' and q.message ->> 'user_id' = 'ann' $$,
  $$ select c.msg_id, jsonb_build_object('claim_id', c.claim_id, 'pool_id', c.pool_id, 'resource_id', c.slot_id, 'user_id', 'ann',
       'verified', true, 'order_id', c.order_id, 'state', 'queued') from public.claims c where c.pool_id = 'group' and c.user_id = 'ann' $$,
  'each has its message, which names the order'
);
select results_eq(
  $$ select g."order" - 'claims', g.label from answer a, public.get_claim(a.claim_id) g where a.ordinal = 1 $$,
  $$ select jsonb_build_object('order_id', a.claim_id, 'status', null, 'amount', null, 'currency', null, 'unit_price', null,
       'seats', 3, 'hold_until', null), a.group_claims #>> '{0,label}' from answer a where a.ordinal = 1 $$,
  'a look at one claim shows the group'
);
select is((select g."order" from answer a, public.get_claim(a.claim_id) g where a.ordinal = 2), null, 'a claim alone shows none');
select is(tests.ask('group', 'cid'), 'claimed', 'the last slot is sold');
select is(tests.ask('group', 'dan', 2), 'not_enough', 'nothing is free');
select is(tests.ask('group', 'dan'), 'sold_out', 'and the pool is sold out only when one slot was asked for');
select is(tests.ask('group', 'dan', 2), 'sold_out', 'from then on for all');

select * from finish();
rollback;

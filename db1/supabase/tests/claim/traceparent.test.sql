-- What a caller says of its trace goes with the message, from every door; a claim without it writes what it always wrote.
begin;
select plan(15);

create function pg_temp.header(p_flags text default '01') returns text language sql as $$
  select '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-' || p_flags;
$$;
create function pg_temp.carried(p_pool text) returns setof text language sql as $$
  select q.message ->> 'traceparent' from pgmq.q_intake_queue q where q.message ->> 'pool_id' = p_pool order by q.msg_id;
$$;

select results_eq(
  $$ select intake.trace_of(h) ->> 'traceparent' from unnest(array[
       pg_temp.header(), 'cc' || substr(pg_temp.header(), 3) || '-later', pg_temp.header() || '-more', pg_temp.header() || ', ' || pg_temp.header(),
       upper(pg_temp.header()), 'ff' || substr(pg_temp.header(), 3), '', '00-' || repeat('0', 32) || '-b7ad6b7169203331-01',
       '00-0af7651916cd43dd8448eb211c80319c-' || repeat('0', 16) || '-01', pg_temp.header() || e'\n', pg_temp.header('1')
     ]) h $$,
  $$ values (pg_temp.header()), (pg_temp.header()), (null), (null), (null), (null), (null), (null), (null), (null), (null) $$,
  'a header is read as the specification says, and ignored where it is not valid'
);
select is(intake.trace_of(null), null, 'without a header there is none');

-- The batch: usual requests, and those that are decided one by one.
select public.pool_create('traced', 20, '{}', 'olga');
select count(*) from public.claim_batch(
  '{traced,traced,traced}', '{ann,bob,cid}', '{a,b,c}', p_traceparents => array[pg_temp.header(), null, 'nonsense']);
select results_eq(
  $$ select * from pg_temp.carried('traced') $$, $$ values (pg_temp.header()), (null), (null) $$,
  'each request has its own, or none'
);
select is(
  (select array_agg(k order by k) from pgmq.q_intake_queue q, jsonb_object_keys(q.message) k where q.message ->> 'user_id' = 'bob'),
  array['claim_id', 'pool_id', 'resource_id', 'state', 'user_id', 'verified'],
  'a message without it has no field for it'
);
select count(*) from public.claim_batch('{traced}', '{bob}', '{b}', p_traceparents => array[pg_temp.header()]);
select is((select count(*) from pg_temp.carried('traced')), 3::bigint, 'a retry sends no second message');
select tests.refuses(
  $$ select public.claim_batch('{traced}', '{ann}', '{r}', p_traceparents => '{null,null}') $$, 'SL001', 'more headers than requests'
);
select count(*) from public.claim_batch(
  '{traced,traced}', '{dan,dan}', '{d,d}', p_traceparents => array[pg_temp.header('00'), pg_temp.header()]);
select is(
  (select q.message ->> 'traceparent' from pgmq.q_intake_queue q where q.message ->> 'user_id' = 'dan'), pg_temp.header('00'),
  'of two equal requests the first one''s'
);

-- Several slots of one request.
select public.pool_create('several', 3, '{"max_quantity": 3}', 'olga');
select count(*) from public.claim_batch('{several}', '{ann}', '{r}', p_quantities => '{2}', p_traceparents => array[pg_temp.header()]);
select results_eq(
  $$ select * from pg_temp.carried('several') $$, $$ values (pg_temp.header()), (pg_temp.header()) $$, 'each message of a group has it'
);

-- PostgREST tells the headers of its request.
select public.pool_create('rest', 5, '{}', 'olga');
set local "request.headers" = '{"accept": "*/*", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}';
select public.claim_resource_and_queue('rest', 'ann', 'r');
set local "request.headers" = '{"accept": "*/*", "traceparent": "nonsense"}';
select public.claim_resource_and_queue('rest', 'bob', 'r');
set local "request.headers" = '{"accept": "*/*"}';
select public.claim_resource_and_queue('rest', 'cid', 'r');
set local "request.headers" = '';
select public.claim_resource_and_queue('rest', 'dan', 'r');
select results_eq(
  $$ select * from pg_temp.carried('rest') $$, $$ values (pg_temp.header()), (null), (null), (null) $$,
  'a claim over PostgREST has it too, and a header that is not valid refuses no claim'
);

-- What is paid for: the message is written when the payment has come.
select tests.paid_pool('paid', 4);
select count(*) from public.claim_batch('{paid,paid}', '{ann,bob}', '{a,b}', p_traceparents => array[pg_temp.header(), null]);
select is_empty($$ select * from pg_temp.carried('paid') $$, 'an order that waits has no message');
select is((tests.order_of('paid', 'bob')).trace, null, 'an order without it keeps nothing');
select tests.settle(tests.payment(tests.order_of('paid', 'ann'), 'pi_1')), tests.settle(tests.payment(tests.order_of('paid', 'bob'), 'pi_2'));
select bag_eq(
  $$ select q.message ->> 'user_id' as user_id, q.message ->> 'traceparent' as traceparent from pgmq.q_intake_queue q where q.message ->> 'pool_id' = 'paid' $$,
  $$ values ('ann', pg_temp.header()), ('bob', null) $$, 'the messages of a paid order have it'
);
select count(*) from public.claim_batch('{paid}', '{cid}', '{c}', p_traceparents => array[pg_temp.header()]);
select tests.order_over((tests.order_of('paid', 'cid')).order_id);
select public.expire_holds();
select is(tests.settle(tests.payment(tests.order_of('paid', 'cid'), 'pi_3')), 'funds late', 'a late payment buys');
select is(
  (select q.message ->> 'traceparent' from pgmq.q_intake_queue q
   where q.message ->> 'pool_id' = 'paid' and q.message ->> 'user_id' = 'cid'), pg_temp.header(),
  'and its message has it as well'
);

select * from finish();
rollback;

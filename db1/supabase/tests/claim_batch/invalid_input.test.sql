-- What is no batch is refused as a whole; an empty one has no answers.
begin;
select plan(30);

-- All that a claim can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create function pg_temp.refuses(p_sql text, p_code text, p_name text)
returns setof text
language plpgsql
as $$
declare
  v_before text := pg_temp.state();
begin
  return next throws_ok(p_sql, p_code, null::text, p_name);
  return next is(pg_temp.state(), v_before, p_name || ', and nothing changes');
end
$$;

insert into public.inventory_slots (pool_id) select 'b_valid' from generate_series(1, 5);

select pg_temp.refuses(b.call, 'SL001', b.name)
from (values
  ($$ select public.claim_batch(array['b_valid', 'b_valid'], array['a'], array['1', '2']) $$,
    'a batch with too few users is refused'),
  ($$ select public.claim_batch(array['b_valid'], array['a'], array['1', '2']) $$,
    'a batch with too many request ids is refused'),
  ($$ select public.claim_batch(array['b_valid'], array['a'], array['1'], array[true, false]) $$,
    'a batch with too many verdicts is refused'),
  ($$ select public.claim_batch(array['b_valid'], array['a'], null) $$,
    'a batch without request ids is refused'),
  ($$ select public.claim_batch(null, array['a'], array['1']) $$, 'a batch without pools is refused'),
  ($$ select public.claim_batch(null, null, null, array[true]) $$, 'a batch of verdicts alone is refused'),
  ($$ select public.claim_batch(array['b_valid', null], array['a', 'b'], array['1', '2']) $$,
    'one request without a pool spoils the batch'),
  ($$ select public.claim_batch(array['b_valid', 'b_valid'], array['a', null], array['1', '2']) $$,
    'one request without a user spoils the batch'),
  ($$ select public.claim_batch(array['b_valid', 'b_valid'], array['a', ''], array['1', '2']) $$,
    'one empty user id spoils the batch'),
  ($$ select public.claim_batch(array['b_valid', 'b_valid'], array['a', repeat('x', 201)], array['1', '2']) $$,
    'one user id of 201 characters spoils the batch'),
  ($$ select public.claim_batch(array['b_valid', 'b_valid'], array['a', 'b'], array['1', '']) $$,
    'one empty request id spoils the batch'),
  ($$ select public.claim_batch(array['b_valid', 'b_valid'], array['a', 'b'], array['1', repeat('x', 201)]) $$,
    'one request id of 201 characters spoils the batch'),
  ($$ select public.claim_batch(
        array_fill('b_valid'::text, array[10001]), array_fill('a'::text, array[10001]),
        array_fill(null::text, array[10001])) $$,
    'a batch of 10,001 requests is refused')
) b (call, name);

create temp table before as select pg_temp.state() as state;
select is_empty($$ select public.claim_batch('{}', '{}', '{}') $$, 'an empty batch has no answers');
select is_empty($$ select public.claim_batch('{}', '{}', '{}', '{}') $$, 'an empty batch with verdicts has no answers');
select is(pg_temp.state(), (select state from before), 'an empty batch changes nothing');
select results_eq(
  $$ select outcome from public.claim_batch(array['b_valid', 'b_valid'], array['a', 'a'], array[null, null]) $$,
  array['claimed', 'claimed'],
  'request ids may be left out one by one'
);

select * from finish();
rollback;

-- An invalid batch is refused as a whole; an empty one has no answers.
begin;
select plan(30);

insert into public.inventory_slots (pool_id) select 'b_valid' from generate_series(1, 5);

select tests.refuses(b.call, 'SL001', b.name)
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

create temp table before as select tests.state() as state;
select is_empty($$ select public.claim_batch('{}', '{}', '{}') $$, 'an empty batch has no answers');
select is_empty($$ select public.claim_batch('{}', '{}', '{}', '{}') $$, 'an empty batch with verdicts has no answers');
select is(tests.state(), (select state from before), 'an empty batch changes nothing');
select results_eq(
  $$ select outcome from public.claim_batch(array['b_valid', 'b_valid'], array['a', 'a'], array[null, null]) $$,
  array['claimed', 'claimed'],
  'request ids may be left out one by one'
);

select * from finish();
rollback;

-- A malformed payload raises an error, and nothing of its batch is written.
begin;
select plan(27);

select tests.refuses(
  format('select public.finalize_batch(jsonb_build_array(tests.ticket(1, ''ann'', 1), %L::jsonb))', b.payload),
  b.code, format('a batch with %s is refused', b.name)
)
from (values
  ('{"pool_id": "p", "user_id": "u"}', '23502', 'a payload without a slot'),
  ('{"resource_id": "00000000-0000-4000-8000-000000000009", "user_id": "u"}', '23502', 'a payload without a pool'),
  ('{"resource_id": "00000000-0000-4000-8000-000000000009", "pool_id": "p"}', '23502', 'a payload without a user'),
  ('{"resource_id": null, "pool_id": "p", "user_id": "u"}', '23502', 'a slot that is null'),
  ('{"resource_id": "seat 7", "pool_id": "p", "user_id": "u"}', '22P02', 'a slot that is not a uuid'),
  ('{"resource_id": "00000000-0000-4000-8000-000000000009", "pool_id": "p", "user_id": "u", "claim_id": "x"}',
    '22P02', 'a claim that is not a uuid'),
  ('{}', '23502', 'an empty payload'),
  ('null', '22023', 'a payload of null'),
  ('[]', '22023', 'an array for a payload'),
  ('"text"', '22023', 'a text for a payload')
) b (payload, code, name);

select tests.refuses(
  $$ select public.finalize_batch('{}') $$, '22023', 'a batch that is not an array is refused'
);
select tests.refuses(
  $$ select public.finalize_transaction('{"pool_id": "p", "user_id": "u"}') $$, '23502',
  'a single payload without a slot is refused'
);
select tests.refuses($$ select public.finalize_transaction(null) $$, '22023', 'no payload at all is refused');
select is(
  tests.outcomes(tests.ticket(1, 'ann', 1)), 'committed', 'the good payload of a refused batch can be sent again'
);

select * from finish();
rollback;

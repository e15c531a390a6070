-- A payload that is no ticket raises an error, and nothing of its batch is written.
begin;
select plan(27);

-- All tickets as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(string_agg(t::text, ',' order by t.resource_id)) from public.confirmed_tickets t;
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

-- A payload for slot and claim by number; claim 0 is a payload without a claim_id.
create function pg_temp.ticket(p_slot int, p_user text, p_claim int default 0)
returns jsonb
language sql
as $$
  select jsonb_build_object(
    'resource_id', '00000000-0000-4000-8000-' || lpad(p_slot::text, 12, '0'), 'pool_id', 'p', 'user_id', p_user
  ) || case when p_claim = 0 then '{}' else
    jsonb_build_object('claim_id', '10000000-0000-4000-8000-' || lpad(p_claim::text, 12, '0'))
  end;
$$;

create function pg_temp.outcomes(variadic p_tickets jsonb[])
returns text
language sql
as $$
  select string_agg(b.outcome, ' ' order by b.ordinal) from public.finalize_batch(to_jsonb(p_tickets)) b;
$$;

select pg_temp.refuses(
  format('select public.finalize_batch(jsonb_build_array(pg_temp.ticket(1, ''ann'', 1), %L::jsonb))', b.payload),
  b.code, format('a batch with %s is refused', b.name)
)
from (values
  ('{"pool_id": "p", "user_id": "u"}', '23502', 'a payload without a slot'),
  ('{"resource_id": "00000000-0000-4000-8000-000000000009", "user_id": "u"}', '23502', 'a payload without a pool'),
  ('{"resource_id": "00000000-0000-4000-8000-000000000009", "pool_id": "p"}', '23502', 'a payload without a user'),
  ('{"resource_id": null, "pool_id": "p", "user_id": "u"}', '23502', 'a slot that is null'),
  ('{"resource_id": "seat 7", "pool_id": "p", "user_id": "u"}', '22P02', 'a slot that is no uuid'),
  ('{"resource_id": "00000000-0000-4000-8000-000000000009", "pool_id": "p", "user_id": "u", "claim_id": "x"}',
    '22P02', 'a claim that is no uuid'),
  ('{}', '23502', 'an empty payload'),
  ('null', '22023', 'a payload of null'),
  ('[]', '22023', 'an array for a payload'),
  ('"text"', '22023', 'a text for a payload')
) b (payload, code, name);

select pg_temp.refuses(
  $$ select public.finalize_batch('{}') $$, '22023', 'a batch that is no array is refused'
);
select pg_temp.refuses(
  $$ select public.finalize_transaction('{"pool_id": "p", "user_id": "u"}') $$, '23502',
  'a single payload without a slot is refused'
);
select pg_temp.refuses($$ select public.finalize_transaction(null) $$, '22023', 'no payload at all is refused');
select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 1)), 'committed', 'the good payload of a refused batch can be sent again'
);

select * from finish();
rollback;

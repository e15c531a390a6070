-- finalize_batch says for each claim: committed, already or conflict.
begin;
select plan(15);

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

select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 1), pg_temp.ticket(2, 'bob', 2), pg_temp.ticket(3, 'cid')),
  'committed committed committed', 'new claims are committed'
);
select results_eq(
  $$ select right(resource_id::text, 1), user_id, left(claim_id::text, 1) from public.confirmed_tickets
     where pool_id = 'p' order by resource_id $$,
  $$ values ('1', 'ann', '1'), ('2', 'bob', '1'), ('3', 'cid', '0') $$,
  'each has its ticket; without a claim_id the slot is its identity'
);
create temp table before as select pg_temp.state() as state;
select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 1), pg_temp.ticket(2, 'bob', 2), pg_temp.ticket(3, 'cid')),
  'already already already', 'the same batch again is already done'
);
select is(pg_temp.outcomes(pg_temp.ticket(1, 'eve', 9)), 'conflict', 'a slot of another claim is a conflict');
select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 9)), 'conflict',
  'a slot of another claim is a conflict, also for the same user'
);
select is(pg_temp.outcomes(pg_temp.ticket(8, 'ann', 1)), 'conflict', 'a claim that has a ticket gets no other slot');
select is(pg_temp.outcomes(pg_temp.ticket(1, 'ann')), 'already', 'without a claim_id the same user is already done');
select is(pg_temp.outcomes(pg_temp.ticket(1, 'eve')), 'conflict', 'without a claim_id another user is a conflict');
select is(
  pg_temp.outcomes(pg_temp.ticket(3, 'eve')), 'conflict', 'a ticket without a claim_id is not taken over either'
);
select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 1) || '{"pool_id": "other"}'), 'conflict', 'a ticket of another pool is a conflict'
);
select is(
  pg_temp.outcomes(pg_temp.ticket(3, 'cid') || '{"pool_id": "other"}'), 'conflict', 'also without a claim_id'
);
select is(pg_temp.state(), (select state from before), 'neither already nor conflict changes anything');

select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'eve', 9), pg_temp.ticket(4, 'dan', 4), pg_temp.ticket(2, 'bob', 2)),
  'conflict committed already', 'a conflict holds up nobody else in the batch'
);
select results_eq(
  $$ select ordinal, right(resource_id::text, 1), right(claim_id::text, 1)
     from public.finalize_batch(jsonb_build_array(pg_temp.ticket(2, 'bob', 2), pg_temp.ticket(1, 'ann'))) order by 1 $$,
  $$ values (1, '2', '2'), (2, '1', null) $$,
  'an answer names the payload it is for'
);
select is_empty($$ select public.finalize_batch('[]') $$, 'an empty batch has no answers');

select * from finish();
rollback;

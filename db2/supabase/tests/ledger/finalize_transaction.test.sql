-- finalize_transaction is done once, and never silent about somebody else’s seat.
begin;
select plan(11);

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

select public.finalize_transaction(pg_temp.ticket(1, 'ann', 1)), public.finalize_transaction(pg_temp.ticket(2, 'bob'));
create temp table before as select pg_temp.state() as state;

select lives_ok(
  $$ select public.finalize_transaction(pg_temp.ticket(1, 'ann', 1)) $$, 'the same claim again is no error'
);
select lives_ok(
  $$ select public.finalize_transaction(pg_temp.ticket(1, 'ann')) $$, 'the same user without a claim_id is no error'
);
select is(pg_temp.state(), (select state from before), 'a second call changes nothing');
select pg_temp.refuses(
  $$ select public.finalize_transaction(pg_temp.ticket(1, 'eve', 9)) $$, 'SL020', 'the slot of another claim is refused'
);
select pg_temp.refuses(
  $$ select public.finalize_transaction(pg_temp.ticket(1, 'eve')) $$, 'SL020',
  'the slot of another user is refused without a claim_id as well'
);
select pg_temp.refuses(
  $$ select public.finalize_transaction(pg_temp.ticket(2, 'eve')) $$, 'SL020',
  'a ticket that came without a claim_id is not taken over'
);
select pg_temp.refuses(
  $$ select public.finalize_transaction(pg_temp.ticket(9, 'ann', 1)) $$, 'SL020',
  'a claim that has a ticket gets no second slot'
);

select * from finish();
rollback;

-- The same slot or claim twice in one batch makes one ticket, and only its owner is told so.
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

select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 1), pg_temp.ticket(1, 'ann', 1)), 'committed already',
  'the same claim twice is committed once'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    pg_temp.outcomes(pg_temp.ticket(2, 'ann', 2), pg_temp.ticket(2, 'bob', 3)), ' ')) o),
  'committed conflict', 'two claims for one slot: one is committed, the other a conflict'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    pg_temp.outcomes(pg_temp.ticket(4, 'ann', 4), pg_temp.ticket(5, 'ann', 4)), ' ')) o),
  'committed conflict', 'one claim for two slots: one is committed, the other a conflict'
);
select is(
  pg_temp.outcomes(pg_temp.ticket(6, 'ann'), pg_temp.ticket(6, 'ann')), 'committed already',
  'the same user twice without a claim_id is committed once'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    pg_temp.outcomes(pg_temp.ticket(7, 'ann'), pg_temp.ticket(7, 'bob')), ' ')) o),
  'committed conflict', 'two users for one slot without claim ids: one is committed, the other a conflict'
);
select is(
  (select count(*)::int from public.confirmed_tickets where pool_id = 'p'), 5, 'five slots have one ticket each'
);
select is(
  pg_temp.outcomes(pg_temp.ticket(8, 'ann', 8), pg_temp.ticket(8, 'ann'), pg_temp.ticket(8, 'ann', 8)),
  'committed already already', 'a claim, and its slot without a claim_id, are one ticket: only one is told that it was committed'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    pg_temp.outcomes(pg_temp.ticket(9, 'ann'), pg_temp.ticket(9, 'ann', 9)), ' ')) o) in ('already committed', 'committed conflict'),
  true, 'in whatever order'
);
select is(
  (select string_agg(o, ' ' order by o) from unnest(string_to_array(
    pg_temp.outcomes(pg_temp.ticket(10, 'ann', 10), pg_temp.ticket(10, 'ann', 10) || '{"pool_id": "other"}'), ' ')) o),
  'committed conflict', 'one claim in two pools: one is committed, the other a conflict'
);
create temp table before as select pg_temp.state() as state;
select is(
  pg_temp.outcomes(pg_temp.ticket(1, 'ann', 1), pg_temp.ticket(1, 'ann', 1)), 'already already',
  'the same duplicates again are already done'
);
select is(pg_temp.state(), (select state from before), 'and change nothing');

select * from finish();
rollback;

-- A pool that asks for a challenge: a solution is good for one claim, on all servers.
begin;
select plan(10);

insert into public.engine_config (pool_id, challenge_difficulty) values ('work', 5000);
insert into public.inventory_slots (pool_id) select 'work' from generate_series(1, 20);

-- The outcomes of claims of these users with these solved challenges, in one batch.
create function pg_temp.outcomes(p_users text[], p_challenges text[], p_difficulty int default 5000) returns setof text
language sql as $$
  select b.outcome from public.claim_batch(
    array_fill('work'::text, array[cardinality(p_users)]), p_users, p_users, array_fill(false, array[cardinality(p_users)]), true,
    (
      select jsonb_agg(jsonb_build_object('address', '192.0.2.1', 'challenge', c, 'difficulty', p_difficulty) order by n)
      from unnest(p_challenges) with ordinality x (c, n)
    )
  ) b order by b.ordinal;
$$;

select results_eq(
  $$ select b.outcome from public.claim_batch(
       array['work'], array['a'], array['1'], array[false], true, '[{"address": "192.0.2.1"}]') b $$,
  array['challenge_required'], 'a claim without a solution is refused'
);
select results_eq(
  $$ select pg_temp.outcomes(array['a'], array['c0'], 4999) $$, array['challenge_required'],
  'so is one with a challenge that was easier than the pool asks'
);
select results_eq(
  $$ select pg_temp.outcomes(array['a', 'b', 'c'], array['c1', 'c1', 'c2']) $$,
  array['claimed', 'challenge_used', 'claimed'], 'a solution that comes twice in one batch is good once'
);
select results_eq(
  $$ select pg_temp.outcomes(array['d', 'e'], array['c2', 'c3']) $$, array['challenge_used', 'claimed'],
  'a solution that was used is refused, and its neighbour is not held up'
);
select results_eq(
  $$ select pg_temp.outcomes(array['a'], array['c1']) $$, array['same'], 'the same request with it is answered again'
);
select is(
  (select r.state from public.claims c, public.release_claim_as_operator(c.claim_id, 'olga') r where c.challenge = 'c1'), 'released',
  'a claim is released'
);
select results_eq(
  $$ select pg_temp.outcomes(array['f'], array['c1']) $$, array['challenge_used'], 'its solution is used for good'
);
select results_eq(
  $$ select b.outcome from public.claim_batch(array['work'], array['backend'], array['1']) b $$, array['claimed'],
  'a server of ours needs none'
);
select tests.refuses(
  $$ select tests.as_caller('anon', null, 'select public.claim_resource_and_queue(''work'', ''x'')') $$, 'SL017',
  'a stranger cannot pass by the API of the database'
);

select * from finish();
rollback;

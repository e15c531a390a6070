-- max_per_address: the buyers of one network address hold so many slots together, whatever they call themselves.
begin;
select plan(11);

insert into public.engine_config (pool_id, max_per_address) values ('addr', 2);
insert into public.inventory_slots (pool_id) select p from (values ('addr'), ('free')) v (p), generate_series(1, 20);

-- The outcomes of claims of these users from these addresses, in one batch.
create function pg_temp.outcomes(p_pool text, p_users text[], p_addresses text[]) returns setof text
language sql as $$
  select b.outcome from public.claim_batch(
    array_fill(p_pool, array[cardinality(p_users)]), p_users, p_users, array_fill(false, array[cardinality(p_users)]), true,
    (select jsonb_agg(jsonb_build_object('address', a) order by n) from unnest(p_addresses) with ordinality x (a, n))
  ) b order by b.ordinal;
$$;

select results_eq(
  $$ select pg_temp.outcomes('addr', array['a', 'b', 'c', 'd'], array['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2']) $$,
  array['claimed', 'claimed', 'address_limit', 'claimed'], 'three users of one address get two slots, and another address its own'
);
select results_eq(
  $$ select pg_temp.outcomes('addr', array['e'], array['192.0.2.1']) $$, array['address_limit'], 'the next batch counts on'
);
select results_eq(
  $$ select pg_temp.outcomes('addr', array['a'], array['192.0.2.1']) $$, array['same'], 'a repeated request is answered'
);
select is(
  (select r.state from public.claims c, public.release_claim_as_operator(c.claim_id, 'olga') r where c.user_id = 'a'), 'released',
  'one of them is released'
);
select results_eq(
  $$ select pg_temp.outcomes('addr', array['e', 'f'], array['192.0.2.1', '192.0.2.1']) $$, array['claimed', 'address_limit'],
  'its place is free again'
);
select results_eq(
  $$ select b.outcome from public.claim_batch(array['addr'], array['backend'], array['1']) b $$, array['claimed'],
  'a server of ours has no address, and no limit'
);
select tests.refuses(
  $$ select tests.as_caller('anon', null, 'select public.claim_resource_and_queue(''addr'', ''x'')') $$, 'SL017',
  'a stranger cannot pass the limit by the API of the database'
);
select results_eq(
  $$ select pg_temp.outcomes('free', array['a'], array['192.0.2.1']) $$, array['claimed'], 'a pool without the rule takes the claim'
);
select bag_eq(
  $$ select c.pool_id, count(c.address)::int from public.claims c where c.pool_id in ('addr', 'free') group by 1 $$,
  $$ values ('addr', 4), ('free', 0) $$, 'and keeps no address'
);
select throws_ok(
  $$ update public.engine_config set max_per_address = 0 where pool_id = 'addr' $$, '23514', null, 'a limit of 0 is refused'
);

select * from finish();
rollback;

-- More requests than slots: every slot is sold, the rest is told so.
begin;
select plan(6);

insert into public.inventory_slots (pool_id)
select pool from (values ('few'), ('many')) p (pool), generate_series(1, 3) n where pool = 'few' or n < 3;

create temp table answer as
select * from public.claim_batch(
  array['few', 'many', 'few', 'few', 'many', 'few', 'many', 'few'],
  array['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'],
  array['1', '2', '3', '4', '5', '6', '7', null]
);
select results_eq(
  $$ select ordinal, outcome from answer order by ordinal $$,
  $$ values (1, 'claimed'), (2, 'claimed'), (3, 'claimed'), (4, 'claimed'), (5, 'claimed'),
    (6, 'sold_out'), (7, 'sold_out'), (8, 'sold_out') $$,
  'who comes first is served, in each pool'
);
select is((select count(distinct resource_id)::int from answer), 5, 'no slot is sold twice');
select is_empty(
  $$ select from public.inventory_slots where pool_id in ('few', 'many') and status = 'AVAILABLE' $$,
  'no slot is left over'
);

create temp table before as select tests.state() as state;
select results_eq(
  $$ select outcome from public.claim_batch(array['few', 'few'], array['x', 'a'], array['9', '1']) order by ordinal $$,
  array['sold_out', 'same'],
  'a sold-out pool still answers a retry'
);
select is(tests.state(), (select state from before), 'asking a sold-out pool changes nothing');

select intake.give_back_claim(claim_id) from answer where ordinal = 3;
select results_eq(
  $$ select outcome, resource_id from public.claim_batch(array['few', 'few'], array['x', 'y'], array['9', '10'])
     order by ordinal $$,
  $$ select 'claimed', resource_id from answer where ordinal = 3 union all select 'sold_out', null $$,
  'a released slot of a sold-out pool is sold by the next batch'
);

select * from finish();
rollback;

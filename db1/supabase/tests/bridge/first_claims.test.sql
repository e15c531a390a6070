-- Which claims are the first of their slots: what hooks get their keys by.
begin;
select plan(7);

create function pg_temp.claim_of(p_user text) returns uuid language sql
as $$ select c.claim_id from public.claims c where c.pool_id = 'firsts' and c.user_id = p_user $$;
create function pg_temp.firsts(variadic p_users text[]) returns text language sql as $$
  select string_agg(u || ' ' || f.is_first, ', ' order by n)
  from unnest(p_users) with ordinality as t (u, n)
  join public.bridge_first_claims(array(select pg_temp.claim_of(x) from unnest(p_users) x)) f
    on f.claim_id = pg_temp.claim_of(u)
$$;

insert into public.inventory_slots (pool_id) select 'firsts' from generate_series(1, 2);
select public.claim_resource_and_queue('firsts', 'ann', 'r1');
select public.claim_resource_and_queue('firsts', 'bob', 'r2');
select is(pg_temp.firsts('ann', 'bob'), 'ann true, bob true', 'claims of slots that were never sold before are first');
select public.release_own_claim(pg_temp.claim_of('ann'), 'ann');
select public.claim_resource_and_queue('firsts', 'cyd', 'r3');
select is(pg_temp.firsts('cyd'), 'cyd false', 'the claim of a slot that is sold again is not');
select is(pg_temp.firsts('bob'), 'bob true', 'the neighbour''s stays first');
select is(pg_temp.firsts('ann'), null, 'a claim that has ended has no answer');
select public.release_own_claim(pg_temp.claim_of('cyd'), 'cyd');
select public.claim_resource_and_queue('firsts', 'dan', 'r4');
select is(pg_temp.firsts('dan', 'bob'), 'dan false, bob true', 'and so it goes on');
update public.claims set state = 'committed' where claim_id = pg_temp.claim_of('dan');
select is(pg_temp.firsts('dan'), 'dan false', 'a commit changes nothing about it');
select is_empty(
  $$ select * from public.bridge_first_claims(array[gen_random_uuid(), null]) $$, 'an unknown claim has no answer'
);

select * from finish();
rollback;

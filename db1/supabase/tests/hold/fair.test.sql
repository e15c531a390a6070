-- However many claims of one pool are due, those of another end in the next part, and no part is left half empty.
begin;
select plan(9);

insert into public.engine_config (pool_id, hold_sec) values ('crowd', 60), ('full', 60), ('lost', 60), ('single', 60);
insert into public.inventory_slots (pool_id)
select pool from (values ('crowd', 10), ('full', 10), ('lost', 1), ('single', 2)) p (pool, slots), generate_series(1, slots);
select count(*) from public.claim_batch(
  array_fill('crowd'::text, array[10]) || array_fill('full'::text, array[10]), array_fill('ann'::text, array[20]),
  array_fill(null::text, array[20])
);
select public.claim_resource_and_queue('lost', 'ann'), public.claim_resource_and_queue('single', 'ann');
update public.claims set hold_until = now() - interval '1 hour' where pool_id <> 'single';
update public.claims set hold_until = now() - interval '1 second' where pool_id = 'single';
delete from intake.pool_marks where pool_id = 'lost';
create function pg_temp.pools_due(p_what text) returns text language sql as $$
  select string_agg(p, ' ' order by p) from unnest(intake.due_pools(p_what)) p;
$$;
create function pg_temp.left_of(p_pool_id text) returns int language sql as $$
  select count(*)::int from public.claims where pool_id = p_pool_id and freed_at is null and end_as is null;
$$;

select is(pg_temp.pools_due('hold'), 'crowd full single', 'a pool that lost its cache is not due');
select is(public.expire_holds(8), 8, 'a part is full while one pool has enough');
select is(pg_temp.left_of('single'), 0, 'the hold that ran out last does not wait for the longer overdue ones of other pools');
select ok(
  least(10 - pg_temp.left_of('crowd'), 10 - pg_temp.left_of('full')) >= 2, 'each of the large pools has at least its share'
);
select is(public.expire_holds(100), 13, 'fewer than a part: no more is due');

select public.claim_resource_and_queue('single', 'bob');
select count(*) from public.claim_batch(
  array_fill('crowd'::text, array[5]), array_fill('bob'::text, array[5]), array_fill(null::text, array[5])
);
update public.claims
set end_as = 'released', end_due = now() - case pool_id when 'crowd' then interval '1 hour' else interval '1 second' end
where freed_at is null and pool_id in ('crowd', 'single');
select is(pg_temp.pools_due('end'), 'crowd single', 'the same with claims that are to end');
select results_eq(
  $$ select pool_id, count(*)::int from public.take_ends(3, 10) group by pool_id order by 1 $$,
  $$ values ('crowd', 2), ('single', 1) $$, 'each pool has its share of these too, and the part is full'
);
select is((select count(*)::int from public.take_ends(100, 10)), 3, 'the rest follows');
select is(pg_temp.pools_due('end'), null, 'what is taken is not due');

select * from finish();
rollback;

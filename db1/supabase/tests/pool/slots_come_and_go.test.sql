-- A large pool's slots are counted seldom. What is left follows the slots that are withdrawn and added meanwhile.
begin;
select plan(9);

select tests.empty_queues();
create function pg_temp.left_of() returns text language sql
as $$ select concat_ws(' of ', available, capacity) from public.pool_status('large') $$;
-- Capacity, available, reserved, consumed.
create function pg_temp.level() returns text language sql
as $$
  select concat_ws(' ', l.capacity, l.available, l.reserved, l.consumed) from intake.pool_levels(0, null, 'large') l
$$;

insert into public.inventory_slots (pool_id) select 'large' from generate_series(1, 6000);
select public.claim_resource_and_queue('large', 'u' || i) from generate_series(1, 100) i;
select is(pg_temp.left_of(), '5900 of 6000', 'a large pool is counted');
create temp table counted as select due_at from intake.free_counts where pool_id = 'large';

-- The last ones: the mark, which claims move, stands before the first.
delete from public.inventory_slots s where s.id in (
  select w.id from public.inventory_slots w where w.pool_id = 'large' order by w.sale_order desc limit 3000
);
select is(pg_temp.left_of(), '2900 of 3000', 'slots that are withdrawn after the count are not left');
select is(pg_temp.level(), '3000 2900 100 0', 'and an operator sees none of them reserved');

insert into public.inventory_slots (pool_id) select 'large' from generate_series(1, 5000);
select is(pg_temp.left_of(), '7900 of 8000', 'slots that are added after the count are left');
select is(pg_temp.level(), '8000 7900 100 0', 'and an operator sees them too');
select results_eq(
  $$ select due_at from intake.free_counts where pool_id = 'large' $$, $$ select due_at from counted $$,
  'all this time the pool was counted once'
);

-- An estimate may be wrong, but what is said is possible.
update intake.free_counts set free = 9000 where pool_id = 'large';
select is(pg_temp.left_of(), '8000 of 8000', 'never are more left than there are');
select is(pg_temp.level(), '8000 8000 0 0', 'and never are fewer than none reserved');

update intake.free_counts set due_at = clock_timestamp() - interval '1 second' where pool_id = 'large';
select is(pg_temp.left_of(), '7900 of 8000', 'when a count is due, it is exact again');

select * from finish();
rollback;

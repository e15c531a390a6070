-- However many claims of one pool are due, those of another end in the next part.
begin;
select plan(8);

insert into public.engine_config (pool_id, hold_sec) values ('crowd', 60), ('lost', 60), ('single', 60);
insert into public.inventory_slots (pool_id)
select pool from (values ('crowd', 10), ('lost', 1), ('single', 1)) p (pool, slots), generate_series(1, slots);
select count(*) from public.claim_batch(
  array_fill('crowd'::text, array[10]), array_fill('ann'::text, array[10]), array_fill(null::text, array[10])
);
select public.claim_resource_and_queue('lost', 'ann'), public.claim_resource_and_queue('single', 'ann');
update public.claims set hold_until = now() - interval '1 hour' where pool_id in ('crowd', 'lost');
update public.claims set hold_until = now() - interval '1 second' where pool_id = 'single';
delete from intake.pool_marks where pool_id = 'lost';

select is(intake.due_pools('hold'), array['crowd', 'single'], 'a pool that lost its cache is not due');
select is(public.expire_holds(4), 3, 'each pool has its share: two of the crowd, and the only one of the other');
select is(
  (select state::text from public.claims where pool_id = 'single'), 'expired',
  'the hold that ran out last does not wait for the longer overdue ones of another pool'
);
select is(public.expire_holds(4), 4, 'a pool that is alone has all of it');

insert into public.inventory_slots (pool_id) select 'single';
select public.claim_resource_and_queue('single', 'bob');
update public.claims
set end_as = 'released', end_due = now() - case pool_id when 'crowd' then interval '1 hour' else interval '1 second' end
where freed_at is null and pool_id in ('crowd', 'single');
select is(intake.due_pools('end'), array['crowd', 'single'], 'the same with claims that are to end');
select is(
  (select count(*)::int from public.take_ends(2, 10) where pool_id = 'single'), 1, 'each pool has its share of these too'
);
select is((select count(*)::int from public.take_ends(100, 10)), 3, 'the rest follows');
select is(intake.due_pools('end'), '{}', 'what is taken is not due');

select * from finish();
rollback;

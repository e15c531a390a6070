-- Slots that an operator moves up the line are found.
begin;
select plan(2);

insert into public.inventory_slots (pool_id) select 'moved' from generate_series(1, 3000);
select count(*) from generate_series(1, 2) g, lateral (
  select count(*) from public.claim_batch(
    array_fill('moved'::text, array[1000 + 0 * g]), array_fill('ann'::text, array[1000]), array_fill(null::text, array[1000])
  )
) b;
update public.inventory_slots set sale_order = sale_order - 2999 where pool_id = 'moved' and status = 'AVAILABLE';

select isnt(public.claim_resource_and_queue('moved', 'bob'), null, 'a slot below the old mark is sold');
select is((select status from public.pool_status('moved')), 'open', 'the pool says so too');

select * from finish();
rollback;

-- A slot that was deleted while a claim held it is withdrawn when the claim ends.
begin;
select plan(3);

insert into public.inventory_slots (pool_id) select 'withdrawn' from generate_series(1, 2);
select public.claim_resource_and_queue('withdrawn', 'ann', 'r1');
delete from public.inventory_slots s
where s.id in (select c.slot_id from public.claims c where c.pool_id = 'withdrawn');
select is((select capacity from public.pool_status('withdrawn')), 2::bigint, 'while it is claimed it counts');

select intake.give_back_claim(claim_id) from public.claims where pool_id = 'withdrawn';
select is((select capacity from public.pool_status('withdrawn')), 1::bigint, 'once released it is gone');

truncate public.inventory_slots;
select is(
  (select available from public.pool_status('withdrawn')), 1::bigint, 'a rebuild does not bring it back'
);

select * from finish();
rollback;

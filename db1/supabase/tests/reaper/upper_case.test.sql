-- A message put on the queue by hand speaks for its slot however it writes the id.
begin;
select plan(2);

insert into public.inventory_slots (id, pool_id, status, locked_by, locked_at)
values ('aaaaaaaa-0000-4000-8000-000000000001', 'upper', 'RESERVED', 'ann', now() - interval '1 hour');
select public.intake_queue_send(
  '{"pool_id": "upper", "resource_id": "AAAAAAAA-0000-4000-8000-000000000001", "user_id": "ann"}'
);

select is(public.reap_orphaned_slots(), 0, 'the reaper leaves it alone');
truncate public.inventory_slots;
select is((select available from public.pool_status('upper')), 0::bigint, 'a rebuild keeps it reserved');

select * from finish();
rollback;

-- The first function that looks at a lost cache rebuilds it, and never believes that the pool is empty.
begin;
select plan(19);

insert into public.engine_config (pool_id) values ('lost');
insert into public.inventory_slots (pool_id) select 'lost' from generate_series(1, 4);
select public.claim_resource_and_queue('lost', 'ann', 'r1');
create temp table truth as select * from tests.slots('lost');

truncate public.inventory_slots;
select is_empty($$ select tests.slots('lost') $$, 'the cache is gone');
select is((select available::int from public.pool_status('lost')), 3, 'pool_status sees the slots of a lost cache');
select results_eq($$ select * from tests.slots('lost') $$, $$ select * from truth $$, 'pool_status has rebuilt it');

truncate public.inventory_slots;
select public.snapshot_engine_metrics();
select is_empty(
  $$ select from public.engine_metrics where pool_id = 'lost' and captured_at = now() $$,
  'a snapshot has no number for a lost cache'
);
select is(public.reap_orphaned_slots('-1 hour'), 0, 'the reaper finds no orphan in a lost cache');
select is(public.expire_holds(), 0, 'no hold expires because the cache is lost');
select is_empty($$ select tests.slots('lost') $$, 'the jobs leave it to the rebuild, which is one pool at a time');
select is(intake.rebuild_lost_pool(), 'lost', 'a rebuild says which pool it was');
select results_eq($$ select * from tests.slots('lost') $$, $$ select * from truth $$, 'and has rebuilt it');
select public.snapshot_engine_metrics();
select results_eq(
  $$ select available_slots, reserved_slots from public.engine_metrics
     where pool_id = 'lost' and captured_at = now() $$,
  $$ values (3, 1) $$,
  'a snapshot counts what is really there'
);
select is(intake.rebuild_lost_pool(), null, 'a second call finds no pool that is lost');

truncate public.inventory_slots;
select is(
  public.claim_resource_and_queue('lost', 'ann', 'r1'),
  (select slot_id from public.claims where pool_id = 'lost' and request_id = 'r1'),
  'a retry after the loss returns the same slot'
);
truncate public.inventory_slots;
select isnt(public.claim_resource_and_queue('lost', 'bob'), null, 'a claim on a lost cache gets a slot');
truncate public.inventory_slots;
select results_eq(
  $$ select outcome from public.claim_batch(array['lost', 'lost'], array['ann', 'c'], array['r1', 'c'], p_rebuild => false) $$,
  array['busy', 'busy'],
  'a batch that may not rebuild says busy, to a retry too'
);
select is_empty($$ select tests.slots('lost') $$, 'and has rebuilt nothing');
select results_eq(
  $$ select outcome from public.claim_batch(array['lost', 'lost', 'lost'], array['c', 'd', 'e'], array['c', 'd', 'e'])
     order by ordinal $$,
  array['claimed', 'claimed', 'sold_out'],
  'a batch on a lost cache sells what is left and no more'
);
truncate public.inventory_slots;
select is(public.claim_resource_and_queue('lost', 'late'), null, 'a sold-out pool is sold out after the loss as well');
select is((select count(distinct slot_id)::int from public.claims where pool_id = 'lost'), 4, 'no slot was sold twice');
select is(intake.rebuild_inventory('lost'), false, 'a second rebuild finds nothing to do');

select * from finish();
rollback;

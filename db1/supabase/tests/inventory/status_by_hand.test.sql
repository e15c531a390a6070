-- A hand in psql may set the status of a slot; it can neither sell one twice nor lose one.
begin;
select plan(10);

insert into public.inventory_slots (pool_id) select 'hand' from generate_series(1, 2);
create temp table ann as select public.claim_resource_and_queue('hand', 'ann') as id;
create temp table bob as select public.claim_resource_and_queue('hand', 'bob') as id;
update public.claims set state = 'committed' where pool_id = 'hand' and user_id = 'bob';
select is(public.claim_resource_and_queue('hand', 'cid'), null, 'the pool is sold out');

update public.inventory_slots set status = 'AVAILABLE', locked_by = null, locked_at = null where pool_id = 'hand';
select is(
  public.claim_resource_and_queue('hand', 'cid', 'c1'), null,
  'claimed slots set to AVAILABLE by hand are not sold twice'
);
select results_eq(
  $$ select s.id, s.status::text, s.locked_by from public.inventory_slots s
     where s.pool_id = 'hand' order by s.locked_by $$,
  $$ select id, 'RESERVED', 'ann' from ann union all select id, 'CONSUMED', 'bob' from bob $$,
  'the attempt has put the cache right'
);
update public.inventory_slots set status = 'AVAILABLE' where pool_id = 'hand';
select results_eq(
  $$ select outcome from public.claim_batch(array['hand', 'hand'], array['cid', 'dan'], array['c2', 'd1']) $$,
  array['sold_out', 'sold_out'],
  'a batch does not sell them twice either'
);
select is((select count(*)::int from public.claims where pool_id = 'hand'), 2, 'there are two claims');
select is(
  (select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = 'hand'), 2, 'and two messages'
);

insert into public.inventory_slots (pool_id, status) values ('hand', 'RESERVED');
select is(public.claim_resource_and_queue('hand', 'eve'), null, 'a slot kept back by hand is not sold');
update public.inventory_slots set status = 'AVAILABLE' where pool_id = 'hand' and locked_by is null;
select isnt(
  public.claim_resource_and_queue('hand', 'eve'), null,
  'a free slot set to AVAILABLE by hand is found although the pool was sold out'
);
select is(public.claim_resource_and_queue('hand', 'fay'), null, 'the pool is sold out again');
select is(
  (select count(distinct slot_id)::int from public.claims where pool_id = 'hand' and freed_at is null), 3,
  'three slots have three owners'
);

select * from finish();
rollback;

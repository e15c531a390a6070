-- A rebuild gives every slot the status that claims and messages speak for.
begin;
select plan(5);

insert into public.inventory_slots (pool_id) select 'truth' from generate_series(1, 9);
select count(*) from public.claim_batch(
  array_fill('truth'::text, array[5]), array['queued', 'validated', 'committed', 'dead', 'released'],
  array['1', '2', '3', '4', '5']
);
create temp table slot as
select c.user_id::text as is_for, c.slot_id as id from public.claims c where c.pool_id = 'truth'
union all
select (array['by_hand', 'dead_by_hand', 'own_id', 'free'])[row_number() over ()], s.id
from public.inventory_slots s where s.pool_id = 'truth' and s.status = 'AVAILABLE';

update public.claims set state = user_id::text::public.claim_state
where pool_id = 'truth' and user_id in ('validated', 'committed');
select public.intake_route_to_dlq(c.msg_id, jsonb_build_object('claim_id', c.claim_id), 11)
from public.claims c where c.pool_id = 'truth' and c.user_id = 'dead';
select intake.give_back_claim(c.claim_id) from public.claims c where c.pool_id = 'truth' and c.user_id = 'released';
select public.intake_queue_send(jsonb_build_object('pool_id', 'truth', 'resource_id', s.id, 'user_id', s.is_for))
from slot s where s.is_for = 'by_hand';
-- By hand with the id of no claim, and a message left over from an ended claim: only the first holds its slot.
select public.intake_queue_send(jsonb_build_object(
  'pool_id', 'truth', 'resource_id', s.id, 'user_id', s.is_for,
  'claim_id', coalesce(c.claim_id, '00000000-0000-4000-8000-000000000001')
))
from slot s left join public.claims c on c.slot_id = s.id where s.is_for in ('own_id', 'released');
select public.intake_route_to_dlq(
  public.intake_queue_send('{}'),
  jsonb_build_object('pool_id', 'truth', 'resource_id', s.id, 'user_id', s.is_for), 11
)
from slot s where s.is_for = 'dead_by_hand';

truncate public.inventory_slots;
select is((select available::int from public.pool_status('truth')), 2, 'only the free and the released slot are left');
select results_eq(
  $$ select l.is_for, s.status::text, s.locked_by from public.inventory_slots s
     join slot l on l.id = s.id order by l.is_for $$,
  $$ values
    ('by_hand', 'RESERVED', 'by_hand'),
    ('committed', 'CONSUMED', 'committed'),
    ('dead', 'RESERVED', 'dead'),
    ('dead_by_hand', 'RESERVED', 'dead_by_hand'),
    ('free', 'AVAILABLE', null),
    ('own_id', 'RESERVED', 'own_id'),
    ('queued', 'RESERVED', 'queued'),
    ('released', 'AVAILABLE', null),
    ('validated', 'RESERVED', 'validated') $$,
  'each slot has the status that its claim, message or dead letter speaks for'
);
select is_empty(
  $$ select from public.inventory_slots where pool_id = 'truth' and (status = 'AVAILABLE') <> (locked_at is null) $$,
  'exactly the slots with a holder say since when'
);
select is(public.reap_orphaned_slots('-1 hour'), 0, 'the reaper finds no orphan among them');
select bag_eq(
  $$ select resource_id from public.claim_batch(
       array_fill('truth'::text, array[3]), array['x', 'y', 'z'], array['x', 'y', 'z']) where outcome = 'claimed' $$,
  $$ select id from slot where is_for in ('free', 'released') $$,
  'exactly the free slots are sold'
);

select * from finish();
rollback;

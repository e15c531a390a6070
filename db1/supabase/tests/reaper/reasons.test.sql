-- The reaper frees orphans only: each reason to leave a slot alone, one by one.
begin;
select plan(8);

insert into public.inventory_slots (id, pool_id, status, locked_by, locked_at)
select ('00000000-0000-4000-8000-0000000000' || to_char(n, 'FM00'))::uuid, 'reap', 'RESERVED', who, now() - age
from (values
  (1, 'claimed', interval '1 hour'), (2, 'dead_claim', '1 hour'), (3, 'message', '1 hour'),
  (4, 'dead_letter', '1 hour'), (5, 'fresh', '10 minutes'), (6, 'ticket', '1 hour'), (7, 'own_id', '1 hour')
) v (n, who, age);
insert into public.inventory_slots (pool_id, status, locked_by) values ('reap', 'RESERVED', 'kept back by hand');
insert into public.inventory_slots (pool_id, status, locked_by, locked_at)
values ('reap', 'CONSUMED', 'consumed', now() - interval '1 hour');
insert into public.claims (claim_id, pool_id, slot_id, user_id, state)
select gen_random_uuid(), 'reap', s.id, s.locked_by, v.state::public.claim_state
from (values ('claimed', 'queued'), ('dead_claim', 'dead_letter'), ('ticket', 'committed')) v (who, state)
join public.inventory_slots s on s.pool_id = 'reap' and s.locked_by = v.who;
select public.intake_queue_send(jsonb_build_object('resource_id', s.id))
from public.inventory_slots s where s.pool_id = 'reap' and s.locked_by = 'message';
select pgmq.send('intake_dlq', jsonb_build_object('resource_id', s.id))
from public.inventory_slots s where s.pool_id = 'reap' and s.locked_by = 'dead_letter';
-- Put there by hand with an id of its own, which no claim has: the bridge carries it.
select public.intake_queue_send(jsonb_build_object('resource_id', s.id, 'claim_id', gen_random_uuid()))
from public.inventory_slots s where s.pool_id = 'reap' and s.locked_by = 'own_id';
-- A message without a resource_id must not make the reaper blind.
select public.intake_queue_send('{"note": "no resource"}'), public.intake_queue_send('[]');

create temp table before as select tests.state() as state;
select is(
  public.reap_orphaned_slots(), 0,
  'a claim, a dead claim, a ticket, a message, a dead letter, a fresh lock and no lock time all speak for a slot'
);
select is(tests.state(), (select state from before), 'and nothing changes');

insert into public.inventory_slots (pool_id, status, locked_by, locked_at)
values ('reap', 'RESERVED', 'orphan', now() - interval '1 hour');
insert into public.claims (claim_id, pool_id, slot_id, user_id, state, freed_at)
select gen_random_uuid(), 'reap', s.id, 'gone', 'released', now()
from public.inventory_slots s where s.pool_id = 'reap' and s.locked_by = 'orphan';
-- A message of that claim holds nothing: the bridge drops it.
select public.intake_queue_send(jsonb_build_object('resource_id', c.slot_id, 'claim_id', c.claim_id))
from public.claims c where c.pool_id = 'reap' and c.user_id = 'gone';
create temp table orphan as select id from public.inventory_slots where pool_id = 'reap' and locked_by = 'orphan';
select is(public.claim_resource_and_queue('reap', 'late'), null, 'the pool is sold out');
select is(public.reap_orphaned_slots('2 hours'), 0, 'a longer threshold leaves the orphan alone');
select is(public.reap_orphaned_slots(), 1, 'an orphan is reaped although an ended claim once held it');
select is(
  public.claim_resource_and_queue('reap', 'late'), (select id from orphan),
  'the reaped slot is found in a sold-out pool'
);
select is(public.reap_orphaned_slots('-1 hour'), 1, 'a threshold in the future reaps the fresh lock, and only that');
select is(
  (select count(*)::int from public.inventory_slots where pool_id = 'reap' and status = 'AVAILABLE'), 1,
  'one slot is free'
);

select * from finish();
rollback;

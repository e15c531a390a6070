-- Once the bridge has taken a claim, its release waits for the ledger; a ticket and a dead letter are not released.
begin;
select plan(15);

insert into public.inventory_slots (pool_id) select 'late' from generate_series(1, 5);
select public.claim_resource_and_queue('late', 'taken');
select count(*) from public.intake_queue_read(0, 10000);
select public.claim_resource_and_queue('late', 'sold');
update public.claims set state = 'committed' where pool_id = 'late' and user_id = 'sold';
select public.claim_resource_and_queue('late', 'dead');
create function pg_temp.claim_of(p_user text) returns uuid language sql
as $$ select claim_id from public.claims where pool_id = 'late' and user_id = p_user $$;
select public.intake_route_to_dlq(c.msg_id, jsonb_build_object('claim_id', c.claim_id), 11)
from public.claims c where c.claim_id = pg_temp.claim_of('dead');
select public.claim_resource_and_queue('late', 'replayed');
select public.replay_dead_letters(array[public.intake_route_to_dlq(
  c.msg_id, jsonb_build_object('claim_id', c.claim_id), 11
)], 'ada')
from public.claims c where c.claim_id = pg_temp.claim_of('replayed');
select public.claim_resource_and_queue('late', 'stranded');
delete from pgmq.q_intake_queue q using public.claims c
where c.claim_id = pg_temp.claim_of('stranded') and q.msg_id = c.msg_id;
select public.reconcile_fix(c.slot_id, 'claim_without_message', 'ada')
from public.claims c where c.claim_id = pg_temp.claim_of('stranded');

create function pg_temp.release(p_user text) returns text language sql as $$
  select concat_ws(' ', r.state, case when r.ending then 'ending' end, r.end_reason)
  from public.release_own_claim(pg_temp.claim_of(p_user), p_user, 'why') r
$$;
select is(
  pg_temp.release(u), 'queued ending why', format('%s: a claim that some worker may have is going to end', u)
) from unnest(array['taken', 'replayed', 'stranded']) u;
create temp table released as select tests.state() as state;
select is(pg_temp.release(u), 'queued ending why', format('%s: also the second time', u))
from unnest(array['taken', 'replayed', 'stranded']) u;
select is(tests.state(), (select state from released), 'which changes nothing');
select is(
  (select count(*)::int from public.inventory_slots s join public.claims c on c.slot_id = s.id
   where c.end_as = 'released' and s.status = 'RESERVED'), 3, 'they hold their slots'
);
select is(
  (select r.ending from intake.give_back_claim(pg_temp.claim_of('taken')) r), true, 'an operator is told the same'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('sold'), 'sold') $$, 'SL010', 'a ticket cannot be released'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('dead'), 'dead') $$, 'SL013',
  'a dead letter waits for its operator and cannot be released'
);
select is(
  (select state from public.get_claim(pg_temp.claim_of('dead'))), 'dead_letter', 'the dead letter is still there'
);
update public.claims set end_as = 'discarded', end_due = now() where claim_id = pg_temp.claim_of('dead');
select is(pg_temp.release('dead'), 'dead_letter ending', 'unless it is ending already');

select * from finish();
rollback;

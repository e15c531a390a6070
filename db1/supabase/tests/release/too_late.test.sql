-- Once the bridge has taken a claim, release is too late.
begin;
select plan(13);

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

select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('taken'), 'taken') $$, 'SL009',
  'a claim whose message was ever taken cannot be released, even when its lease has run out'
);
select tests.refuses(
  $$ select intake.give_back_claim(pg_temp.claim_of('taken')) $$, 'SL009', 'an operator comes too late as well'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('sold'), 'sold') $$, 'SL010', 'a ticket cannot be released'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('dead'), 'dead') $$, 'SL013',
  'a dead letter waits for its operator and cannot be released'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('replayed'), 'replayed') $$, 'SL009',
  'a claim that was replayed cannot be released: who had its old message may be writing the ticket'
);
select tests.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('stranded'), 'stranded') $$, 'SL009',
  'nor can one whose message was lost and sent again'
);
select is(
  (select state from public.get_claim(pg_temp.claim_of('dead'))), 'dead_letter', 'the dead letter is still there'
);

select * from finish();
rollback;

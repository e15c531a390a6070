-- Once the bridge has taken a claim, release is too late.
begin;
select plan(13);

-- All that a claim can change, as one value.
create function pg_temp.state()
returns text
language sql
as $$
  select md5(concat(
    (select string_agg(c::text, ',' order by c.claim_id) from public.claims c),
    (select string_agg(s::text, ',' order by s.id) from public.inventory_slots s),
    (select string_agg(q::text, ',' order by q.msg_id) from pgmq.q_intake_queue q),
    (select string_agg(d::text, ',' order by d.msg_id) from pgmq.q_intake_dlq d)
  ));
$$;

create function pg_temp.refuses(p_sql text, p_code text, p_name text)
returns setof text
language plpgsql
as $$
declare
  v_before text := pg_temp.state();
begin
  return next throws_ok(p_sql, p_code, null::text, p_name);
  return next is(pg_temp.state(), v_before, p_name || ', and nothing changes');
end
$$;

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

select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('taken'), 'taken') $$, 'SL009',
  'a claim whose message was ever taken cannot be released, even when its lease has run out'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('taken')) $$, 'SL009', 'an operator comes too late as well'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('sold'), 'sold') $$, 'SL010', 'a ticket cannot be released'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('dead'), 'dead') $$, 'SL013',
  'a dead letter waits for its operator and cannot be released'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('replayed'), 'replayed') $$, 'SL009',
  'a claim that was replayed cannot be released: who had its old message may be writing the ticket'
);
select pg_temp.refuses(
  $$ select public.release_own_claim(pg_temp.claim_of('stranded'), 'stranded') $$, 'SL009',
  'nor can one whose message was lost and sent again'
);
select is(
  (select state from public.get_claim(pg_temp.claim_of('dead'))), 'dead_letter', 'the dead letter is still there'
);

select * from finish();
rollback;

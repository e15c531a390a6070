-- Operators look for claims, at the way of one, and at what was done.
begin;
select plan(35);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'p' from generate_series(1, 5);
insert into public.inventory_slots (pool_id) select 'q' from generate_series(1, 5);
select public.claim_resource_and_queue('p', u, 'r-' || u), public.claim_resource_and_queue('q', u)
from unnest(array['ann', 'bob']) u;

create function pg_temp.found(p_sql text) returns text language plpgsql
as $$
declare
  v_found text;
begin
  execute 'select string_agg(concat(user_id, '' '', pool_id), '', '' order by user_id, pool_id) from ' || p_sql into v_found;
  return v_found;
end
$$;
create function pg_temp.claim_of(p_user text, p_pool text) returns uuid language sql
as $$ select claim_id from public.claims where user_id = p_user and pool_id = p_pool $$;
create function pg_temp.way(p_user text, p_pool text) returns text language sql
as $$ select string_agg(what, ' ' order by n)
      from public.claim_timeline(pg_temp.claim_of(p_user, p_pool)) with ordinality t (at, what, detail, n) $$;

select is(pg_temp.found($$public.claim_search(p_user_id => 'ann')$$), 'ann p, ann q', 'by user');
select is(pg_temp.found($$public.claim_search(p_claim_id => pg_temp.claim_of('bob', 'q')::text)$$), 'bob q', 'by claim');
select is(pg_temp.found($$public.claim_search(p_claim_id => left(pg_temp.claim_of('bob', 'q')::text, 28))$$), 'bob q', 'by its beginning');
select is(pg_temp.found($$public.claim_search(p_claim_id => 'bob')$$), null, 'what is not the beginning of an id finds nothing');
select is(pg_temp.found($$public.claim_search(p_request_id => 'r-bob')$$), 'bob p', 'by request, in whatever pool');
select is(pg_temp.found($$public.claim_search(p_request_id => 'r-bob', p_pool_id => 'q')$$), null, 'or in one pool');
select is(pg_temp.found($$public.claim_search(p_pool_id => 'q', p_state => 'queued')$$), 'ann q, bob q', 'by pool and state');
select is(pg_temp.found($$public.claim_search(p_state => 'nonsense')$$), null, 'a state that is none finds nothing');
select is(
  (select count(distinct claim_id)::int from (
    select claim_id from public.claim_search(p_limit => 2)
    union all
    select claim_id from public.claim_search(p_limit => 100, p_after => (
      select claim_id from public.claim_search(p_limit => 2) order by claim_id limit 1
    ))
  ) pages), (select count(*)::int from public.claims), 'page by page nothing is left out or told twice'
);

-- Ids begin with the time: the newest claim is the first of the first page, however it was made.
select pg_sleep(0.002);
select public.claim_batch(array['p'], array['cy'], array['r-cy'], array[false]);
select is((select user_id from public.claim_search(p_limit => 1)), 'cy', 'the newest first');
select pg_sleep(0.002);
select public.claim_resource_and_queue('p', 'di');
select is(
  (select string_agg(concat(user_id, ' ', ahead), ', ') from public.claim_search(p_pool_id => 'p', p_limit => 2)),
  'di 5, cy 4', 'then the one before, each with how many are ahead of it'
);

select is(pg_temp.way('ann', 'p'), 'claimed queued', 'a claim on its way');
select public.intake_route_to_dlq(msg_id, message || '{"reason": "planted"}', 3) from pgmq.q_intake_queue
where message ->> 'user_id' = 'ann' and message ->> 'pool_id' = 'p';
select is(pg_temp.way('ann', 'p'), 'claimed dead_letter', 'one that died');
select public.replay_dead_letters(array[(select msg_id from pgmq.q_intake_dlq)], 'olga', 'mended');
select is(pg_temp.way('ann', 'p'), 'claimed queued dead_letter_replay', 'one that was replayed, and by whom');
select intake.give_back_claim(pg_temp.claim_of('bob', 'q'));
select is(pg_temp.way('bob', 'q'), 'claimed released', 'one that was given back');
select is(
  (select concat(state, ', ', end_reason) from public.release_claim_as_operator(pg_temp.claim_of('ann', 'q'), 'olga', 'called us')),
  'released, released by an operator', 'an operator gives one back, and the buyer is not told why'
);
select is(pg_temp.way('ann', 'q'), 'claimed claim_release released', 'which its way tells');
select public.release_claim_as_operator(pg_temp.claim_of('ann', 'q'), 'olga', 'again');
select results_eq(
  $$ select actor, subject, reason from audit.audit_logs where action = 'claim_release' $$,
  $$ select 'olga', 'claim ' || pg_temp.claim_of('ann', 'q'), 'called us' $$, 'and the audit log once'
);
update pgmq.q_intake_queue set read_ct = 1 where message ->> 'user_id' = 'bob' and message ->> 'pool_id' = 'p';
select results_eq(
  $$ select r.state, r.ending from generate_series(1, 2)
     cross join lateral public.release_claim_as_operator(pg_temp.claim_of('bob', 'p'), 'olga', 'asked') r $$,
  $$ values ('queued', true), ('queued', true) $$, 'what is with the bridge is ending'
);
select results_eq(
  $$ select details ->> 'outcome' from audit.audit_logs where action = 'claim_release' and reason = 'asked' $$,
  array['ending'], 'which the audit log has once'
);
select is(pg_temp.way('bob', 'p') like '% claim_release ending', true, 'and its way tells');
select throws_ok($$ select public.release_claim_as_operator(gen_random_uuid(), 'olga') $$, 'SL008', null, 'nor can an unknown claim be');
select is_empty($$ select * from public.claim_timeline(gen_random_uuid()) $$, 'an unknown claim has no timeline');

-- What a repair did to a claim is told by its way, and to the one it ended as well.
select public.claim_resource_and_queue('p', 'eve');
select public.intake_route_to_dlq(msg_id, message, 3) from pgmq.q_intake_queue where message ->> 'user_id' = 'eve';
select is(
  public.reconcile_fix(slot_id, 'ticket_of_another_claim', 'olga', jsonb_build_object('claim_id', slot_id, 'user_id', 'fay')),
  'fixed', 'a slot goes to the owner of its ticket'
) from public.claims where user_id = 'eve';
select is(pg_temp.way('eve', 'p'), 'claimed reconcile_fix discarded', 'the claim that it ended tells it');
select is(pg_temp.way('fay', 'p'), 'claimed reconcile_fix', 'as does the one that it made');
select is((select count(*)::int from audit.audit_logs where action = 'reconcile_fix'), 1, 'and it is one row in the audit log');
delete from pgmq.q_intake_queue where message ->> 'user_id' = 'di';
select is(
  public.reconcile_fix(slot_id, 'claim_without_message', 'olga'), 'fixed', 'a claim gets its message again'
) from public.claims where user_id = 'di';
select is(pg_temp.way('di', 'p'), 'claimed queued reconcile_fix', 'which its way tells, too');
select is(
  public.reconcile_fix(slot_id, 'claim_without_ticket', 'olga'), 'fixed', 'a ticket that the ledger lost goes round again'
) from public.claims where user_id = 'fay';
select is(
  (select q.message ->> 'state' from pgmq.q_intake_queue q where q.message ->> 'user_id' = 'fay'), 'validated',
  'and the validation hook is not asked again'
);
create function pg_temp.plan_of(p_sql text) returns setof text language plpgsql
as $$ begin return query execute 'explain ' || p_sql; end $$;
set local enable_seqscan = off;
select is_empty(
  $$ select l from pg_temp.plan_of(
       'select from audit.audit_logs a where a.details ->> ''claim_id'' = ''x'' or a.details ->> ''ended_claim_id'' = ''y'' '
     ) l where l ~ 'Seq Scan' $$,
  'and the query does not scan the whole audit log'
);
reset enable_seqscan;

select results_eq(
  $$ select actor, action from public.audit_page(p_limit => 1) $$, $$ values ('olga', 'reconcile_fix') $$, 'the newest first'
);

select set_eq(
  $$ select j ->> 'name' from jsonb_array_elements(public.intake_health() -> 'jobs') j $$,
  $$ select jobname from cron.job $$, 'the examination knows every job'
);
select ok(
  abs((public.intake_health() ->> 'now_ms')::numeric - extract(epoch from clock_timestamp()) * 1000) < 60000,
  'and the time'
);

select * from finish();
rollback;

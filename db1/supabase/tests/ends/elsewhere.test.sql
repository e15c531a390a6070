-- Pools that commit by a hook or a function of their own: nothing can refuse a late commit. A claim that a worker took is
-- carried to its end; of a dead letter that an operator discards the time is waited out.
begin;
select plan(20);

select tests.empty_queues();
delete from public.claims where end_as is not null;
insert into public.engine_config (pool_id, commit_webhook_url, commit_rpc_name) values
  ('hook', 'https://example.com/commit', 'finalize_transaction'), ('own', null, 'own_commit');
insert into public.inventory_slots (pool_id) select p from unnest(array['hook', 'own']) p, generate_series(1, 3);
select public.claim_resource_and_queue(p, p || u) from unnest(array['hook', 'own']) p, unnest(array['_taken', '_dead']) u;
create temp table taken as select * from tests.take(100, 600);
select tests.finish(p || '_dead', 1, 'dead_letter', 'planted') from unnest(array['hook', 'own']) p;
select throws_ok(
  format('select public.release_own_claim(%L, %L)', c.claim_id, c.user_id), 'SL009', null, c.user_id || ': its target may have it'
) from public.claims c where c.user_id like '%_taken' order by c.user_id;
update public.claims set hold_until = now() - interval '1 second' where user_id like '%_taken';
select public.expire_holds();
select results_eq(
  $$ select distinct state::text, hold_until, end_as from public.claims where user_id like '%_taken' $$,
  $$ values ('queued', null::timestamptz, null::public.claim_state) $$, 'and its hold no longer counts'
);
-- As where a pool begins to commit elsewhere after its claim was to end.
select intake.begin_ends(array_agg(c.claim_id), 'released', 'released') from public.claims c where c.user_id like '%_taken';
select count(*) from public.discard_dead_letters(array(select msg_id from pgmq.q_intake_dlq), 'olga');
create function pg_temp.waits() returns table (user_id text, sec int) language sql as $$
  select c.user_id::text, round(extract(epoch from c.end_due - now()))::int from public.claims c
  where c.end_as is not null order by 1
$$;

select is_empty($$ select * from public.take_ends(100, 30) $$, 'none of them ends at once');
select results_eq(
  $$ select user_id, round(sec / 10.0) * 10 from pg_temp.waits() $$,
  $$ values ('hook_dead', 40::numeric), ('hook_taken', 640), ('own_dead', 40), ('own_taken', 640) $$,
  'the deadline of a call is waited out, and before it the lease'
);
select results_eq(
  $$ select distinct vt from pgmq.q_intake_queue $$, $$ values ('infinity'::timestamptz) $$, 'no worker can take the messages'
);
select is_empty($$ select * from tests.take(100, 600) $$, 'not even later');
select is(tests.finish('hook_taken', 1, 'retry', '500'), 'retry', 'the worker that has one may hand it back');
select is((select count(*)::int from pgmq.q_intake_queue where vt = 'infinity'), 2, 'and it stays hidden');
select is(
  (select detail ->> 'next_attempt_at' from public.claim_timeline((tests.claim_of('hook', 'hook_taken')).claim_id)
   where what = 'queued'), null, 'no further attempt is planned'
);
select results_eq(
  $$ select detail from public.claim_timeline((tests.claim_of('hook', 'hook_taken')).claim_id) where what = 'ending' $$,
  $$ values ('{"as": "released", "reason": "released"}'::jsonb) $$, 'and the way of the claim says why'
);
select is(tests.finish('own_taken', 1, 'committed', 'function:own_commit'), 'committed', 'or commit it');
select results_eq(
  $$ select (c).state::text, (c).committed_by, (c).end_as from (select tests.claim_of('own', 'own_taken') as c) x $$,
  $$ values ('committed', 'function:own_commit', null::public.claim_state) $$, 'which the claim remembers, and then it does not end'
);

update public.claims set end_due = now() where end_as is not null;
update pgmq.q_intake_dlq set enqueued_at = now() - interval '1 minute';
create temp table ends as select * from public.take_ends(100, 30);
select results_eq(
  $$ select user_id, in_ledger from ends order by 1 $$,
  $$ values ('hook_dead', false), ('hook_taken', false), ('own_dead', true) $$,
  'after that they end; the ledger is told where it commits them'
);
select is((select public.finish_ends(array_agg(claim_id), array_agg('voided'::text)) from ends), 3, 'and have ended');
select is_empty($$ select from pgmq.q_intake_queue $$, 'no message is left');
select is(
  (select count(*)::int from public.inventory_slots where pool_id in ('hook', 'own') and status = 'AVAILABLE'), 5,
  'their slots are on sale'
);

-- What its claim was committed by is asked of the claim, not of today's rules.
select public.claim_resource_and_queue('hook', 'ann');
delete from taken;
insert into taken select * from tests.take(100, 600);
select is(tests.finish('ann', 1, 'committed', 'hook'), 'committed', 'a hook has committed a claim');
update public.engine_config set commit_webhook_url = null where pool_id = 'hook';
select results_eq(
  $$ select claim_state, expects_ticket from public.reconcile_claims() where pool_id = 'hook' and user_id = 'ann' $$,
  $$ values ('committed', false) $$, 'it needs no ticket, whatever the rules say later'
);
select is(
  public.reconcile_fix((tests.claim_of('hook', 'ann')).slot_id, 'claim_without_ticket', 'ada'), 'unchanged',
  'and is not carried again'
);

select * from finish();
rollback;

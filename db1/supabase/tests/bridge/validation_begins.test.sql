-- A pool that begins to validate leaves alone claims that a worker may have carried to the ledger before.
begin;
select plan(19);

delete from pgmq.q_intake_queue;
insert into public.engine_config (pool_id, hold_sec) values ('v', 60), ('w', 60);
insert into public.inventory_slots (pool_id) select p from unnest(array['v', 'w', 'bare']) p, generate_series(1, 4);
select public.claim_resource_and_queue(p, 'taken') from unnest(array['v', 'w', 'bare']) p;
select public.intake_queue_send(jsonb_build_object('pool_id', 'v', 'resource_id', gen_random_uuid(), 'user_id', 'hand'));
select count(*) from tests.take(100, 0);
select public.claim_resource_and_queue(p, 'fresh') from unnest(array['v', 'w', 'bare']) p;
select public.intake_queue_send(m) from unnest(array['null', '[1]', '{"pool_id": 7}']::jsonb[]) m;
update public.claims set hold_until = now() - interval '1 minute' where pool_id = 'v';
create function pg_temp.states(p_pool text) returns text language sql
as $$ select string_agg(c.user_id || ' ' || c.state, ', ' order by c.user_id) from public.claims c where c.pool_id = p_pool $$;
create function pg_temp.messages(p_pool text) returns text language sql
as $$ select string_agg(concat(q.message ->> 'user_id', ' ', q.message ->> 'state'), ', ' order by q.message ->> 'user_id')
  from pgmq.q_intake_queue q where q.message ->> 'pool_id' = p_pool $$;

update public.engine_config set batch_size = 7 where pool_id = 'v';
select is(pg_temp.states('v'), 'fresh queued, taken queued', 'another setting changes nothing');
update public.engine_config set validation_webhook_url = 'https://example.com/v' where pool_id = 'v';
select is(pg_temp.states('v'), 'fresh queued, taken validated', 'a claim that was taken before is not asked about; a new one is');
select is(pg_temp.messages('v'), 'fresh queued, hand validated, taken validated', 'nor is what was put there by hand');
select is(pg_temp.states('w'), 'fresh queued, taken queued', 'other pools are left alone');
select is(public.expire_holds(), 1, 'a hold that runs out ends');
select is(pg_temp.states('v'), 'fresh expired, taken validated', 'only the claim that no worker had taken');

select public.claim_resource_and_queue('v', 'next');
select count(*) from tests.take(100, 0);
update public.engine_config set validation_webhook_url = 'https://example.com/other' where pool_id = 'v';
select is(pg_temp.states('v'), 'fresh expired, next queued, taken validated', 'a change of the address does not count as a beginning');
update public.engine_config set validation_webhook_url = null where pool_id = 'v';
select is(pg_temp.states('v'), 'fresh expired, next queued, taken validated', 'nor is the end of it');
update public.engine_config set validation_webhook_url = 'https://example.com/v' where pool_id = 'v';
select is(pg_temp.states('v'), 'fresh expired, next validated, taken validated', 'what was taken meanwhile may be in the ledger');

select public.claim_resource_and_queue('bare', 'later');
insert into public.engine_config (pool_id, validation_webhook_url) values ('bare', 'https://example.com/v');
select is(
  pg_temp.states('bare'), 'fresh validated, later queued, taken validated',
  'a pool that gets its first rules did not validate before'
);
insert into public.engine_config (pool_id) values ('plain');
select is(pg_temp.states('w'), 'fresh queued, taken queued', 'rules without validation change nothing');

-- What was only handed back, and what died of its attempts.
insert into public.inventory_slots (pool_id) select 'x' from generate_series(1, 3);
select public.claim_resource_and_queue('x', u) from unnest(array['back', 'dead', 'tried']) u;
create temp table taken as select * from tests.take(100, 0) where message ->> 'pool_id' = 'x';
select * from taken t cross join lateral public.bridge_finish(
  array[t.msg_id], array[t.read_ct],
  array[case t.message ->> 'user_id' when 'back' then 'untried' when 'dead' then 'dead_letter' else 'retry' end],
  '{planted}', '{0}'
);
insert into public.engine_config (pool_id, validation_webhook_url) values ('x', 'https://example.com/v');
select is(
  pg_temp.states('x'), 'back queued, dead dead_letter, tried validated', 'what was handed back untried is asked about'
);
select is(pg_temp.messages('x'), 'back queued, tried validated', 'in claim and message alike');
select is(
  (select r.outcome from pgmq.q_intake_dlq d cross join lateral public.replay_dead_letters(array[d.msg_id], 'olga') r
   where d.message ->> 'pool_id' = 'x'),
  'replayed', 'a letter that died before can be replayed'
);
select is(
  pg_temp.states('x'), 'back queued, dead validated, tried validated', 'and is not asked about: the target may have it'
);

-- Replayed before the pool begins, and not taken since.
insert into public.inventory_slots (pool_id) values ('y');
select public.claim_resource_and_queue('y', 'again');
create temp table died as select * from tests.take(100, 0) where message ->> 'pool_id' = 'y';
select * from died t cross join lateral public.bridge_finish(
  array[t.msg_id], array[t.read_ct], '{dead_letter}', '{planted}', '{0}'
);
select * from pgmq.q_intake_dlq d cross join lateral public.replay_dead_letters(array[d.msg_id], 'olga')
where d.message ->> 'pool_id' = 'y';
select is(pg_temp.states('y'), 'again queued', 'a letter goes round again');
insert into public.engine_config (pool_id, validation_webhook_url) values ('y', 'https://example.com/v');
select is(
  concat_ws('; ', pg_temp.states('y'), pg_temp.messages('y')), 'again validated; again validated',
  'and is not asked about, for it was tried before it died'
);

-- A worker that took it before, and reads the new rules only now.
select is(
  (select f.outcome from pgmq.q_intake_queue q cross join lateral public.bridge_finish(
     array[q.msg_id], array[q.read_ct], '{refused}', '{late}', '{0}') f
   where q.message ->> 'user_id' = 'tried'),
  'untried', 'a refusal does not end a claim that counts as validated'
);
select is(
  pg_temp.states('x'), 'back queued, dead validated, tried validated', 'and frees nothing'
);

select * from finish();
rollback;

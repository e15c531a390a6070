-- Claims that are going to end: taken by one worker at a time, ended as the ledger says, once.
begin;
select plan(26);

select tests.empty_queues();
delete from public.claims where end_as is not null;
insert into public.inventory_slots (pool_id) select 'p' from generate_series(1, 8);
select public.claim_resource_and_queue('p', u) from unnest(array['gone', 'sold', 'dead', 'dead_sold', 'busy', 'back']) u;
create temp table taken as select * from tests.take(100, 600);
select tests.finish(u, 1, 'dead_letter', 'planted') from unnest(array['dead', 'dead_sold']) u;
create temp table claim as select * from public.claims where pool_id = 'p';
create function pg_temp.id(p_user text) returns uuid language sql as $$ select claim_id from claim where user_id = p_user $$;
create function pg_temp.now_of(p_user text) returns text language sql as $$
  select concat_ws(' ', c.state, s.status, c.end_as, c.end_reason, case when c.freed_at is not null then 'freed' end,
    'messages ' || (select count(*) from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user),
    'letters ' || (select count(*) from pgmq.q_intake_dlq d where d.message ->> 'user_id' = p_user))
  from claim o join public.claims c using (claim_id) join public.inventory_slots s on s.id = c.slot_id where o.user_id = p_user
$$;

select is_empty($$ select * from public.take_ends(100, 30) $$, 'no claim is going to end');
select public.release_own_claim(pg_temp.id(u), u, 'why') from unnest(array['gone', 'sold', 'busy', 'back']) u;
select results_eq(
  $$ select outcome, claim_id from public.discard_dead_letters(
       array(select msg_id from pgmq.q_intake_dlq order by msg_id), 'olga', 'too old') $$,
  $$ values ('ending', pg_temp.id('dead')), ('ending', pg_temp.id('dead_sold')) $$, 'a discarded letter is ending'
);
select is(pg_temp.now_of('dead'), 'dead_letter RESERVED discarded too old messages 0 letters 1', 'it is there until then');
select is(
  (select string_agg(distinct outcome, ' ') from public.discard_dead_letters(
     array(select msg_id from pgmq.q_intake_dlq), 'olga')), 'ending', 'a second discard says the same'
);
select is((select count(*)::int from audit.audit_logs where action = 'dead_letter_discard'), 4, 'and each is in the audit log');
select results_eq(
  $$ select distinct ending from public.list_dead_letters('p') $$, array[true], 'the list of dead letters says so, too'
);

create temp table ends as select * from public.take_ends(100, 30);
select results_eq(
  $$ select claim_id, resource_id, pool_id, user_id, cause, in_ledger from ends order by user_id $$,
  $$ select claim_id, slot_id, 'p'::text, user_id::text, case when user_id like 'dead%' then 'discarded' else 'released' end, true
     from claim order by user_id $$, 'a worker gets what the ledger has to know'
);
select is_empty($$ select * from public.take_ends(100, 30) $$, 'and for a while no other worker does');
select results_eq(
  $$ select claim_state from tests.take(100, 600) $$, $$ select ''::text limit 0 $$, 'the messages are held by the first worker'
);
update pgmq.q_intake_queue set vt = now();
select results_eq(
  $$ select distinct claim_state from tests.take(100, 600) $$, array['ending'], 'who takes such a message is told'
);
update public.claims set state = 'committed', msg_id = null, end_as = null, end_reason = null where claim_id = pg_temp.id('busy');
delete from pgmq.q_intake_queue where message ->> 'user_id' = 'busy';

select is(
  (select public.finish_ends(array_agg(claim_id), array_agg(case when user_id like '%sold' then 'ticket' else 'voided' end))
   from ends where user_id <> 'back'), 4, 'four have ended'
);
select is(pg_temp.now_of('gone'), 'released AVAILABLE why freed messages 0 letters 0', 'one is released, and its message gone');
select is(pg_temp.now_of('dead'), 'discarded AVAILABLE too old freed messages 0 letters 0', 'one is discarded, and its letter gone');
select is(pg_temp.now_of('sold'), 'committed CONSUMED messages 0 letters 0', 'one has its ticket');
select is(pg_temp.now_of('dead_sold'), 'committed CONSUMED messages 0 letters 0', 'as has one from the dead letters');
select is(pg_temp.now_of('busy'), 'committed RESERVED messages 0 letters 0', 'one that was committed meanwhile stays so');
select is(pg_temp.now_of('back'), 'queued RESERVED released why messages 1 letters 0', 'one waits for the ledger');
select is((select count(*)::int from pgmq.a_intake_dlq where message ->> 'pool_id' = 'p'), 2, 'the letters are kept in their archive');
create temp table before as select tests.state() as state;
select is(
  (select public.finish_ends(array_agg(claim_id), array_agg('voided'::text)) from ends where user_id <> 'back'), 0,
  'a second finish ends nothing'
);
select is(tests.state(), (select state from before), 'and changes nothing');
select is(public.finish_ends('{}', '{}'), 0, 'nor does an empty one');
select is(public.finish_ends(array[pg_temp.id('back')], '{odd}'), 0, 'or one that says something else');

-- Both ways out of "ending" by the worker that has the message.
select is(
  (select f.outcome from pgmq.q_intake_queue q cross join lateral
     public.bridge_finish(array[q.msg_id], array[q.read_ct], '{committed}', '{null}', '{0}') f), 'committed',
  'the worker that has it can still commit it'
);
select is(pg_temp.now_of('back'), 'committed CONSUMED messages 0 letters 0', 'and then it does not end');
select is(public.finish_ends(array[pg_temp.id('back')], '{voided}'), 0, 'whatever the ledger was told');
select is_empty($$ select from public.claims where end_as is not null and pool_id = 'p' $$, 'nothing is left to end');

select * from finish();
rollback;

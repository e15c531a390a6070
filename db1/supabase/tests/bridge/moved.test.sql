-- A message that is not in the lane of its pool is moved there by the take that finds it.
begin;
select plan(19);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select p from unnest(array['late', 'never']) p, generate_series(1, 8);
select public.claim_resource_and_queue('late', u) from unnest(array['one', 'two', 'back', 'held']) u;
select public.claim_resource_and_queue('never', 'stays');
create temp table taken as select * from public.bridge_take('{0}', '{10}', 600);
select tests.finish('two', 1, 'retry', 'planted', 0);
select tests.finish('back', 1, 'untried', 'metered', 0);
select tests.finish('one', 1, 'outage', null, 0);
select tests.finish('stays', 1, 'outage', null, 0);
update public.claims set state = 'validated' where user_id = 'two';
insert into public.engine_config (pool_id) values ('late');
select pgmq.send('intake_queue', '{"pool_id": "late", "user_id": "by hand"}');
create temp table before as select q.* from pgmq.q_intake_queue q;

create function pg_temp.places() returns table (user_id text, lane int) language sql as $$
  select q.message ->> 'user_id', (q.msg_id >> 40)::int from pgmq.q_intake_queue q
$$;
select results_eq(
  $$ select message ->> 'user_id' from public.bridge_take('{0}', '{10}', 600) $$, array['stays'],
  'the take of lane 0 gives what has no other lane'
);
select set_eq(
  'select * from pg_temp.places()',
  $$ select u, intake.lane_of('late') from unnest(array['one', 'two', 'back', 'by hand']) u
     union all values ('held', 0), ('stays', 0) $$,
  'and moves the others to the lane of their pool, but not what a worker holds'
);
select results_eq(
  $$ select q.read_ct, q.enqueued_at, q.message - 'untried' from pgmq.q_intake_queue q
     where q.message ->> 'user_id' in ('one', 'two', 'back', 'by hand') order by q.msg_id $$,
  $$ select b.read_ct, b.enqueued_at, b.message - 'untried' from before b
     where b.message ->> 'user_id' in ('one', 'two', 'back', 'by hand') order by b.msg_id $$,
  'as old, as often delivered and as they were, in the same order'
);
select is(
  (select array_agg(c.msg_id = q.msg_id and c.state::text = case c.user_id when 'two' then 'validated' else 'queued' end)
   from public.claims c join pgmq.q_intake_queue q on q.message ->> 'claim_id' = c.claim_id::text), '{t,t,t,t,t}',
  'their claims know their messages'
);
select is((select count(*)::int from pgmq.q_intake_queue), 6, 'nothing is doubled or lost');
select is(tests.finish('one', 1, 'committed'), 'lost_lease', 'a worker from before has nothing to finish');
select results_eq(
  $$ select message ->> 'user_id', read_ct, attempts, takeovers from public.bridge_take(array[intake.lane_of('late')], '{3}', 600) $$,
  $$ values ('one', 2, 1, 0), ('two', 2, 2, 0), ('back', 2, 1, 0) $$, 'in their lane they are taken'
);

-- What was handed back untried still is.
update pgmq.q_intake_queue set read_ct = 1, vt = clock_timestamp() where message ->> 'user_id' = 'back';
select is(
  (select r.state from public.release_own_claim((tests.claim_of('late', 'back')).claim_id, 'back') r), 'released',
  'a mark of untried deliveries moves along'
);
update pgmq.q_intake_queue set read_ct = 1, message = message || jsonb_build_object('untried', jsonb_build_array(msg_id, 7))
where message ->> 'user_id' = 'held';
update pgmq.q_intake_queue set vt = clock_timestamp() where message ->> 'user_id' = 'held';
select is_empty($$ select * from public.bridge_take('{0}', '{10}', 600) $$, 'once its lease has run out the last one moves, too');
select is((select lane from pg_temp.places() where user_id = 'held'), intake.lane_of('late'), 'to the lane of its pool');
select isnt(
  tests.message_of('held') #>> '{untried,0}', (select msg_id::text from pgmq.q_intake_queue where message ->> 'user_id' = 'held'),
  'and a mark that says nothing goes on saying nothing'
);

-- A suspect is moved by its own take.
select pgmq.send('intake_queue', '{"pool_id": "late", "user_id": "odd"}');
update pgmq.q_intake_queue set read_ct = 2 where message ->> 'user_id' = 'odd';
select is_empty($$ select * from public.bridge_take('{0}', '{10}', 600) $$, 'the common take leaves a suspect where it is');
select is((select lane from pg_temp.places() where user_id = 'odd'), 0, 'in lane 0');
select is_empty($$ select * from public.bridge_take_suspect('{0}', 600) $$, 'the take of suspects moves it');
select results_eq(
  $$ select message ->> 'user_id', takeovers from public.bridge_take_suspect(array[intake.lane_of('late')], 600) $$,
  $$ values ('odd', 2) $$, 'and finds it in its lane, a suspect still'
);

-- The lane of a pool that was deleted and made again.
create temp table lane_before as select intake.lane_of('late') as lane;
delete from public.engine_config where pool_id = 'late';
update pgmq.q_intake_queue set vt = clock_timestamp(), read_ct = 0, message = message - 'untried';
select set_eq(
  $$ select message ->> 'user_id' from lane_before b cross join lateral public.bridge_take(array[b.lane], '{10}', 0) $$,
  array['one', 'two', 'by hand', 'held', 'odd'], 'while the pool does not exist its messages are taken from its old lane'
);
insert into public.engine_config (pool_id) values ('late');
select is_empty(
  $$ select * from lane_before b cross join lateral public.bridge_take(array[b.lane], '{10}', 0) $$, 'once there is, they move'
);
select is(
  (select array_agg(distinct lane) from pg_temp.places() where user_id <> 'stays'), array[intake.lane_of('late')], 'all of them'
);
select is(
  (select array_agg(c.msg_id = q.msg_id) from public.claims c join pgmq.q_intake_queue q on q.message ->> 'claim_id' = c.claim_id::text),
  '{t,t,t,t}', 'and their claims know it'
);

select * from finish();
rollback;

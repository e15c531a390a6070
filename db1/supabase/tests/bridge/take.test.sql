-- A worker takes messages lane by lane under a lease, oldest first, and learns what counts against them.
begin;
select plan(35);

delete from pgmq.q_intake_queue;
insert into public.engine_config (pool_id, visibility_timeout_sec) values ('short', 1), ('long', 600);
insert into public.inventory_slots (pool_id) select p from unnest(array['short', 'long']) p, generate_series(1, 3);
select public.claim_resource_and_queue('short', 'ann');
select public.claim_resource_and_queue('long', 'bob');
select public.claim_resource_and_queue('short', 'cyd');
select public.claim_resource_and_queue('short', 'dan');
select public.intake_queue_send('{"pool_id": "nowhere"}');
create function pg_temp.lanes(p_pools text[]) returns int[] language sql
as $$ select array(select intake.lane_of(p) from unnest(p_pools) p) $$;

create temp table first_take as select * from public.bridge_take(pg_temp.lanes('{long,short}'), '{5,2}', 30);
select results_eq(
  $$ select message ->> 'user_id' from first_take $$, array['ann', 'cyd', 'bob'],
  'as many as are wanted of each lane, the oldest of it, in the order of the lanes'
);
select set_eq(
  'select read_ct, attempts, takeovers, claim_state from first_take', $$ values (1, 1, 0, 'queued') $$,
  'a first delivery is one attempt and no takeover, and the state of the claim comes along'
);
create function pg_temp.lease_of(p_user text) returns interval language sql as $$
  select q.vt - clock_timestamp() from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user
$$;
select ok(pg_temp.lease_of('ann') between interval '25 s' and interval '30 s', 'the lease is as long as the worker asked');
select ok(
  pg_temp.lease_of('bob') between interval '595 s' and interval '600 s',
  'where the pool''s visibility timeout is longer, that is the lease'
);
select is_empty($$ select * from public.bridge_take(pg_temp.lanes('{long}'), '{10}', 30) $$, 'a second worker gets nothing of what is held');
create temp table second_take as select * from tests.take(10, 30);
select results_eq(
  $$ select message ->> 'pool_id', message ->> 'user_id' from second_take $$, $$ values ('nowhere', null), ('short', 'dan') $$,
  'but the others'
);
select is((select claim_state from second_take where message ->> 'pool_id' = 'nowhere'), null, 'a message without a claim has no state');
select is_empty('select * from tests.take(10, 30)', 'a third worker gets nothing');

-- An invalid lane or number takes nothing and stops nothing.
update pgmq.q_intake_queue set vt = clock_timestamp(), read_ct = 0;
select is_empty(format('select * from public.bridge_take(%s, 30)', a), format('(%s) takes nothing', a)) from unnest(array[
  'null, null', $$ '{}', '{}' $$, $$ '{1}', '{}' $$, $$ '{}', '{1}' $$, $$ '{0}', '{0}' $$, $$ '{0}', '{-1}' $$, $$ '{0}', '{null}' $$,
  $$ '{null}', '{1}' $$, $$ '{8191,2147483647,-2147483648}', '{1,1,1}' $$
]) a;
select results_eq(
  $$ select message ->> 'user_id', read_ct from public.bridge_take(
       pg_temp.lanes('{long,short}') || null::int || pg_temp.lanes('{short,short,short}'), array[1, 1, 1, null, 2, 0], 30) $$,
  $$ values ('ann', 1), ('cyd', 1), ('bob', 1) $$, 'a lane that is named twice is taken once, as much as is wanted most'
);

update pgmq.q_intake_queue set vt = clock_timestamp(), read_ct = 0;
select is(
  (select array_agg(distinct message ->> 'pool_id') from public.bridge_take(array[least(
     intake.lane_of('short'), intake.lane_of('long'))], '{100}', 30)),
  (select array_agg(pool_id::text) from public.engine_config where lane = least(intake.lane_of('short'), intake.lane_of('long'))),
  'a lane gives its own messages and none of the next lane'
);

-- What counts against a message.
delete from pgmq.q_intake_queue where message ->> 'user_id' <> 'ann' or message ->> 'user_id' is null;
create function pg_temp.delivered_after(p_read_ct int, p_adds jsonb) returns text language plpgsql as $$
begin
  update pgmq.q_intake_queue set vt = clock_timestamp(), read_ct = p_read_ct, message = message - '{seen,tried}'::text[] || p_adds;
  return (
    select concat_ws(' ', t.read_ct, t.attempts, t.takeovers)
    from (select * from tests.take(10, 30) union all
          select * from public.bridge_take_suspect(pg_temp.lanes('{short}'), 30)) t
  );
end
$$;
select is(pg_temp.delivered_after(1, '{}'), '2 1 1', 'a lease that has run out is another delivery, a takeover, and no attempt');
select is(pg_temp.delivered_after(1, '{"seen": 1}'), '2 1 0', 'a delivery that was finished does not count as a takeover');
select is(pg_temp.delivered_after(5, '{"seen": 3, "tried": 2}'), '6 3 2', 'attempts are those that failed and this one, takeovers those since');
select is(
  (select string_agg(pg_temp.delivered_after(4, jsonb_build_object('seen', v, 'tried', v)), ', ' order by n)
   from unnest(array['1.4', '1e300', '-5', '"7"', '{}', 'null', '[3]', '4']::jsonb[]) with ordinality a (v, n)),
  '5 2 3, 5 5 4, 5 1 4, 5 1 4, 5 1 4, 5 1 4, 5 1 4, 5 5 0',
  'a number that is none counts as the nearest that is one, and deliveries that never were are not seen'
);

delete from pgmq.q_intake_queue;
insert into pgmq.q_intake_queue (vt, message) values
  (clock_timestamp(), 'null'), (clock_timestamp(), '[]'), (clock_timestamp(), '"text"'), (clock_timestamp(), null),
  (clock_timestamp(), '{"pool_id": 7, "claim_id": "no uuid", "seen": {}}');
select results_eq(
  $$ select message, attempts, claim_state from public.bridge_take('{0}', '{10}', 30) $$,
  $$ values ('null'::jsonb, 1, null), ('[]', 1, null), ('"text"', 1, null), (null, 1, null),
    ('{"pool_id": 7, "claim_id": "no uuid", "seen": {}}', 1, null) $$,
  'messages that are no claims are taken like any other'
);

select is_empty('select * from public.bridge_extend(''{}'', ''{}'', 60)', 'extending nothing extends nothing');
create temp table held as select q.msg_id, q.read_ct from pgmq.q_intake_queue q order by q.msg_id limit 2;
select set_eq(
  $$ select public.bridge_extend(array_agg(msg_id), array_agg(read_ct), 600) from held $$,
  'select msg_id from held', 'leases that are held are extended'
);
select results_eq(
  $$ select count(*) from pgmq.q_intake_queue where vt > clock_timestamp() + interval '590 s' $$, array[2::bigint],
  'by as long as was asked, and no others'
);
update pgmq.q_intake_queue q set read_ct = q.read_ct + 1 from (select min(msg_id) as msg_id from held) h where q.msg_id = h.msg_id;
select set_eq(
  $$ select public.bridge_extend(array_agg(msg_id), array_agg(read_ct), 1200) from held $$,
  'select max(msg_id) from held', 'a lease that was taken over is not extended'
);
select results_eq(
  $$ select count(*) from pgmq.q_intake_queue where vt > clock_timestamp() + interval '1190 s' $$, array[1::bigint],
  'and stays as it was'
);
select is(
  (select count(*)::int from held h cross join lateral public.bridge_extend(array[h.msg_id], array[h.read_ct], 5)), 1,
  'a lease may be extended by less than is left of it'
);
select results_eq(
  $$ select count(*) from pgmq.q_intake_queue where vt > clock_timestamp() + interval '1190 s' $$, array[1::bigint],
  'and is not shortened by that'
);

-- Who a message says it is has to be who its claim is.
delete from pgmq.q_intake_queue;
create temp table ann as select * from public.claims where user_id = 'ann';
create function pg_temp.state_of(p_changes jsonb) returns text language plpgsql as $$
declare
  v_msg_id bigint := (
    select public.intake_queue_send(jsonb_build_object(
      'claim_id', claim_id, 'resource_id', slot_id, 'pool_id', pool_id, 'user_id', user_id) || p_changes) from ann
  );
begin
  return (select coalesce(claim_state, 'none') from tests.take(10, 30) where msg_id = v_msg_id);
end
$$;
select is(pg_temp.state_of('{"note": 1}'), 'queued', 'a message that tells what its claim says has its state');
select is(
  pg_temp.state_of((select jsonb_build_object('claim_id', upper(claim_id::text), 'resource_id', upper(slot_id::text)) from ann)),
  'queued', 'in whatever case its ids are written'
);
select is(
  (select string_agg(pg_temp.state_of(c), ' ' order by c) from unnest(array[
    '{"user_id": "eve"}', '{"user_id": null}', '{"pool_id": "long"}', '{"resource_id": "seat 7"}',
    '{"resource_id": "00000000-0000-4000-8000-000000000009"}'
  ]::jsonb[]) c),
  'mismatch mismatch mismatch mismatch mismatch', 'a message of another slot, pool or user than its claim''s is a mismatch'
);
select is(
  (select string_agg(pg_temp.state_of(jsonb_build_object('claim_id', id)), ' ') from unnest(array[
    'zzzzzzzz-0000-4000-8000-000000000001', '0000000_-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000000 ',
    '00000000-0000-4000-8000-00000000000' || chr(10), '00000000-0000-4000-8000-00000000000é', '00000000000040008000000000000001----'
  ]) id),
  'none none none none none none', 'text that only looks like a uuid is not one, and does not stop the take'
);

select * from finish();
rollback;

-- A worker takes messages under a lease, oldest first, and learns what counts against them.
begin;
select plan(25);

delete from pgmq.q_intake_queue;
insert into public.engine_config (pool_id, visibility_timeout_sec) values ('short', 1), ('long', 600);
insert into public.inventory_slots (pool_id) select p from unnest(array['short', 'long']) p, generate_series(1, 3);
select public.claim_resource_and_queue('short', 'ann');
select public.claim_resource_and_queue('long', 'bob');
select public.claim_resource_and_queue('short', 'cyd');
select public.intake_queue_send('{"pool_id": "nowhere"}');
create temp table queued as
select q.msg_id, q.message, row_number() over (order by q.msg_id) as place from pgmq.q_intake_queue q;

create temp table first_take as select * from public.bridge_take(2, 30);
select results_eq(
  'select msg_id from first_take', 'select msg_id from queued where place <= 2 order by msg_id',
  'a batch is the oldest messages, in their order'
);
select results_eq(
  'select read_ct, attempts, claim_state from first_take', $$ values (1, 1, 'queued'), (1, 1, 'queued') $$,
  'a first delivery is one attempt, and the state of the claim comes along'
);
create function pg_temp.lease_of(p_pool_id text) returns interval language sql as $$
  select q.vt - clock_timestamp() from pgmq.q_intake_queue q
  join first_take t on t.msg_id = q.msg_id
  where q.message ->> 'pool_id' = p_pool_id
$$;
select ok(
  pg_temp.lease_of('short') between interval '25 s' and interval '30 s', 'the lease is as long as the worker asked'
);
select ok(
  pg_temp.lease_of('long') between interval '595 s' and interval '600 s',
  'where the pool''s visibility timeout is longer, that is the lease'
);
create temp table second_take as select * from public.bridge_take(10, 30);
select results_eq(
  'select msg_id from second_take', 'select msg_id from queued where place > 2 order by msg_id',
  'a second worker gets the others'
);
select is((select claim_state from second_take where message ->> 'pool_id' = 'nowhere'), null, 'a message without a claim has no state');
select is_empty('select * from public.bridge_take(10, 30)', 'a third worker gets nothing');
select is_empty('select * from public.bridge_take(0, 30)', 'a batch of none is none');

update pgmq.q_intake_queue set vt = clock_timestamp() where message ->> 'user_id' = 'ann';
select results_eq(
  'select message ->> ''user_id'', read_ct, attempts from public.bridge_take(10, 30)', $$ values ('ann', 2, 2) $$,
  'a lease that has run out is another delivery and another attempt'
);

update pgmq.q_intake_queue set vt = clock_timestamp(), message = message || '{"forgiven": 2}' where message ->> 'user_id' = 'ann';
select results_eq(
  'select read_ct, attempts from public.bridge_take(10, 30)', $$ values (3, 1) $$,
  'forgiven deliveries are not attempts'
);

-- Whatever a hand writes there, it must not stop the queue.
update pgmq.q_intake_queue set vt = clock_timestamp();
update pgmq.q_intake_queue q set read_ct = 4, message = q.message || jsonb_build_object('forgiven', v.value)
from queued o, (values (1, '1.4'::jsonb), (2, '1e300'), (3, '-5'), (4, '"7"')) v (place, value)
where o.msg_id = q.msg_id and v.place = o.place;
select results_eq(
  'select attempts from public.bridge_take(10, 30)', $$ values (4), (1), (5), (5) $$,
  'a number of forgiven deliveries that is none counts as the nearest that is one'
);

update pgmq.q_intake_queue set vt = clock_timestamp();
select results_eq(
  $$ select message ->> 'user_id' from public.bridge_take(10, 30, array['short', 'elsewhere']) $$,
  $$ values ('bob'), (null) $$, 'a paused pool is passed over, and nobody else'
);
select results_eq(
  $$ select message ->> 'user_id' from public.bridge_take(1, 30) $$, array['ann'], 'it is found as soon as it is not paused'
);

delete from pgmq.q_intake_queue;
insert into pgmq.q_intake_queue (vt, message) values
  (clock_timestamp(), 'null'), (clock_timestamp(), '[]'), (clock_timestamp(), '"text"'), (clock_timestamp(), null),
  (clock_timestamp(), '{"pool_id": 7, "claim_id": "no uuid", "forgiven": {}}');
select results_eq(
  $$ select message, attempts, claim_state from public.bridge_take(10, 30, array['short']) $$,
  $$ values ('null'::jsonb, 1, null), ('[]', 1, null), ('"text"', 1, null), (null, 1, null),
    ('{"pool_id": 7, "claim_id": "no uuid", "forgiven": {}}', 1, null) $$,
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
  return (select coalesce(claim_state, 'none') from public.bridge_take(10, 30) where msg_id = v_msg_id);
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
  'none none none none none none', 'what only looks like a uuid is none, and stops nobody'
);

select * from finish();
rollback;

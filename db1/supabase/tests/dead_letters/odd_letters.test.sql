-- Letters that are no claims: put on the queue by hand, or not even objects. None stops its neighbours.
begin;
select plan(27);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'p' from generate_series(1, 3);
create temp table slot as select s.id, row_number() over (order by s.id) as n from public.inventory_slots s where s.pool_id = 'p';
create function pg_temp.slot(p_n int) returns uuid language sql as $$ select id from slot where n = p_n $$;
create function pg_temp.status(p_n int) returns text language sql
as $$ select status::text from public.inventory_slots where id = pg_temp.slot(p_n) $$;

-- By hand, for a slot without a holder.
select pgmq.send('intake_dlq', jsonb_build_object('pool_id', 'p', 'resource_id', pg_temp.slot(1), 'user_id', 'hand', 'reason', 'r'));
select is(tests.replay('hand'), 'replayed', 'a letter without a claim goes round as it was');
select is(
  (select q.message - 'replayed_from' from pgmq.q_intake_queue q),
  jsonb_build_object('pool_id', 'p', 'resource_id', pg_temp.slot(1), 'user_id', 'hand'), 'without what the dead letters added'
);
select is(pg_temp.status(1), 'RESERVED', 'and its slot is reserved for it');
select is((select locked_by from public.inventory_slots where id = pg_temp.slot(1)), 'hand', 'in its user''s name');
select is(public.reap_orphaned_slots(interval '0'), 0, 'so that the reaper leaves it alone');

-- By hand, for a slot that another user has got meanwhile.
insert into public.claims (claim_id, pool_id, slot_id, user_id) values (gen_random_uuid(), 'p', pg_temp.slot(2), 'owner');
update public.inventory_slots set status = 'RESERVED', locked_by = 'owner' where id = pg_temp.slot(2);
select pgmq.send('intake_dlq', jsonb_build_object('pool_id', 'p', 'resource_id', pg_temp.slot(2), 'user_id', 'other'));
select is(tests.replay('other'), 'claimed', 'where another has its slot, a new claim is made');
select is((tests.claim_of('p', 'other')).slot_id, pg_temp.slot(3), 'for another slot');
select is((tests.claim_of('p', 'owner')).state::text, 'queued', 'and the owner keeps his');

-- By hand, and already a ticket.
insert into public.claims (claim_id, pool_id, slot_id, user_id, state)
values (pg_temp.slot(1), 'p', pg_temp.slot(1), 'hand', 'committed');
select pgmq.send('intake_dlq', jsonb_build_object('pool_id', 'p', 'resource_id', pg_temp.slot(1), 'user_id', 'hand'));
select is(tests.replay('hand'), 'claim_is_committed', 'a letter whose slot is its own ticket is not replayed');

-- Letters of all shapes, in one call.
select tests.empty_queues();
create temp table shape (n int, letter jsonb, outcome text);
insert into shape values
  (1, '{"payload": null, "reason": "malformed: not an object"}', 'replayed'),
  (2, '{"payload": [1, 2]}', 'replayed'),
  (3, '{}', 'replayed'),
  (4, 'null', 'replayed'),
  (5, '"text"', 'replayed'),
  (6, null, 'replayed'),
  (7, '{"claim_id": 7, "resource_id": {}, "pool_id": [], "user_id": null}', 'replayed'),
  (8, jsonb_build_object('pool_id', 'p', 'resource_id', pg_temp.slot(2)), 'malformed'),
  (9, jsonb_build_object('pool_id', 'p', 'resource_id', pg_temp.slot(2), 'user_id', repeat('x', 201)), 'malformed'),
  (10, jsonb_build_object('resource_id', pg_temp.slot(2), 'user_id', 'u'), 'unknown_pool'),
  (11, jsonb_build_object('pool_id', 'p', 'claim_id', gen_random_uuid(), 'user_id', 'u'), 'replayed');
insert into pgmq.q_intake_dlq (msg_id, vt, message) overriding system value select -n, now(), letter from shape;
select results_eq(
  $$ select d.msg_id, d.outcome from public.replay_dead_letters((select array_agg(-n) from shape)::bigint[], 'olga') d order by d.msg_id desc $$,
  $$ select -n::bigint, outcome from shape order by n $$, 'letters of every shape get an answer'
);
select results_eq(
  $$ select d.msg_id from pgmq.q_intake_dlq d order by 1 desc $$, $$ values (-8::bigint), (-9), (-10) $$,
  'those that found no way stay'
);
select bag_eq(
  $$ select coalesce(q.message, '"sql null"') - 'replayed_from' from pgmq.q_intake_queue q where jsonb_typeof(q.message) = 'object' $$,
  $$ select letter - 'reason' from shape where n in (3, 7, 11) $$, 'objects go round as they were'
);
select bag_eq(
  $$ select q.message from pgmq.q_intake_queue q where jsonb_typeof(q.message) is distinct from 'object' $$,
  $$ values ('null'::jsonb), ('[1, 2]'), ('null'), ('"text"'), (null) $$, 'as does JSON that is not an object'
);
select is((select count(*)::int from audit.audit_logs), 14, 'each has its audit row');
select is((select count(*)::int from tests.take(100, 30)), 8, 'and the bridge can take them all');

-- Discard: for good, and the slot goes back on sale.
select public.claim_resource_and_queue('p', 'no_slot');
update public.inventory_slots set status = 'AVAILABLE' where id = pg_temp.slot(3);
delete from public.claims where slot_id = pg_temp.slot(3);
select public.claim_resource_and_queue('p', 'dropped');
select tests.kill('dropped');
create temp table before as select tests.state() as state, tests.letter_of('dropped') as letter;
select results_eq(
  $$ select d.outcome from before b cross join lateral public.discard_dead_letters(array[b.letter, 0], 'olga', 'why', true) d $$,
  $$ values ('not_found'), ('would_discard') $$, 'a dry run of a discard answers per id'
);
select is(tests.state(), (select state from before), 'and changes nothing');
select results_eq(
  $$ select d.outcome from before b cross join lateral public.discard_dead_letters(array[b.letter, b.letter], 'olga', 'double sale') d $$,
  array['ending'], 'a letter is discarded as soon as the ledger knows'
);
select is(public.finish_ends(array[(tests.claim_of('p', 'dropped')).claim_id], '{voided}'), 1, 'now it does');
select results_eq(
  $$ select (c).state::text, (c).end_reason from (select tests.claim_of('p', 'dropped') as c) x $$,
  $$ values ('discarded', 'double sale') $$, 'its claim ends with the reason'
);
select is(pg_temp.status(3), 'AVAILABLE', 'its slot is on sale again');
select results_eq(
  $$ select actor, action, reason, details ->> 'outcome' from audit.audit_logs order by id desc limit 1 $$,
  $$ values ('olga', 'dead_letter_discard', 'double sale', 'ending') $$, 'and the audit log knows'
);
select is((select count(*)::int from pgmq.a_intake_dlq a join before b on b.letter = a.msg_id), 1, 'its last form is kept');
select results_eq(
  $$ select d.outcome from before b cross join lateral public.discard_dead_letters(array[b.letter], 'olga') d $$,
  array['not_found'], 'a second discard finds nothing'
);
select bag_eq(
  $$ select d.outcome from public.discard_dead_letters('{-8,-9,-10}', 'olga') d $$, $$ values ('discarded'), ('discarded'), ('discarded') $$,
  'malformed letters can be discarded'
);
select is((tests.claim_of('p', 'owner')).state::text, 'queued', 'without touching the claim that has the slot they name');
select is(pg_temp.status(2), 'RESERVED', 'nor that slot');

select * from finish();
rollback;

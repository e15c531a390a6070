-- Committed messages that are not the usual claim: put there by hand, of ended claims, or saying too little.
begin;
select plan(24);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'h' from generate_series(1, 12);
select public.claim_resource_and_queue('h', u) from unnest(array['claim', 'ended', 'good']) u;
create temp table slot as
select s.id, row_number() over (order by s.sale_order) as n from public.inventory_slots s where s.pool_id = 'h' and s.status = 'AVAILABLE';
create function pg_temp.slot(p_n int) returns uuid language sql as $$ select id from slot where n = p_n $$;
create function pg_temp.status(p_n int) returns text language sql
as $$ select status::text from public.inventory_slots where id = pg_temp.slot(p_n) $$;
create function pg_temp.reserve(p_n int, p_user text) returns void language sql
as $$ update public.inventory_slots set status = 'RESERVED', locked_by = p_user, locked_at = now() where id = pg_temp.slot(p_n) $$;
create function pg_temp.send(p_n int, p_user text, p_more jsonb default '{}') returns bigint language sql
as $$ select public.intake_queue_send(
  jsonb_build_object('pool_id', 'h', 'resource_id', pg_temp.slot(p_n), 'user_id', p_user, 'state', 'queued') || p_more) $$;
create function pg_temp.message(p_user text) returns bigint language sql
as $$ select q.msg_id from pgmq.q_intake_queue q where q.message ->> 'user_id' = p_user order by 1 limit 1 $$;
-- Ends messages, given by their users, with one verdict.
create function pg_temp.finish(p_verdict text, variadic p_users text[]) returns text language sql
as $$
  select string_agg(f.outcome, ' ' order by f.msg_id)
  from (select array_agg(pg_temp.message(u)) as ids, array_agg(1) as cts from unnest(p_users) u) t
  cross join lateral public.bridge_finish(
    t.ids, t.cts, array_fill(p_verdict, array[cardinality(p_users)]), array_fill('r'::text, array[cardinality(p_users)]),
    array_fill(0, array[cardinality(p_users)])) f
$$;

select pg_temp.reserve(1, 'hand'), pg_temp.send(1, 'hand');
select count(*) from tests.take(100, 0);
select is(pg_temp.finish('committed', 'claim', 'hand'), 'committed committed', 'a claim and a message by hand end in one batch');
select is((tests.claim_of('h', 'claim')).state::text, 'committed', 'the claim is committed');
select results_eq(
  $$ select claim_id, slot_id, state::text from public.claims where user_id = 'hand' $$,
  $$ select pg_temp.slot(1), pg_temp.slot(1), 'committed' $$, 'and the message by hand has a claim, although another one ended with it'
);
select is(pg_temp.status(1), 'CONSUMED', 'its slot is consumed');

-- Its identity is its slot.
insert into public.claims (claim_id, pool_id, slot_id, user_id) values (pg_temp.slot(2), 'h', pg_temp.slot(2), 'again');
select pg_temp.reserve(2, 'again'), pg_temp.send(2, 'again');
select count(*) from tests.take(100, 0);
select is(pg_temp.finish('committed', 'again'), 'committed', 'a message by hand of a slot that has its claim by hand');
select is((tests.claim_of('h', 'again')).state::text, 'committed', 'ends that claim');
select is(pg_temp.status(2), 'CONSUMED', 'and its slot is consumed');

-- For a slot that was not reserved.
select pg_temp.send(3, 'unreserved');
select count(*) from tests.take(100, 0);
select is(pg_temp.finish('committed', 'unreserved'), 'committed', 'a message by hand for a slot on sale can be committed');
select results_eq(
  $$ select status::text, locked_by from public.inventory_slots where id = pg_temp.slot(3) $$, $$ values ('CONSUMED', 'unreserved') $$,
  'then the slot is off sale'
);

-- The claim has ended while the ledger was asked.
select intake.free_claims(array[(tests.claim_of('h', 'ended')).claim_id], 'released', 'changed my mind');
update pgmq.q_intake_queue set read_ct = 1;
select is(pg_temp.finish('committed', 'ended', 'good'), 'committed committed', 'the message of an ended claim does not stop the others');
select results_eq(
  $$ select user_id::text, state::text, end_reason from public.claims where user_id in ('ended', 'good') order by 1 $$,
  $$ values ('ended', 'released', 'changed my mind'), ('good', 'committed', null) $$, 'an ended claim stays ended'
);
select is(
  (select s.status::text from public.inventory_slots s where s.id = (tests.claim_of('h', 'ended')).slot_id), 'AVAILABLE',
  'and its slot stays free for the next buyer'
);

-- What only looks like a claim's id.
select pg_temp.reserve(4, 'odd'), pg_temp.send(4, 'odd', '{"claim_id": "zzzzzzzz-0000-4000-8000-000000000001"}');
select count(*) from tests.take(100, 0);
select is(pg_temp.finish('committed', 'odd'), 'committed', 'a claim_id that only looks like a uuid does not stop the batch');
select is((tests.claim_of('h', 'odd')).claim_id, pg_temp.slot(4), 'and the slot is the identity');

-- Too little for a claim.
select public.intake_queue_send(m) from unnest(array[
  '{}', '[]', 'null', '{"resource_id": "00000000-0000-4000-8000-000000000001"}', '{"claim_id": "00000000-0000-4000-8000-000000000001"}',
  '{"resource_id": "00000000-0000-4000-8000-000000000001", "pool_id": "h"}',
  '{"resource_id": "00000000-0000-4000-8000-000000000001", "pool_id": "h", "user_id": ""}'
]::jsonb[]) m;
create temp table little as select * from tests.take(100, 0);
select is(
  (select string_agg(distinct f.outcome, ' ') from (select array_agg(msg_id) as ids, array_agg(1) as cts from little) t
   cross join lateral public.bridge_finish(t.ids, t.cts, array_fill('committed'::text, array[7]), '{}', '{}') f),
  'committed', 'messages that say too little for a claim can be committed'
);
select is_empty($$ select from public.claims where slot_id = '00000000-0000-4000-8000-000000000001' $$, 'and make none');

-- A slot that another message or letter holds is not freed.
select pg_temp.reserve(5, 'twin'), pg_temp.send(5, 'twin'), pg_temp.send(5, 'other');
select pg_temp.reserve(6, 'waits'), pg_temp.send(6, 'waits');
select pgmq.send('intake_dlq', jsonb_build_object('pool_id', 'h', 'resource_id', pg_temp.slot(6)));
select pg_temp.reserve(7, 'alone'), pg_temp.send(7, 'alone');
select count(*) from tests.take(100, 0);
select is(pg_temp.finish('refused', 'twin', 'waits', 'alone'), 'refused refused refused', 'messages by hand are refused');
select is(pg_temp.status(5), 'RESERVED', 'a slot that another message holds stays reserved');
select is(pg_temp.status(6), 'RESERVED', 'as does one that a dead letter holds');
select is(pg_temp.status(7), 'AVAILABLE', 'one without a holder is on sale again');
select is(
  (select string_agg(d.outcome, ' ') from public.list_dead_letters(p_pool_id => 'h') l
   cross join lateral public.discard_dead_letters(array[l.msg_id], 'olga') d), 'discarded', 'once the letter is discarded'
);
select is(pg_temp.status(6), 'AVAILABLE', 'its slot is free, too');
select is(pg_temp.finish('refused', 'other'), 'refused', 'once the other message is refused');
select is(pg_temp.status(5), 'AVAILABLE', 'so is its slot');

select * from finish();
rollback;

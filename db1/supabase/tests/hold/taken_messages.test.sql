-- A hold runs out whatever its message does: a claim that a worker has taken is going to end, and holds its slot until then.
begin;
select plan(12);

select tests.empty_queues();
insert into public.engine_config (pool_id, hold_sec, validation_webhook_url) values
  ('direct', 60, null), ('validated', 60, 'https://example.com/validate');
insert into public.inventory_slots (pool_id)
select pool from (values ('direct'), ('validated')) p (pool), generate_series(1, 4);
select public.claim_resource_and_queue(p, u)
from unnest(array['direct', 'validated']) p, unnest(array['held', 'backing_off', 'dead']) u;
create temp table taken as select * from tests.take(100, 600);
select public.bridge_finish(array[msg_id], array[read_ct], '{retry}', '{425}', '{3600000}')
from taken where message ->> 'user_id' = 'backing_off';
select public.bridge_finish(array[msg_id], array[read_ct], '{dead_letter}', '{planted}', '{0}')
from taken where message ->> 'user_id' = 'dead';
update public.claims set hold_until = now() - interval '1 second' where pool_id in ('direct', 'validated');
create temp table before as select * from public.claims where pool_id in ('direct', 'validated');

select is(public.expire_holds(), 6, 'a hold runs out while its message is held, backs off, or is a dead letter');
select is_empty(
  $$ select from public.claims c join before b using (claim_id)
     where row(c.state, c.msg_id, c.hold_until, c.freed_at) is distinct from row(b.state, b.msg_id, b.hold_until, b.freed_at) $$,
  'the claims are what they were'
);
select results_eq(
  $$ select distinct end_as::text, end_reason, end_due from public.claims where pool_id in ('direct', 'validated') $$,
  $$ values ('expired', 'hold expired', now()) $$, 'and are going to end'
);
select results_eq(
  $$ select distinct g.ending from before b cross join lateral public.get_claim(b.claim_id) g $$, array[true],
  'which anybody who looks is told'
);
select is(
  (select count(*)::int from public.inventory_slots where pool_id in ('direct', 'validated') and status = 'RESERVED'), 6,
  'they hold their slots'
);
select is(public.expire_holds(), 0, 'a second run finds nothing');

-- What was validated has no hold any more.
select public.claim_resource_and_queue('validated', 'bob');
update public.claims set hold_until = now() - interval '1 second', state = 'validated'
where pool_id = 'validated' and user_id = 'bob';
create temp table validated as select tests.state() as state;
select is(public.expire_holds(), 0, 'a claim that was validated does not expire');
select is(tests.state(), (select state from validated), 'and keeps slot and message');

-- A slot that the ledger has sold to another must not go back on sale, hold or no hold.
select public.claim_resource_and_queue('direct', 'sold_elsewhere');
select public.bridge_finish(array[t.msg_id], array[t.read_ct], '{dead_letter}', '{ticket_conflict}', '{0}')
from tests.take(100, 600) t where t.message ->> 'user_id' = 'sold_elsewhere';
update public.claims set hold_until = now() - interval '1 second' where user_id = 'sold_elsewhere';
select is(public.expire_holds(), 1, 'a dead letter whose slot has another''s ticket is looked at');
select results_eq(
  $$ select state::text, hold_until, end_as from public.claims where user_id = 'sold_elsewhere' $$,
  $$ values ('dead_letter', null::timestamptz, null::public.claim_state) $$, 'and keeps the slot until a repair'
);
select is(public.expire_holds(), 0, 'without being looked at again');
select is(
  (select string_agg(distinct r.outcome, ' ') from public.replay_dead_letters(
     array(select d.msg_id from pgmq.q_intake_dlq d where d.message ->> 'user_id' = 'dead'), 'olga') r),
  'claim_is_ending', 'a letter that is ending is not replayed'
);

select * from finish();
rollback;

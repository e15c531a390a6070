-- A claim that the bridge each time handed back untried is not in the ledger: its hold runs out like any other.
begin;
select plan(30);

-- Each user is a way through the bridge: for each delivery how it ends, where "dies" is a worker that never finished it.
create temp table ways (user_id text primary key, ends text[], is_untried boolean);
insert into ways values
  ('metered', '{untried}', true),
  ('metered_often', '{untried,untried,untried}', true),
  ('told_twice', '{untried,untried+untried,untried}', true),
  ('down', '{outage}', false),
  ('failed', '{retry}', false),
  ('killed', '{dies}', false),
  ('down_then_metered', '{outage,untried,untried}', false),
  ('failed_then_metered', '{retry,untried,untried}', false),
  ('killed_then_metered', '{dies,untried,untried}', false),
  ('metered_then_down', '{untried,outage,untried}', false),
  ('metered_then_failed', '{untried,retry,untried}', false),
  ('metered_then_killed', '{untried,dies,untried}', false),
  -- Of the deliveries that are told, as many as there were; but one of them stands for another.
  ('told_too_often', '{dies,untried+untried,untried+untried}', false),
  ('took_it_back', '{untried+outage}', false),
  ('tried_after_all', '{retry+untried,untried}', false);

delete from pgmq.q_intake_queue;
insert into public.engine_config (pool_id, hold_sec) values ('throttled', 60);
insert into public.inventory_slots (pool_id) select 'throttled' from generate_series(1, 20);
select public.claim_resource_and_queue('throttled', user_id) from ways;

create function pg_temp.go() returns void language plpgsql as $$
begin
  for n in 1 .. 3 loop
    update pgmq.q_intake_queue set vt = clock_timestamp()
    where message ->> 'user_id' in (select user_id from ways where cardinality(ends) >= n);
    perform public.bridge_finish(array[t.msg_id], array[t.read_ct], array[v], '{r}', '{90000}')
    from tests.take(100, 600) t
    join ways w on w.user_id = t.message ->> 'user_id'
    cross join lateral unnest(string_to_array(w.ends[n], '+')) v
    where v <> 'dies';
    update pgmq.q_intake_queue set vt = clock_timestamp() + interval '1 hour';
  end loop;
end
$$;
select pg_temp.go();

select is(
  q.read_ct, cardinality(w.ends), format('%s: delivered %s times', w.user_id, cardinality(w.ends))
)
from ways w join pgmq.q_intake_queue q on q.message ->> 'user_id' = w.user_id order by w.user_id;

select is(public.expire_holds(), 0, 'no hold has run out yet');
update public.claims set hold_until = now() - interval '1 second' where pool_id = 'throttled';
create temp table held as
select c.claim_id, c.slot_id, c.user_id::text from public.claims c where c.pool_id = 'throttled';
select is(public.expire_holds(), (select count(*)::int from ways), 'all are due, hidden as their messages are');
select results_eq(
  $$ select user_id::text from public.claims where pool_id = 'throttled' and state = 'expired' order by 1 $$,
  $$ select user_id from ways where is_untried order by 1 $$,
  'those that were handed back untried each time expire, and none that a worker tried, or may have tried'
);
select results_eq(
  $$ select message ->> 'user_id' from pgmq.q_intake_queue order by 1 $$,
  $$ select user_id from ways where not is_untried order by 1 $$, 'their messages are withdrawn, and no others'
);
select bag_eq(
  $$ select s.status::text from public.inventory_slots s join held h on h.slot_id = s.id join ways w using (user_id)
     where w.is_untried $$,
  $$ values ('AVAILABLE'), ('AVAILABLE'), ('AVAILABLE') $$, 'their slots are on sale again'
);

-- The next delivery may try: with it the mark is void, whatever becomes of the worker.
select public.claim_resource_and_queue('throttled', 'taken_again');
update public.claims set hold_until = now() - interval '1 second' where user_id = 'taken_again';
create temp table again as select * from tests.take(1, 0);
select is(
  (select f.outcome from again a cross join lateral
     public.bridge_finish(array[a.msg_id], array[a.read_ct], '{untried}', '{metered}', '{0}') f),
  'untried', 'a delivery that is handed back untried says so'
);
select results_eq(
  $$ select q.message -> 'untried', q.message -> 'tried', q.message ->> 'last_error'
     from pgmq.q_intake_queue q join again a using (msg_id) $$,
  $$ select jsonb_build_array(a.msg_id, 1), null::jsonb, null from again a $$, 'it is remembered, not counted, and no error'
);
select results_eq(
  $$ select read_ct, attempts from tests.take(1, 0) $$, $$ values (2, 1) $$, 'the next delivery is a first attempt'
);
select is(public.expire_holds(), 1, 'it is due');
select is(
  (tests.claim_of('throttled', 'taken_again')).end_as::text, 'expired',
  'and from then on the ledger may have it, also when its lease has run out'
);

-- A mark is one message's own.
update public.claims set end_as = null where user_id = 'taken_again';
update pgmq.q_intake_queue q set read_ct = 1, message = jsonb_set(q.message, '{untried}', v.mark)
from again a, (values ('[0, 1]'::jsonb)) v (mark) where q.msg_id = a.msg_id;
select is(public.expire_holds(), 1, 'it is due again');
select is(
  (tests.claim_of('throttled', 'taken_again')).state::text, 'queued', 'the mark of another message counts for nothing'
);
select is(
  intake.original_of('{"pool_id": "p", "untried": [7, 1], "seen": 1, "tried": 0, "takeovers": 0}'), '{"pool_id": "p"}'::jsonb,
  'and a dead letter does not take it along when it is replayed'
);

-- Release goes by the same rule.
select public.claim_resource_and_queue('throttled', 'leaving');
select public.claim_resource_and_queue('throttled', 'too_late');
select count(*) from tests.take(100, 600) t
cross join lateral public.bridge_finish(
  array[t.msg_id], array[t.read_ct],
  array[case t.message ->> 'user_id' when 'leaving' then 'untried' else 'outage' end], '{r}', '{90000}'
);
create function pg_temp.release(p_user text) returns text language sql
as $$ select r.state from public.claims c cross join lateral public.release_own_claim(c.claim_id, p_user) r where c.user_id = p_user $$;
select is(pg_temp.release('leaving'), 'released', 'a buyer whose message was handed back untried may give the slot back');
select is(pg_temp.release('too_late'), 'queued', 'one whose message met an outage waits for the ledger');

select * from finish();
rollback;

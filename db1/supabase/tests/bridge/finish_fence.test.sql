-- The fence: a worker that lost its lease changes nothing, and a batch ends each message by its own verdict.
begin;
select plan(27);

create temp table taken as select * from tests.take(0, 0);

select tests.empty_queues();
insert into public.inventory_slots (pool_id) select 'b' from generate_series(1, 8);
select public.claim_resource_and_queue('b', u) from unnest(array['a', 'c', 'd', 'e', 'f', 'g', 'h']) u;
insert into taken select * from tests.take(100, 0);
select count(*) from tests.take(1, 30);

create temp table before as select tests.state() as state;
select is(tests.finish('a', 1, v, 'late', 0), 'lost_lease', 'the lease was taken over: too late to say ' || v)
from unnest(array['committed', 'refused', 'gone', 'retry', 'outage', 'untried', 'dead_letter', 'validated']) v;
select is(tests.finish('a', 3, 'committed'), 'lost_lease', 'nor can a worker use a lease that was never given');
select is(tests.state(), (select state from before), 'nothing has changed');
select results_eq(
  $$ select msg_id, outcome from public.bridge_finish('{-1}', '{1}', '{committed}', '{null}', '{0}') $$,
  $$ values (-1::bigint, 'lost_lease') $$, 'a message that never was is a lost lease'
);
select is_empty(
  $$ select * from public.bridge_finish('{}', '{}', '{}', '{}', '{}') $$, 'finishing nothing answers nothing'
);
select throws_ok(
  format($$ select tests.finish('c', 1, %L) $$, v), 'SL001', null, coalesce(v, 'null') || ' is not a verdict'
)
from unnest(array['done', '', 'lost_lease', null]) v;
select is(tests.state(), (select state from before), 'a finish with an unknown verdict changes nothing');

create temp table outcomes as
select f.* from (
  select array_agg(t.msg_id order by t.msg_id) as ids, array_agg(1 order by t.msg_id) as cts from taken t
) t
cross join lateral public.bridge_finish(
  t.ids, t.cts, '{committed,committed,refused,gone,retry,outage,dead_letter}',
  array[null, null, 'no', 'gone', 'failed', 'down', 'never'], '{0,0,0,0,9000,9000,0}'
) f;
select results_eq(
  $$ select t.message ->> 'user_id', o.outcome from outcomes o join taken t on t.msg_id = o.msg_id order by 1 $$,
  $$ values ('a', 'lost_lease'), ('c', 'committed'), ('d', 'refused'), ('e', 'gone'), ('f', 'retry'), ('g', 'outage'),
    ('h', 'dead_letter') $$,
  'in a mixed batch each message ends by its own verdict'
);
select results_eq(
  $$ select c.user_id::text, c.state::text from public.claims c where c.pool_id = 'b' order by 1 $$,
  $$ values ('a', 'queued'), ('c', 'committed'), ('d', 'refused'), ('e', 'queued'), ('f', 'queued'), ('g', 'queued'),
    ('h', 'dead_letter') $$,
  'and each claim by its message'
);
select is(tests.slot_of(u), s, format('the slot of %s is %s', u, s))
from (values ('a', 'RESERVED'), ('c', 'CONSUMED'), ('d', 'AVAILABLE'), ('f', 'RESERVED'), ('h', 'RESERVED')) v (u, s);
select results_eq(
  $$ select q.message ->> 'user_id' from pgmq.q_intake_queue q order by 1 $$, array['a', 'f', 'g'],
  'what is not at its end is still on the queue'
);
update before set state = tests.state();
select bag_eq(
  $$ select f.outcome, count(*) from outcomes o
     cross join lateral public.bridge_finish(array[o.msg_id], '{1}', '{committed}', '{null}', '{0}') f
     where o.outcome not in ('retry', 'outage') group by 1 $$,
  $$ values ('lost_lease', 5::bigint) $$, 'a second finish of what has ended is a lost lease'
);
select is(tests.state(), (select state from before), 'and changes nothing');

select * from finish();
rollback;

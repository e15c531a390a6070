-- A group of a pool without payment is released and expires as a whole; what became a ticket stays one.
begin;
select plan(19);

select tests.empty_queues();
select public.pool_create('whole', 12, '{"max_quantity": 3, "hold_sec": 60}', 'olga');
select tests.ask('whole', 'ann', 3), tests.ask('whole', 'bob', 3), tests.ask('whole', 'cid', 3), tests.ask('whole', 'dan', 3);
create function pg_temp.states(p_user text) returns text
language sql as $$
  select string_agg(case when end_as is null then state::text else 'ending' end, ' ' order by state, end_as)
  from public.claims where pool_id = 'whole' and user_id = p_user;
$$;
create temp table one as
select distinct on (user_id) user_id::text, claim_id from public.claims where pool_id = 'whole' and claim_id <> order_id
order by user_id, claim_id desc;

-- No worker had it.
select is((select r.state from one o, public.release_own_claim(o.claim_id, 'ann') r where o.user_id = 'ann'), 'released', 'one is released');
select is(pg_temp.states('ann'), 'released released released', 'and all of its group');
create temp table before as select tests.state() as state;
select is((select r.state from one o, public.release_own_claim(o.claim_id, 'ann') r where o.user_id = 'ann'), 'released', 'a second call is answered');
select is(tests.state(), (select state from before), 'and changes nothing');
select is(
  (select count(*) from public.inventory_slots where pool_id = 'whole' and status = 'AVAILABLE'), 3::bigint, 'all slots are on sale'
);

-- A worker has one of them.
create temp table taken as
select q.msg_id, 1 as read_ct from pgmq.q_intake_queue q
where q.message ->> 'user_id' in ('bob', 'cid') and q.message ->> 'claim_id' in (select claim_id::text from one);
update pgmq.q_intake_queue q set read_ct = 1, vt = clock_timestamp() + interval '1 minute' from taken t where t.msg_id = q.msg_id;
select is(
  (select r.ending from public.claims c, public.release_own_claim(c.claim_id, 'bob') r
   where c.pool_id = 'whole' and c.user_id = 'bob' and c.claim_id = c.order_id), false, 'what no worker has'
);
select is(pg_temp.states('bob'), 'ending released released', 'ends at once; what one has ends when the ledger knows');
select is(
  (select array_agg(e.claim_id) from public.take_ends(9, 60) e), (select array_agg(claim_id) from one where user_id = 'bob'),
  'which is asked for that one'
);

-- One is a ticket.
select public.bridge_finish(array[t.msg_id], '{1}', '{committed}', '{null}', '{0}')
from taken t join pgmq.q_intake_queue q on q.msg_id = t.msg_id where q.message ->> 'user_id' = 'cid';
select is(pg_temp.states('cid'), 'queued queued committed', 'one of three is a ticket');
select tests.refuses(
  $$ select public.release_own_claim(c.claim_id, 'cid') from public.claims c
     where c.pool_id = 'whole' and c.user_id = 'cid' and c.claim_id = c.order_id $$, 'SL010', 'a group with a ticket'
);
-- One is a dead letter.
select public.intake_route_to_dlq(q.msg_id, q.message, 1) from pgmq.q_intake_queue q
where q.message ->> 'claim_id' = (select claim_id::text from one where user_id = 'dan');
select tests.refuses(
  $$ select public.release_own_claim(c.claim_id, 'dan') from public.claims c
     where c.pool_id = 'whole' and c.user_id = 'dan' and c.claim_id = c.order_id $$, 'SL013', 'a group with a dead letter'
);

-- The hold is over: all of it at once, however small the part.
update public.claims set hold_until = now() - interval '1 second' where pool_id = 'whole' and user_id in ('cid', 'dan') and hold_until is not null;
select is(public.expire_holds(1), 1, 'a part of one');
select is(
  (select count(*) from (
     select c.order_id from public.claims c where c.pool_id = 'whole' and c.user_id in ('cid', 'dan') and c.hold_until is not null
     group by 1 having count(distinct c.freed_at is null and c.end_as is null) > 1
   ) half), 0::bigint, 'takes no half of a group'
);
select public.expire_holds();
select is(public.expire_holds(), 0, 'and the rest leaves nothing');
select is(pg_temp.states('cid'), 'committed expired expired', 'the ticket stays, the others expire');
select is(pg_temp.states('dan'), 'ending expired expired', 'the dead letter ends when the ledger knows');
-- A validation hook may refuse one seat, and an operator discard one: the others stay.
select public.finish_ends(array[claim_id], '{voided}') from one where user_id in ('bob', 'dan');
select is(pg_temp.states('bob'), 'released released released', 'in the end all of it');

select * from finish();
rollback;

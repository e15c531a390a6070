-- What the bridge suite needs on DB1 beside setup.sql: messages to carry, and a look at what a drain left behind.

-- Promise: p_messages claims on a pool of as many slots, each with its message on the intake queue; the other
-- systems' queues are empty. Second call: the same again, with other buyers. Locks: all these tables, exclusively.
create function bench.fill_messages(p_messages int)
returns void
language plpgsql
set search_path = ''
as $$
declare
  c_batch constant int := 1000;
  v_left int := p_messages;
begin
  truncate graphile_worker._private_jobs, pgboss.job;
  perform bench.fill_ours(p_messages);
  while v_left > 0 loop
    v_left := v_left - bench.claim_many(least(v_left, c_batch), false);
  end loop;
end
$$;

-- Promise: what the messages on the intake queue say, in their order. Second call: the same. Locks: none.
create function bench.payloads()
returns setof jsonb
language sql
set search_path = ''
as $$
  select q.message from pgmq.q_intake_queue q order by q.msg_id;
$$;

-- Promise: the intake queue is empty: its messages stand on another system's queue now. Second call: the same.
-- Locks: the queue, exclusively.
create function bench.forget_messages()
returns void
language sql
set search_path = ''
as $$
  truncate pgmq.q_intake_queue;
$$;

-- Promise: what bridge_finish does for tickets, for a queue that knows nothing of claims: claims committed, slots
-- CONSUMED. Second call: changes nothing. Locks: claims → slots.
create function bench.end_claims(
  p_claim_ids uuid[],
  p_slot_ids uuid[]
)
returns void
language plpgsql
set search_path = ''
as $$
begin
  update public.claims c
  set state = 'committed', msg_id = null, hold_until = null
  where c.claim_id = any (p_claim_ids) and c.freed_at is null;
  update public.inventory_slots s
  set status = 'CONSUMED'
  where s.id = any (p_slot_ids) and s.status = 'RESERVED';
end
$$;

-- Promise: whether graphile-worker still has jobs; its workers do not tell when a batch of completions has been
-- written. Second call: the same or false. Locks: none.
create function bench.has_graphile_jobs()
returns boolean
language plpgsql
set search_path = ''
as $$
begin
  return exists (select from graphile_worker._private_jobs);
end
$$;

-- Promise: one text that tells every claim with its slot and its buyer; equal to bench.tickets_digest() of DB2 when
-- each has its ticket and nobody else has one. Second call: the same. Locks: none.
create function bench.claims_digest()
returns text
language sql
set search_path = ''
as $$
  select count(*) || ' ' || md5(string_agg(c.claim_id || ' ' || c.slot_id || ' ' || c.user_id, ',' order by c.claim_id))
  from public.claims c;
$$;

-- Promise: how many messages, claims and slots are not where a finished drain leaves them. Second call: the same.
-- Locks: none.
create function bench.unfinished()
returns bigint
language sql
set search_path = ''
as $$
  select (select count(*) from pgmq.q_intake_queue) + (select count(*) from pgmq.q_intake_dlq)
    + (select count(*) from public.claims c where c.state <> 'committed')
    + (select count(*) from public.inventory_slots s where s.status <> 'CONSUMED');
$$;

-- Promise: the dead rows in the tables of a schema, as the statistics know them. Second call: the same or more.
-- Locks: none.
create function bench.dead_tuples(p_schema text)
returns bigint
language sql
set search_path = ''
as $$
  select coalesce(sum(t.n_dead_tup), 0)::bigint from pg_catalog.pg_stat_all_tables t where t.schemaname = p_schema;
$$;

-- Promise: how many other clients are connected: a session tells its last statistics when it ends.
-- Second call: the same or fewer. Locks: none.
create function bench.other_sessions()
returns bigint
language sql
set search_path = ''
as $$
  select count(*) from pg_catalog.pg_stat_activity a
  where a.backend_type = 'client backend' and a.pid <> pg_catalog.pg_backend_pid();
$$;

-- Promise: what this session has not yet told the statistics is told when the statement ends; a TRUNCATE told late
-- would wipe out the dead rows of the drain. Second call: nothing left to tell. Locks: none.
create function bench.tell_statistics()
returns void
language sql
set search_path = ''
as $$
  select pg_catalog.pg_stat_force_next_flush();
$$;

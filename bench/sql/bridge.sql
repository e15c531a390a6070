-- What the bridge suite needs on DB1 beside claims.sql: messages to carry, and an end for the claims of other queues.

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

-- BRIDGE: how messages leave the queue. A worker takes a batch under a lease, decides, and finishes it in one call.
-- Every finish names (msg_id, read_ct): a worker whose lease was taken over touches nothing. read_ct is never lowered;
-- attempts = read_ct - forgiven, where an outage forgives the delivery that met it.
-- A message whose every delivery so far was handed back untried says so: untried is [msg_id, read_ct]. See bridge_finish.

-- Promise: the deliveries of a message that an outage has forgiven. Clamped, because a message is anybody's JSON, and a
-- number that is no int would stop every take. Second call: the same. Locks: none.
create function intake.forgiven(p_message jsonb) returns int
language sql immutable parallel safe set search_path = '' as $$
  select case
    when jsonb_typeof(p_message -> 'forgiven') = 'number'
      then least(greatest((p_message ->> 'forgiven')::numeric, 0), 1000000000)::int
    else 0
  end;
$$;

-- How many commits a pool with a ceiling may make now: a bucket that fills with time. Lost in a crash, and then
-- full again: a second's worth too many once.
create unlogged table intake.pool_allowances (
  pool_id text primary key,
  tokens double precision not null,
  filled_at timestamptz not null
);

-- Promise: how many of p_wanted commits the pool's commit_rate_per_sec allows now, for all workers together; a pool
-- without one allows all. What is allowed is spent. Second call: what has come in since. Locks: the pool's bucket.
-- Definer, as all that follow: service_role needs no rights to queue and tables.
create function public.bridge_allow(p_pool_id text, p_wanted int) returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_rate int;
  v_tokens double precision;
  v_allowed int;
begin
  select c.commit_rate_per_sec into v_rate from public.engine_config c where c.pool_id = p_pool_id;
  if v_rate is null then
    return p_wanted;
  end if;
  insert into intake.pool_allowances as a (pool_id, tokens, filled_at)
  values (p_pool_id, v_rate, clock_timestamp())
  on conflict (pool_id) do update set
    tokens = least(v_rate, a.tokens + v_rate * greatest(0, extract(epoch from clock_timestamp() - a.filled_at))),
    filled_at = clock_timestamp()
  returning a.tokens into v_tokens;
  v_allowed := least(p_wanted, floor(v_tokens));
  update intake.pool_allowances a set tokens = a.tokens - v_allowed where a.pool_id = p_pool_id;
  return v_allowed;
end
$$;

-- Promise: the configuration of those of the pools that exist; a pool with slots and no row has the defaults. A pool with
-- hooks gets the hosts that operators allow now. Second call: the same. Locks: none.
create function public.bridge_config(p_pool_ids text[])
returns table (
  pool_id text, max_retries int, visibility_timeout_sec int, validation_webhook_url text, commit_rpc_name text,
  commit_webhook_url text, commit_rate_per_sec int, allowed_hosts text[]
)
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
begin
  return query
  select p.pool_id, coalesce(c.max_retries, d.max_retries),
    coalesce(c.visibility_timeout_sec, d.visibility_timeout_sec), c.validation_webhook_url,
    coalesce(c.commit_rpc_name, d.commit_rpc_name), c.commit_webhook_url, c.commit_rate_per_sec,
    case
      when c.validation_webhook_url is not null or c.commit_webhook_url is not null
        then array(select a.host from intake.hook_allowed_hosts a)
      else '{}'
    end
  from (select distinct unnest(p_pool_ids) as pool_id) p
  cross join intake.default_rules d
  left join public.engine_config c on c.pool_id = p.pool_id
  where c.pool_id is not null or exists (select from intake.pool_totals t where t.pool_id = p.pool_id);
end
$$;

-- Promise: the key of the advisory lock between those who take a pool's messages and whoever lets the pool begin to
-- validate; the same for the same pool. Pools share 256 keys: each key a take holds is a place in the server's lock table.
-- Second call: same value. Locks: none.
create function intake.validation_lock_key(p_pool_id text) returns bigint
language sql immutable parallel safe set search_path = '' as $$
  select pg_catalog.hashtextextended('sluice validation', 0) + (pg_catalog.hashtext(p_pool_id) & 255);
$$;

-- Promise: up to p_batch_size messages that nobody holds, oldest first, none of a paused pool, under a lease of
-- p_lease_sec seconds or the pool's visibility_timeout_sec, whichever is longer. attempts counts this delivery, and
-- whatever a message says, only earlier ones can have been forgiven; claim_state is null for a message put there by hand,
-- ending where the claim is going to end, and mismatch where it is of another slot, pool or user than the message tells. None of a pool that begins to
-- validate in a transaction that has not ended: whoever asks bridge_config afterwards is told the rules that hold for what
-- it took, or those messages count as validated (intake.validation_begins). Second call: other messages, until the lease
-- has run out. Locks: the messages, until commit, and the pools' validation_lock_key, shared; it waits for neither.
create function public.bridge_take(p_batch_size int, p_lease_sec int, p_paused text[] default '{}')
returns table (msg_id bigint, read_ct int, attempts int, message jsonb, claim_state text)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_msg_ids bigint[];
  v_changing text[];
begin
  loop
    with waiting as materialized (
      select q.msg_id, q.message ->> 'pool_id' as pool_id
      from pgmq.q_intake_queue q
      where q.vt <= clock_timestamp()
        and (p_paused = '{}' or q.message ->> 'pool_id' is null or q.message ->> 'pool_id' <> all (p_paused))
      order by q.msg_id
      limit p_batch_size
      for update skip locked
    )
    select array(select w.msg_id from waiting w), array(
      select p.pool_id from (select distinct w.pool_id from waiting w) p
      where not pg_catalog.pg_try_advisory_xact_lock_shared(intake.validation_lock_key(p.pool_id))
    )
    into v_msg_ids, v_changing;
    exit when v_changing = '{}';
    p_paused := p_paused || v_changing;
  end loop;
  return query
  with taken as (
    update pgmq.q_intake_queue q
    set read_ct = q.read_ct + 1,
      vt = clock_timestamp() + make_interval(secs => greatest(p_lease_sec, (
        select c.visibility_timeout_sec from public.engine_config c where c.pool_id = q.message ->> 'pool_id'
      )))
    where q.msg_id = any (v_msg_ids)
    returning q.msg_id, q.read_ct, q.message
  )
  -- Calls cost more than the rest of the row: forgiven is asked only where there is something to ask, and the test of
  -- a uuid is written out (intake.uuid_or_null takes 6.6 µs, this 1.3 µs).
  select t.msg_id, t.read_ct,
    t.read_ct - case when t.message ? 'forgiven' then least(intake.forgiven(t.message), t.read_ct - 1) else 0 end,
    t.message, (
      select case
        when c.slot_id::text = lower(t.message ->> 'resource_id') and c.pool_id = t.message ->> 'pool_id'
          and c.user_id = t.message ->> 'user_id' then case when c.end_as is null then c.state::text else 'ending' end
        else 'mismatch'
      end
      from public.claims c
      where c.claim_id = case
        when t.message ->> 'claim_id' like '________-____-____-____-____________'
          and length(replace(t.message ->> 'claim_id', '-', '')) = 32
          and t.message ->> 'claim_id' !~ '[^0-9a-fA-F-]' then (t.message ->> 'claim_id')::uuid
      end
    )
  from taken t
  order by t.msg_id;
end
$$;

-- Promise: the leases that are still held last p_lease_sec from now, or longer where they did before. Returns the
-- ids of those; the others are lost. A message that its own worker has handed back counts as held until somebody else
-- takes it: workers stop extending before they finish. Second call: pushes again. Locks: the messages.
create function public.bridge_extend(p_msg_ids bigint[], p_read_cts int[], p_lease_sec int) returns setof bigint
language sql security definer set search_path = '' as $$
  update pgmq.q_intake_queue q
  set vt = greatest(q.vt, clock_timestamp() + make_interval(secs => p_lease_sec))
  from unnest(p_msg_ids, p_read_cts) as t (msg_id, read_ct)
  where q.msg_id = t.msg_id and q.read_ct = t.read_ct
  returning q.msg_id;
$$;

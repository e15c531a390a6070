-- LEDGER, part 1: tickets. DB2 never faces the internet; its API is these functions.

-- Only the global form closes new functions to PUBLIC.
alter default privileges revoke execute on functions from public;

-- A committed claim. One row a slot for ever; claim_id says whose. A ticket that came without a claim_id
-- has its slot's id there.
create table public.confirmed_tickets (
  resource_id uuid primary key,
  pool_id text not null,
  user_id text not null,
  confirmed_at timestamptz not null default now(),
  claim_id uuid not null,
  constraint one_ticket_per_claim unique (claim_id),
  constraint ticket_names_its_pool check (length(pool_id) between 1 and 200),
  constraint ticket_names_its_user check (length(user_id) between 1 and 200)
);

create index tickets_by_user on public.confirmed_tickets (user_id);

-- Promise: a ticket for each payload {resource_id, pool_id, user_id, claim_id?} of the array, or what stands in
-- its way: committed, already (this claim has its ticket), conflict (the slot or the claim has another ticket).
-- ordinal counts the payloads from 1. A payload that is no ticket (a field missing, no uuid) raises the table's
-- own error and nothing is written. Without a claim_id the same user counts as already, another as conflict.
-- Second call: already. Locks: tickets in the order of their slots, so that two batches do not deadlock.
create function public.finalize_batch(p_payloads jsonb)
returns table (ordinal int, resource_id uuid, claim_id uuid, outcome text)
language plpgsql set search_path = '' as $$
declare
  v_resource_ids uuid[];
  v_pool_ids text[];
  v_user_ids text[];
  v_claim_ids uuid[];
  v_committed uuid[];
  v_committed_claims uuid[];
begin
  select array_agg(p.resource_id order by p.ordinal), array_agg(p.pool_id order by p.ordinal),
    array_agg(p.user_id order by p.ordinal), array_agg(p.claim_id order by p.ordinal)
  into v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids
  from rows from (
    jsonb_to_recordset(p_payloads) as (resource_id uuid, pool_id text, user_id text, claim_id uuid)
  ) with ordinality as p (resource_id, pool_id, user_id, claim_id, ordinal);
  -- Nearly always nothing stands in the way, and a plain insert costs a third less than one that looks first.
  begin
    insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
    select i.resource_id, i.pool_id, i.user_id, coalesce(i.claim_id, i.resource_id)
    from unnest(v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids) as i (resource_id, pool_id, user_id, claim_id)
    order by i.resource_id;
    return query
    select p.ordinal::int, p.resource_id, p.claim_id, 'committed'
    from unnest(v_resource_ids, v_claim_ids) with ordinality as p (resource_id, claim_id, ordinal);
    return;
  exception when unique_violation then
    null;
  end;
  with inserted as (
    insert into public.confirmed_tickets as t (resource_id, pool_id, user_id, claim_id)
    select i.resource_id, i.pool_id, i.user_id, coalesce(i.claim_id, i.resource_id)
    from unnest(v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids) as i (resource_id, pool_id, user_id, claim_id)
    order by i.resource_id
    on conflict do nothing
    returning t.resource_id, t.claim_id
  )
  select array_agg(i.resource_id), array_agg(i.claim_id) into v_committed, v_committed_claims from inserted i;
  -- A statement of its own: it sees the tickets that others committed while the insert waited for them.
  return query
  select p.ordinal::int, p.resource_id, p.claim_id,
    case
      when t.user_id <> p.user_id or t.pool_id <> p.pool_id
        or t.claim_id <> coalesce(p.claim_id, t.claim_id) or t.claim_id is null then 'conflict'
      when c.resource_id is not null and row_number() over (
        partition by p.resource_id, coalesce(p.claim_id, p.resource_id), p.user_id, p.pool_id order by p.ordinal
      ) = 1 then 'committed'
      else 'already'
    end
  from unnest(v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids)
    with ordinality as p (resource_id, pool_id, user_id, claim_id, ordinal)
  left join unnest(v_committed, v_committed_claims) as c (resource_id, claim_id)
    on c.resource_id = p.resource_id and c.claim_id = coalesce(p.claim_id, p.resource_id)
  -- One look a ticket by its key, however large the ledger has grown since the plan was made.
  left join lateral (
    select k.* from public.confirmed_tickets k where k.resource_id = p.resource_id limit 1
  ) t on true;
end
$$;

-- Promise: which of the payloads have a ticket already (already) or another's in their way (conflict), as finalize_batch
-- would say, without writing one; the others have no row. Second call: the same. Locks: none.
create function public.tickets_of(p_payloads jsonb) returns table (ordinal int, outcome text)
language sql stable set search_path = '' as $$
  select p.ordinal::int, case
      when t.user_id = p.user_id and t.pool_id = p.pool_id and t.claim_id = coalesce(p.claim_id, t.claim_id) then 'already'
      else 'conflict'
    end
  from rows from (
    jsonb_to_recordset(p_payloads) as (resource_id uuid, pool_id text, user_id text, claim_id uuid)
  ) with ordinality as p (resource_id, pool_id, user_id, claim_id, ordinal)
  join public.confirmed_tickets t on t.resource_id = p.resource_id;
$$;

-- Promise: the claim in the payload has its ticket. Raises SL020 when the slot or the claim has another one:
-- never a silent "nothing to do" for somebody else's seat. Second call: no error, no second row.
-- Locks: the ticket.
create function public.finalize_transaction(p_payload jsonb) returns void
language plpgsql set search_path = '' as $$
begin
  if (select b.outcome from public.finalize_batch(jsonb_build_array(p_payload)) b) = 'conflict' then
    raise exception 'slot % has a ticket of another claim', p_payload ->> 'resource_id'
      using errcode = 'SL020', hint = 'compare both databases with "sluice reconcile"';
  end if;
end
$$;

-- Promise: true when this database has the ledger's functions. Second call: the same. Locks: none.
create function public.ledger_ready() returns boolean
language sql stable set search_path = '' as $$
  select true;
$$;

-- A buyer sees its own tickets, live where Supabase Realtime is; only service_role writes.
alter table public.confirmed_tickets enable row level security;

create policy own_tickets on public.confirmed_tickets
  for select to authenticated
  using ((select auth.uid())::text = user_id);

do $$
begin
  if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
    alter publication supabase_realtime add table public.confirmed_tickets;
  end if;
end
$$;

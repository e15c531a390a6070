-- LEDGER, part 1: tickets. DB2 never faces the internet; its API is these functions.

-- Only the global form closes new functions to PUBLIC.
alter default privileges revoke execute on functions from public;

-- The real pg_cron, where the server offers it for this database, as Supabase does: its jobs do what workers would. Nothing here
-- needs it, so a server that has none, or does not let this role create it, fails nothing.
do $$
begin
  if pg_catalog.to_regnamespace('cron') is null and exists (
    select from pg_catalog.pg_available_extensions e where e.name = 'pg_cron' and e.comment not like '%stand-in%'
  ) then
    create extension pg_cron;
  end if;
exception when others then
  raise notice 'without pg_cron: %', sqlerrm;
end
$$;

-- What stood here before: its rights are left as they are. The last migration looks it up, and drops this.
create table public.stood_before as
select 'pg_catalog.pg_class'::regclass as catalog, c.oid as object
from pg_catalog.pg_class c
where c.relnamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('public', 'webhook', 'calls', 'audit'))
  -- These are ours from now on (`sluice migrate --adopt`).
  and c.oid not in (
    select pg_catalog.to_regclass(t)::oid
    from unnest(
      '{public.webhook_events,public.webhook_side_effects,public.credit_ledger,public.calls,audit.audit_logs}'::text[]
    ) t
    where pg_catalog.to_regclass(t) is not null
  )
union all
select 'pg_catalog.pg_proc', p.oid
from pg_catalog.pg_proc p
where p.pronamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('public', 'webhook', 'calls', 'audit'))
union all
select 'pg_catalog.pg_namespace', n.oid from pg_catalog.pg_namespace n;

-- Promise: the answer of this transaction does not reach the client before the cell has all that it tells of. An answer that
-- writes nothing waits for no standby at commit, and a failover could take it back; this writes a record that says nothing, so
-- the commit waits as that of a change does. Only where commits are to wait: sluice.ack is quorum, or is not set while the
-- server has standbys to wait for. On a standby it raises. A record and no transaction id alone: Postgres does not wait for a
-- transaction that wrote no log. Second call: another record. Locks: none.
create function public.answer_in_cell() returns void
language plpgsql set search_path = '' as $$
declare
  v_ack constant text := current_setting('sluice.ack', true);
begin
  if v_ack = 'quorum' or coalesce(v_ack, '') = '' and current_setting('synchronous_standby_names') <> '' then
    perform pg_catalog.pg_logical_emit_message(true, 'sluice', '');
  end if;
end
$$;

-- A committed claim. One row a slot, until the ticket is voided; claim_id says whose. A ticket that came without a claim_id
-- has its slot's id there. order_id joins the tickets that were claimed together, and is null for one that was claimed alone
-- and without a payment.
create table public.confirmed_tickets (
  resource_id uuid primary key,
  pool_id text not null,
  user_id text not null,
  confirmed_at timestamptz not null default now(),
  claim_id uuid not null,
  verified boolean not null default true,
  order_id uuid,
  constraint one_ticket_per_claim unique (claim_id),
  constraint ticket_names_its_pool check (length(pool_id) between 1 and 200),
  constraint ticket_names_its_user check (length(user_id) between 1 and 200)
);

create index tickets_by_user on public.confirmed_tickets (user_id);
create index tickets_by_order on public.confirmed_tickets (order_id) where order_id is not null;

-- Promise: a ticket that names no claim has its slot's id for one, so that `insert into confirmed_tickets (resource_id, pool_id,
-- user_id)` is a ticket, of a pool's own commit function too. Second call: the same. Locks: none.
create function public.name_ticket() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.claim_id := new.resource_id;
  return new;
end
$$;

create trigger tickets_name_a_claim
  before insert on public.confirmed_tickets
  for each row when (new.claim_id is null) execute function public.name_ticket();

comment on column public.confirmed_tickets.verified is
  'The user id was proven when the slot was claimed. An unverified user of the same name is another user, and its tickets are not shown to this one.';

-- A claim that can never become a ticket again: what keeps a late worker from writing one for a slot that is another buyer's
-- by now. It ended in the intake after a worker had taken it, or it was voided (outbox_id names the row of claim_outbox that
-- asked for it). confirmed_at is when it became the ticket that it was; null: it never was one. Insert only.
create table public.voided_tickets (
  claim_id uuid primary key,
  resource_id uuid not null,
  pool_id text not null,
  user_id text not null,
  confirmed_at timestamptz,
  voided_at timestamptz not null default now(),
  cause text not null,
  verified boolean not null default true,
  order_id uuid,
  outbox_id text,
  constraint void_names_its_cause check (length(cause) between 1 and 200)
);

create index voided_tickets_by_user on public.voided_tickets (user_id);
create index voided_tickets_by_order on public.voided_tickets (order_id) where order_id is not null;

-- Claims that were on their way when their user was erased (20260224100017_personal_data.sql), with the name that stands for the
-- user now. A worker may have such a claim in its hands, under the old name: its ticket gets this one.
create table public.erased_claims (
  claim_id uuid primary key,
  replacement text not null
);

-- Promise: the users of these claims, in their order, with the replacement of each whose user was erased meanwhile. Second call:
-- the same. Locks: none.
create function public.users_now(p_claim_ids uuid[], p_user_ids text[]) returns text[]
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
begin
  if not exists (select from public.erased_claims e where e.claim_id = any (p_claim_ids)) then
    return p_user_ids;
  end if;
  return array(
    select coalesce(e.replacement, u.user_id)
    from unnest(p_claim_ids, p_user_ids) with ordinality u (claim_id, user_id, ordinal)
    left join public.erased_claims e on e.claim_id = u.claim_id
    order by u.ordinal
  );
end
$$;

-- PostgREST lets every signed-in user ask for the planner's estimate of a query (Prefer: count=planned). What ANALYZE keeps of
-- these columns would tell how many tickets another user has, or a pool has sold. Without it all values are estimated alike.
-- Every query by one of them has an index that the planner takes anyway.
alter table public.confirmed_tickets
  alter user_id set statistics 0, alter pool_id set statistics 0, alter confirmed_at set statistics 0,
  alter verified set statistics 0, alter order_id set statistics 0;
alter table public.voided_tickets
  alter user_id set statistics 0, alter pool_id set statistics 0, alter resource_id set statistics 0,
  alter confirmed_at set statistics 0, alter voided_at set statistics 0, alter cause set statistics 0,
  alter verified set statistics 0, alter order_id set statistics 0, alter outbox_id set statistics 0;

-- Trigger. Promise: a ticket goes only where its claim has a tombstone: else the delete is refused. A placeholder (place_claims) was
-- never a ticket. Second call: the same. Locks: none.
create function public.require_tombstones() returns trigger
language plpgsql set search_path = '' as $$
declare
  v_claim_id uuid := (
    select g.claim_id from gone g
    where (g.resource_id, g.user_id) is distinct from (g.claim_id, '-')
      and not exists (select from public.voided_tickets v where v.claim_id = g.claim_id)
    limit 1
  );
begin
  if v_claim_id is not null then
    raise exception 'the ticket of claim % has no tombstone', v_claim_id
      using errcode = 'restrict_violation', hint = 'a ticket ends by request_void, which frees its slot too';
  end if;
  return null;
end
$$;

create trigger tickets_leave_a_tombstone
  after delete on public.confirmed_tickets
  referencing old table as gone for each statement execute function public.require_tombstones();

-- Promise: raises SL015. What looks for tickets and tombstones after it has waited for others must see what they committed;
-- at another level than read committed it sees the database as it was when the transaction began.
-- Second call: raises again. Locks: none.
create function public.refuse_isolation() returns void
language plpgsql set search_path = '' as $$
begin
  raise exception 'this transaction is %, and tickets are only safe at read committed',
    current_setting('transaction_isolation')
    using errcode = 'SL015', hint = 'see default_transaction_isolation of the database, the role and the connection';
end
$$;

-- Promise: each of the claims {claim_id, resource_id, pool_id, user_id} that has no ticket has a placeholder under the key of its
-- claim; returns those claims. Two transactions that only look for each other's rows can miss each other. A placeholder waits
-- for a finalize that runs, and a finalize that comes later waits for it and then looks for the tombstone. The ticket of its slot
-- that names no claim (name_ticket) is a claim's ticket where the user is the same. The caller deletes the placeholders.
-- Raises SL015 not read committed. Second call: none. Locks: tickets in the order of their slots, as finalize_batch.
create function public.place_claims(p_claims jsonb) returns uuid[]
language plpgsql set search_path = '' as $$
declare
  v_placed uuid[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform public.refuse_isolation();
  end if;
  with placed as (
    insert into public.confirmed_tickets as t (resource_id, pool_id, user_id, claim_id)
    select c.claim_id, c.pool_id, '-', c.claim_id
    from jsonb_to_recordset(p_claims) as c (claim_id uuid, resource_id uuid, pool_id text, user_id text)
    where not exists (
      select from public.confirmed_tickets k
      where k.resource_id = c.resource_id and k.claim_id = k.resource_id and k.pool_id = c.pool_id
        and k.user_id in (c.user_id, (select e.replacement from public.erased_claims e where e.claim_id = c.claim_id))
    )
    order by c.resource_id
    on conflict do nothing
    returning t.claim_id
  )
  select coalesce(array_agg(p.claim_id), '{}') into v_placed from placed p;
  return v_placed;
end
$$;

-- Promise: each claim {claim_id, resource_id, pool_id, user_id, verified, cause} of the array can no longer become a ticket (voided),
-- or has its ticket already and keeps it (ticket). After it the intake may sell the slot again. Second call: the same.
-- Raises SL015 not read committed. Locks: those of place_claims → voided_tickets. Definer: the ledger's rows are written by its
-- functions alone.
create function public.void_tickets(p_claims jsonb) returns table (claim_id uuid, outcome text)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_placeholders uuid[];
begin
  perform public.answer_in_cell();
  v_placeholders := public.place_claims(p_claims);
  insert into public.voided_tickets (claim_id, resource_id, pool_id, user_id, verified, cause)
  select c.claim_id, c.resource_id, c.pool_id, coalesce(e.replacement, c.user_id), coalesce(c.verified, true), c.cause
  from jsonb_to_recordset(p_claims)
    as c (claim_id uuid, resource_id uuid, pool_id text, user_id text, verified boolean, cause text)
  left join public.erased_claims e on e.claim_id = c.claim_id
  where c.claim_id = any (v_placeholders)
  on conflict do nothing;
  delete from public.confirmed_tickets t where t.claim_id = any (v_placeholders);
  return query
  select c.claim_id, case when c.claim_id = any (v_placeholders) then 'voided' else 'ticket' end
  from jsonb_to_recordset(p_claims) as c (claim_id uuid);
end
$$;

-- Promise: a ticket for each of the rows that nothing stands in the way of; returns which were written, and which claims are
-- voided. Undone and tried again where one was voided, or its user erased, while the insert waited: a row that is deleted again in the same
-- transaction would still be told to listeners of the ledger. Second call: writes none.
-- Locks: tickets in the order of their slots.
create function public.write_tickets(
  p_resource_ids uuid[], p_pool_ids text[], p_user_ids text[], p_claim_ids uuid[], p_verified boolean[], p_order_ids uuid[],
  out resource_ids uuid[], out claim_ids uuid[], out voided uuid[]
)
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_user_ids text[];
begin
  loop
    v_user_ids := public.users_now(p_claim_ids, p_user_ids);
    voided := array(select v.claim_id from public.voided_tickets v where v.claim_id = any (p_claim_ids));
    begin
      with inserted as (
        insert into public.confirmed_tickets as t (resource_id, pool_id, user_id, claim_id, verified, order_id)
        select i.resource_id, i.pool_id, i.user_id, coalesce(i.claim_id, i.resource_id), i.verified, i.order_id
        from unnest(p_resource_ids, p_pool_ids, v_user_ids, p_claim_ids, p_verified, p_order_ids)
          as i (resource_id, pool_id, user_id, claim_id, verified, order_id)
        where (i.claim_id = any (voided)) is not true
        order by i.resource_id
        on conflict do nothing
        returning t.resource_id, t.claim_id
      )
      select array_agg(i.resource_id), array_agg(i.claim_id) into resource_ids, claim_ids from inserted i;
      exit when not exists (
        select from public.voided_tickets v where v.claim_id = any (p_claim_ids) and v.claim_id <> all (voided)
      ) and public.users_now(p_claim_ids, p_user_ids) is not distinct from v_user_ids;
      raise exception using errcode = 'SL099';
    exception when sqlstate 'SL099' then
      null;
    end;
  end loop;
end
$$;

-- Promise: a ticket for each payload {resource_id, pool_id, user_id, claim_id?, verified?, order_id?} of the array, or what stands in
-- its way: committed, already (this claim has its ticket), conflict (the slot or the claim has another ticket), voided (the
-- claim has ended: see voided_tickets). ordinal counts the payloads from 1. A malformed payload (a missing field, an invalid
-- uuid) raises the table's own error, and nothing is written. If the payload or the ticket names no claim, the same user counts
-- as already, another user as conflict. Without verified the user counts as proven. The ticket of a user who was erased while
-- the claim was on its way is written under the replacement. Raises SL015 not read committed.
-- Second call: already. Locks: tickets in the order of their slots, so that two batches do not deadlock.
create function public.finalize_batch(p_payloads jsonb)
returns table (ordinal int, resource_id uuid, claim_id uuid, outcome text)
language plpgsql set search_path = ''
-- The look for tombstones stays one by the key, planned while there were few as well.
set enable_seqscan = off as $$
declare
  v_resource_ids uuid[];
  v_pool_ids text[];
  v_user_ids text[];
  v_claim_ids uuid[];
  v_verified boolean[];
  v_order_ids uuid[];
  v_written record;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform public.refuse_isolation();
  end if;
  select array_agg(p.resource_id order by p.ordinal), array_agg(p.pool_id order by p.ordinal),
    array_agg(p.user_id order by p.ordinal), array_agg(p.claim_id order by p.ordinal),
    array_agg(coalesce(p.verified, true) order by p.ordinal), array_agg(p.order_id order by p.ordinal)
  into v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids, v_verified, v_order_ids
  from rows from (
    jsonb_to_recordset(p_payloads)
      as (resource_id uuid, pool_id text, user_id text, claim_id uuid, verified boolean, order_id uuid)
  ) with ordinality as p (resource_id, pool_id, user_id, claim_id, verified, order_id, ordinal);
  -- Nearly always nothing stands in the way, and a plain insert costs a third less than one that looks first.
  begin
    insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id, verified, order_id)
    select i.resource_id, i.pool_id, i.user_id, coalesce(i.claim_id, i.resource_id), i.verified, i.order_id
    from unnest(v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids, v_verified, v_order_ids)
      as i (resource_id, pool_id, user_id, claim_id, verified, order_id)
    order by i.resource_id;
    -- After the insert, in a statement of its own: it sees what was voided while the insert waited (void_tickets).
    if not exists (select from public.voided_tickets v where v.claim_id = any (v_claim_ids))
       and not exists (select from public.erased_claims e where e.claim_id = any (v_claim_ids)) then
      return query
      select p.ordinal::int, p.resource_id, p.claim_id, 'committed'
      from unnest(v_resource_ids, v_claim_ids) with ordinality as p (resource_id, claim_id, ordinal);
      return;
    end if;
    raise exception using errcode = 'SL099';
  exception when unique_violation or sqlstate 'SL099' then
    null;
  end;
  v_written := public.write_tickets(v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids, v_verified, v_order_ids);
  v_user_ids := public.users_now(v_claim_ids, v_user_ids);
  -- A statement of its own: it sees the tickets that others committed while the insert waited for them.
  return query
  select p.ordinal::int, p.resource_id, p.claim_id,
    case
      when p.claim_id = any (v_written.voided) then 'voided'
      when t.user_id <> p.user_id or p.claim_id is null and t.verified <> p.verified or t.pool_id <> p.pool_id
        or t.claim_id not in (coalesce(p.claim_id, t.claim_id), t.resource_id) or t.claim_id is null then 'conflict'
      when c.resource_id is not null and row_number() over (
        partition by p.resource_id, coalesce(p.claim_id, p.resource_id), p.user_id, p.verified, p.pool_id
        order by p.ordinal
      ) = 1 then 'committed'
      else 'already'
    end
  from unnest(v_resource_ids, v_pool_ids, v_user_ids, v_claim_ids, v_verified)
    with ordinality as p (resource_id, pool_id, user_id, claim_id, verified, ordinal)
  left join unnest(v_written.resource_ids, v_written.claim_ids) as c (resource_id, claim_id)
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
  select public.answer_in_cell();
  select p.ordinal::int, case
      when t.user_id = coalesce(e.replacement, p.user_id) and t.pool_id = p.pool_id
        and (t.claim_id in (p.claim_id, t.resource_id) or p.claim_id is null and t.verified = coalesce(p.verified, true))
        then 'already'
      else 'conflict'
    end
  from rows from (
    jsonb_to_recordset(p_payloads) as (resource_id uuid, pool_id text, user_id text, claim_id uuid, verified boolean)
  ) with ordinality as p (resource_id, pool_id, user_id, claim_id, verified, ordinal)
  join public.confirmed_tickets t on t.resource_id = p.resource_id
  left join public.erased_claims e on e.claim_id = p.claim_id;
$$;

-- Promise: the claim in the payload has its ticket. Raises SL020 when the slot or the claim has another one:
-- never a silent "nothing to do" for another user's seat; SL021 when the claim has ended before it became a ticket.
-- Second call: no error, no second row. Locks: the ticket.
create function public.finalize_transaction(p_payload jsonb) returns void
language plpgsql set search_path = '' as $$
declare
  v_outcome text := (select b.outcome from public.finalize_batch(jsonb_build_array(p_payload)) b);
begin
  if v_outcome = 'conflict' then
    raise exception 'slot % has a ticket of another claim', p_payload ->> 'resource_id'
      using errcode = 'SL020', hint = 'compare both databases with "sluice reconcile"';
  elsif v_outcome = 'voided' then
    raise exception 'claim % has ended and can no longer become a ticket', p_payload ->> 'claim_id'
      using errcode = 'SL021', hint = 'see voided_tickets';
  end if;
end
$$;

-- Promise: true when this database has the ledger's functions and takes changes; false on a standby. Second call: the same,
-- until a standby is promoted. Locks: none.
create function public.ledger_ready() returns boolean
language sql stable set search_path = '' as $$
  select not pg_catalog.pg_is_in_recovery();
$$;

-- A buyer sees its own tickets, live where Supabase Realtime is; only service_role writes.
alter table public.confirmed_tickets enable row level security;

create policy own_tickets on public.confirmed_tickets
  for select to authenticated
  using ((select auth.uid())::text = user_id and verified);

alter table public.voided_tickets enable row level security;
alter table public.erased_claims enable row level security;

create policy own_voided_tickets on public.voided_tickets
  for select to authenticated
  using ((select auth.uid())::text = user_id and verified);

-- Promise: the tickets of the signed-in user, newest first; none without one. Second call: the same. Locks: none.
-- Invoker: own_tickets decides, here as everywhere.
create function public.my_tickets()
returns table (resource_id uuid, pool_id text, claim_id uuid, confirmed_at timestamptz)
language sql stable set search_path = '' as $$
  select public.answer_in_cell();
  select t.resource_id, t.pool_id, t.claim_id, t.confirmed_at
  from public.confirmed_tickets t
  where t.user_id = (select auth.uid())::text and t.verified
  order by t.confirmed_at desc;
$$;

do $$
begin
  if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
    alter publication supabase_realtime add table public.confirmed_tickets;
  end if;
end
$$;

-- CELLS: several intakes as one. Each cell holds whole pools, and a directory that says in which cell each pool lives. What a
-- cell says about its own pools is the truth; what it says about the pools of other cells is a copy, which survives the loss of
-- those (docs/decisions/0031-cells.md). A database that belongs to no fleet has no row here, and pays for nothing.
--
-- A move carries a pool from one cell to another in parcels. The source packs the whole pool in one transaction and from then
-- on has no such pool, the target unpacks it in one transaction, and every step can be repeated.

-- The cells that this one knows. number is the cell's for life: the ids of its dead letters begin with it.
create table intake.cells (
  name text primary key,
  number int not null unique,
  is_here boolean not null default false,
  -- It takes no new pools, because its pools are being moved away.
  is_draining boolean not null default false,
  constraint cell_name_is_a_word check (name ~ '^[a-z][a-z0-9_-]{0,31}$'),
  constraint cell_number_in_range check (number between 0 and 8191)
);

create unique index one_cell_is_here on intake.cells (is_here) where is_here;

-- Where pools live. A pool that was made here and never moved has no row: its place is version 1. moving_to: it was packed here
-- for that cell, and no cell sells it until that one has unpacked it. version grows by one with each move.
create table intake.pool_places (
  pool_id text primary key,
  cell text not null,
  version bigint not null,
  moving_to text,
  constraint place_version_positive check (version > 0)
);

-- A pool on its way: in the source until the target has all of it, in the target until it is unpacked. body is a JSON array
-- as text: no program between the two cells reads it, so no digit of it can change.
create table intake.parcels (
  pool_id text not null,
  version bigint not null,
  seq int not null,
  kind text not null,
  body text not null,
  primary key (pool_id, version, seq),
  constraint parcel_kind_is_known check (kind in (
    'config', 'details', 'requests', 'slots', 'claims', 'letters', 'orders', 'payments', 'checkouts'
  ))
);

-- Promise: the name of this cell; empty where the database belongs to no fleet. Second call: the same. Locks: none.
create function intake.this_cell() returns text
language sql stable set search_path = '' as $$
  select coalesce((select c.name from intake.cells c where c.is_here), '');
$$;

-- Trigger function of the two triggers below. Promise: no pool begins to be here while it lives in another cell or is being
-- moved: raises SL019 or SL018. The lock leaves no gap: who packs the pool has it alone. Second call: the same.
-- Locks: the pool (advisory, shared).
create function intake.refuse_elsewhere(p_pool_id text) returns void
language plpgsql set search_path = '' as $$
declare
  v_place intake.pool_places;
begin
  perform pg_catalog.pg_advisory_xact_lock_shared(intake.pool_lock_key(p_pool_id));
  select p.* into v_place from intake.pool_places p where p.pool_id = p_pool_id;
  if v_place.moving_to is not null then
    raise exception 'pool % is being moved to cell %', p_pool_id, v_place.moving_to
      using errcode = 'SL018', hint = 'npx sluice pools move goes on with a move that was cut short';
  elsif v_place.cell <> intake.this_cell() then
    raise exception 'pool % lives in cell %', p_pool_id, v_place.cell
      using errcode = 'SL019', hint = 'one pool is never in two cells: move it, or choose another name';
  end if;
end
$$;

-- Trigger. Promise: as intake.refuse_elsewhere. Second call: the same. Locks: those of it.
-- Definer: a role that may make a pool need not have rights to the directory.
create function intake.pool_begins_here() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform intake.refuse_elsewhere(new.pool_id);
  return new;
end
$$;

create trigger pool_lives_in_one_cell
  before insert on public.engine_config
  for each row execute function intake.pool_begins_here();

-- Trigger. Promise: as intake.refuse_elsewhere, for the slots of a statement. Second call: the same. Locks: those of it, pool by
-- pool in the order of their names. Definer: as pool_begins_here.
create function intake.slots_begin_here() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform intake.refuse_elsewhere(p.pool_id) from (select distinct l.pool_id from listed l order by l.pool_id) p;
  return null;
end
$$;

create trigger slots_live_in_one_cell
  after insert on public.slot_manifest
  referencing new table as listed
  for each statement execute function intake.slots_begin_here();

-- Promise: this database is the cell of that name and number. Raises SL001 for what is not a name or number, where the database
-- is another cell already, and where it has dead letters whose ids could be another cell's. Second call with the same name: true
-- again, the number stays, and the cell is not draining any more. Locks: the cells' table. Writes one audit row if it changes.
create function public.cell_join(p_name text, p_number int, p_actor text, p_reason text default null)
returns table (name text, number int, is_draining boolean)
language plpgsql security definer set search_path = '' as $$
declare
  v_here intake.cells;
begin
  lock table intake.cells in share row exclusive mode;
  select c.* into v_here from intake.cells c where c.is_here;
  if v_here.name <> p_name then
    raise exception 'this database is cell %, not %', v_here.name, p_name
      using errcode = 'SL001', hint = 'compare SLUICE_CELLS: a cell keeps its name for life';
  elsif v_here.name is null then
    if p_number > 0 and exists (select from pgmq.q_intake_dlq) then
      raise exception 'this database has dead letters, and their ids could be those of another cell'
        using errcode = 'SL001', hint = 'replay or discard them first';
    end if;
    insert into intake.cells (name, number, is_here) values (p_name, p_number, true);
    if p_number > 0 then
      -- The number is the upper part of the ids of dead letters and of the inbox, so that one id is one letter in the whole fleet.
      perform pg_catalog.setval(t.name::regclass, p_number::bigint << 40)
      from unnest('{pgmq.q_intake_dlq_msg_id_seq,pgmq.q_event_inbox_msg_id_seq,pgmq.q_event_inbox_dlq_msg_id_seq}'::text[])
        as t (name);
    end if;
  else
    update intake.cells c set is_draining = false where c.is_here and c.is_draining;
  end if;
  if v_here.name is null or v_here.is_draining then
    insert into audit.audit_logs (actor, action, subject, reason, details)
    values (p_actor, 'cell_join', 'cell ' || p_name, p_reason, jsonb_build_object('number', p_number));
  end if;
  return query select c.name, c.number, c.is_draining from intake.cells c where c.is_here;
exception
  when unique_violation then
    raise exception 'the fleet has a cell of this name or number' using errcode = 'SL001';
  when check_violation or not_null_violation then
    raise exception 'a cell has a name of 1 to 32 letters, digits, - and _, a number from 0 to 8191, and an actor'
      using errcode = 'SL001';
end
$$;

-- Promise: this cell takes no new pools from now on, with one audit row. Raises SL001 where the database belongs to no fleet.
-- Second call: false, and changes nothing. Locks: the cell's row.
create function public.cell_drain(p_actor text, p_reason text default null) returns boolean
language plpgsql security definer set search_path = '' as $$
begin
  if intake.this_cell() = '' then
    raise exception 'this database is not a cell of a fleet' using errcode = 'SL001', hint = 'npx sluice cells add <name>';
  end if;
  update intake.cells c set is_draining = true where c.is_here and not c.is_draining;
  if found then
    insert into audit.audit_logs (actor, action, subject, reason)
    values (p_actor, 'cell_drain', 'cell ' || intake.this_cell(), p_reason);
    return true;
  end if;
  return false;
end
$$;

-- Promise: what this database is: its name ('' where it belongs to no fleet) and number, whether it takes new pools, how many
-- pools and slots it has, how many pools wait here for another cell, and the number of each cell that it ever heard of, by its
-- name, its own among them. Second call: the same. Locks: none.
create function public.cell_here()
returns table (name text, number int, is_draining boolean, pools bigint, slots bigint, moving bigint, numbers jsonb)
language sql stable security definer set search_path = '' as $$
  select coalesce(c.name, ''), coalesce(c.number, 0), coalesce(c.is_draining, false),
    (select count(*) from public.engine_config e full join intake.pool_totals t on t.pool_id = e.pool_id),
    (select coalesce(sum(t.slots), 0)::bigint from intake.pool_totals t),
    (select count(*) from intake.pool_places p where p.moving_to is not null),
    (select coalesce(jsonb_object_agg(k.name, k.number), '{}') from intake.cells k)
  from (select) one
  left join intake.cells c on c.is_here;
$$;

-- Promise: what this cell has beside its pools, which would be lost with it: messages and dead letters of claims, deliveries in the
-- inbox and its dead letters, and people with a key. Counted, however long that takes. Second call: the same. Locks: none.
create function public.cell_left()
returns table (messages bigint, dead_letters bigint, deliveries bigint, inbox_dead_letters bigint, operators bigint)
language plpgsql stable security definer set search_path = '' as $$
begin
  return query select (select count(*) from pgmq.q_intake_queue), (select count(*) from pgmq.q_intake_dlq),
    (select count(*) from pgmq.q_event_inbox), (select count(*) from pgmq.q_event_inbox_dlq),
    (select count(*) from audit.operators o where o.revoked_at is null);
end
$$;

-- Promise: three hexadecimal digits that the ids of the pool's claims carry, so that an id leads to its pool and by that to its
-- cell, also after a move. Two pools may have the same. Second call: the same. Locks: none.
-- (The claim writes it out: intake.claim_one, intake.take_slots.)
create function intake.pool_digits(p_pool_id text) returns text
language sql immutable parallel safe set search_path = '' as $$
  select left(encode(sha256(convert_to(p_pool_id, 'UTF8')), 'hex'), 3);
$$;

-- Promise: where pools live, those that are named or all that this cell knows of. is_here: it is one of this cell's own, and so
-- the truth; so is a row with moving_to. Every other row is a copy. digits: intake.pool_digits. Second call: the same, and
-- what is new. Locks: none.
create function public.cell_directory(p_pool_ids text[] default null)
returns table (pool_id text, cell text, version bigint, moving_to text, is_here boolean, digits text)
language plpgsql stable security definer set search_path = '' as $$
declare
  v_here text := intake.this_cell();
begin
  return query
  with own as (
    select coalesce(e.pool_id::text, t.pool_id) as pool_id
    from public.engine_config e
    full join intake.pool_totals t on t.pool_id = e.pool_id
    where p_pool_ids is null
    union
    select n from unnest(p_pool_ids) n
    where exists (select from public.engine_config e where e.pool_id = n)
      or exists (select from intake.pool_totals t where t.pool_id = n)
  )
  select o.pool_id, v_here, coalesce(p.version, 1), null::text, true, intake.pool_digits(o.pool_id)
  from own o
  left join intake.pool_places p on p.pool_id = o.pool_id
  union all
  select p.pool_id, p.cell, p.version, p.moving_to, false, intake.pool_digits(p.pool_id)
  from intake.pool_places p
  where (p_pool_ids is null or p.pool_id = any (p_pool_ids)) and not exists (select from own o where o.pool_id = p.pool_id);
end
$$;

-- Promise: this cell keeps a copy of where these pools of other cells live, and of those cells, where that is newer than what it
-- knew: of a cell that was made anew under its old name, the higher number. Its own pools, and those that it packed, stay as they
-- are. Returns how many places changed. Second call: 0. Locks: the rows, in the order of their names; none where nothing is new.
create function public.cell_learn(p_pool_ids text[], p_cells text[], p_versions bigint[], p_names text[], p_numbers int[])
returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_here text := intake.this_cell();
  v_learnt int;
begin
  insert into intake.cells as c (name, number)
  select min(n.name), n.number from unnest(p_names, p_numbers) n (name, number)
  where n.name <> v_here and not exists (select from intake.cells k where k.number = n.number)
  group by n.number order by 1
  on conflict (name) do update set number = excluded.number where c.number < excluded.number;
  insert into intake.pool_places as p (pool_id, cell, version)
  select n.pool_id, n.cell, n.version
  from unnest(p_pool_ids, p_cells, p_versions) n (pool_id, cell, version)
  where n.cell <> v_here
    and not exists (select from public.engine_config e where e.pool_id = n.pool_id)
    and not exists (select from intake.pool_totals t where t.pool_id = n.pool_id)
  order by n.pool_id
  on conflict (pool_id) do update set cell = excluded.cell, version = excluded.version
  where p.moving_to is null and p.version < excluded.version;
  get diagnostics v_learnt = row_count;
  return v_learnt;
end
$$;

-- Promise: raises SL022 with the reason unless the pool can be moved: it is closed (is_active = false), each of its claims
-- is a ticket, a dead letter or over, and each session of a payment is closed. Second call: the same. Locks: none; exact while the caller has those of pool_pack.
create function intake.refuse_unrest(p_pool_id text, p_is_active boolean) returns void
language plpgsql set search_path = '' as $$
declare
  v_reason text := case
    when p_is_active then 'it is open'
    when exists (select from pgmq.q_intake_queue q where q.message ->> 'pool_id' = p_pool_id) then 'it has messages on the queue'
    when exists (
      select from public.claims c
      where c.pool_id = p_pool_id and (c.state in ('held', 'queued', 'validated') or c.end_as is not null)
    ) then 'it has claims that are held, on their way or ending'
    when exists (
      select from public.orders o join public.checkouts k on k.order_id = o.order_id
      where o.pool_id = p_pool_id and k.next_attempt_at < 'infinity'
    ) then 'it has payments that are on their way'
  end;
begin
  if v_reason is not null then
    raise exception 'pool % cannot be moved: %', p_pool_id, v_reason
      using errcode = 'SL022',
      hint = 'close it (npx sluice pools close), and wait until workers have carried its claims and closed its payments';
  end if;
end
$$;

-- Promise: parcels with all of the pool: its rules, details, requests, slots, claims and dead letters, and its orders with their
-- checkouts and what was decided about their payments, up to 1000 rows each. Returns how many. Second call: a unique violation. Locks: none; the caller has those of pool_pack.
create function intake.fill_parcels(p_pool_id text, p_version bigint) returns int
language plpgsql set search_path = '' as $$
declare
  c_rows constant int := 1000;
  v_parcels int;
begin
  insert into intake.parcels (pool_id, version, seq, kind, body)
  select p_pool_id, p_version, row_number() over (order by r.kind, r.chunk), r.kind, r.body
  from (
    select 'config' as kind, 0::bigint as chunk, json_agg(to_jsonb(c) - 'lane')::text as body
    from public.engine_config c where c.pool_id = p_pool_id
    union all
    select 'requests', n.n / c_rows, json_agg(n.r)::text
    from (
      select r, row_number() over () as n from intake.pool_requests r where r.pool_id = p_pool_id
    ) n group by 2
    union all
    -- The cache knows the places in the line of slots that came back.
    select 'slots', n.n / c_rows,
      json_agg(json_build_array(n.slot_id, n.sale_order, n.put_on_sale_at, n.withdrawn_at, n.label))::text
    from (
      select m.slot_id, coalesce(s.sale_order, m.sale_order) as sale_order, m.put_on_sale_at, m.withdrawn_at, m.label,
        row_number() over () as n
      from public.slot_manifest m
      left join public.inventory_slots s on s.id = m.slot_id
      where m.pool_id = p_pool_id
    ) n group by 2
    union all
    select 'claims', n.n / c_rows, json_agg(n.c)::text
    from (select c, row_number() over () as n from public.claims c where c.pool_id = p_pool_id) n group by 2
    union all
    select 'letters', n.n / c_rows, json_agg(n.d)::text
    from (
      select d, row_number() over () as n from pgmq.q_intake_dlq d where d.message ->> 'pool_id' = p_pool_id
    ) n group by 2
    union all
    select 'details', 0, json_agg(d)::text from public.pool_details d where d.pool_id = p_pool_id having count(*) > 0
    union all
    select 'orders', n.n / c_rows, json_agg(n.o)::text
    from (select o, row_number() over () as n from public.orders o where o.pool_id = p_pool_id) n group by 2
    union all
    select 'payments', n.n / c_rows, json_agg(n.p)::text
    from (
      select p, row_number() over () as n
      from public.orders o join public.order_payments p on p.order_id = o.order_id where o.pool_id = p_pool_id
    ) n group by 2
    union all
    select 'checkouts', n.n / c_rows, json_agg(n.k)::text
    from (
      select k, row_number() over () as n
      from public.orders o join public.checkouts k on k.order_id = o.order_id where o.pool_id = p_pool_id
    ) n group by 2
  ) r;
  get diagnostics v_parcels = row_count;
  return v_parcels;
end
$$;

-- Promise: nothing of the pool is left in the tables that it lives in. Second call: nothing to delete.
-- Locks: those of pool_pack, which the caller has.
create function intake.forget_pool(p_pool_id text) returns void
language plpgsql set search_path = '' as $$
begin
  delete from pgmq.q_intake_dlq d where d.message ->> 'pool_id' = p_pool_id;
  delete from public.checkouts k using public.orders o where o.pool_id = p_pool_id and k.order_id = o.order_id;
  delete from public.order_payments p using public.orders o where o.pool_id = p_pool_id and p.order_id = o.order_id;
  delete from public.orders o where o.pool_id = p_pool_id;
  delete from public.pool_details d where d.pool_id = p_pool_id;
  delete from public.claims c where c.pool_id = p_pool_id;
  -- Before the cache: its trigger would look each slot up.
  delete from public.slot_manifest m where m.pool_id = p_pool_id;
  delete from public.inventory_slots s where s.pool_id = p_pool_id;
  delete from intake.pool_marks m where m.pool_id = p_pool_id;
  delete from intake.pool_totals t where t.pool_id = p_pool_id;
  delete from intake.free_counts f where f.pool_id = p_pool_id;
  delete from intake.held_counts h where h.pool_id = p_pool_id;
  delete from intake.pool_allowances a where a.pool_id = p_pool_id;
  delete from intake.pool_requests r where r.pool_id = p_pool_id;
  delete from public.engine_config c where c.pool_id = p_pool_id;
end
$$;

-- Promise: the whole pool is in parcels for cell p_to, and this cell sells, shows and changes it no more: from here on it has no
-- such pool, and its place says where it goes. Raises SL001 where this database is not a cell or is p_to itself, SL002 for no such
-- pool, SL018 where it is on its way to another cell, SL022 as intake.refuse_unrest, and while a user is being erased. Second call:
-- the same parcels.
-- Locks: erasures (advisory, shared) → the pool's row → orders → dead letters, in the order of their ids → claims, in the order of their ids → the pool (advisory) → slots.
-- A claim that passed the gate before the pool was closed has its slot locked: waiting for the slots is waiting for it.
create function public.pool_pack(p_pool_id text, p_to text, p_actor text, p_reason text default null)
returns table (version bigint, parcels int)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_here text := intake.this_cell();
  v_place intake.pool_places;
  v_is_active boolean;
  v_version bigint;
  v_parcels int;
begin
  if v_here in ('', p_to) then
    raise exception 'this database is not a cell, or is cell % itself', p_to using errcode = 'SL001';
  end if;
  perform pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended('sluice erasure', 0));
  if exists (select from audit.erasures) then
    raise exception 'a user is being erased, who may have claims in this pool'
      using errcode = 'SL022', hint = 'npx sluice users erase goes on with an erasure that was cut short';
  end if;
  select c.is_active into v_is_active from public.engine_config c where c.pool_id = p_pool_id for update;
  if not found then
    select p.* into v_place from intake.pool_places p where p.pool_id = p_pool_id;
    if v_place.moving_to = p_to then
      return query select v_place.version, count(*)::int from intake.parcels p
      where p.pool_id = p_pool_id and p.version = v_place.version;
      return;
    elsif v_place.moving_to is not null then
      raise exception 'pool % is being moved to cell %', p_pool_id, v_place.moving_to using errcode = 'SL018';
    elsif exists (select from intake.pool_totals t where t.pool_id = p_pool_id) then
      perform intake.refuse_unrest(p_pool_id, true);
    end if;
    raise exception 'no pool % in cell %', p_pool_id, v_here using errcode = 'SL002';
  end if;
  perform from public.orders o where o.pool_id = p_pool_id order by o.order_id for update;
  perform from pgmq.q_intake_dlq d where d.message ->> 'pool_id' = p_pool_id order by d.msg_id for update;
  perform from public.claims c where c.pool_id = p_pool_id order by c.claim_id for update;
  perform pg_catalog.pg_advisory_xact_lock(intake.pool_lock_key(p_pool_id));
  perform from public.inventory_slots s where s.pool_id = p_pool_id for update;
  perform intake.refuse_unrest(p_pool_id, v_is_active);
  insert into intake.pool_places as p (pool_id, cell, version, moving_to) values (p_pool_id, v_here, 2, p_to)
  on conflict (pool_id) do update set cell = v_here, version = p.version + 1, moving_to = p_to
  returning p.version into v_version;
  v_parcels := intake.fill_parcels(p_pool_id, v_version);
  perform intake.forget_pool(p_pool_id);
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'pool_move_out', 'pool ' || p_pool_id, p_reason, jsonb_build_object('to', p_to, 'version', v_version));
  return query select v_version, v_parcels;
end
$$;

-- Promise: up to p_limit parcels of the pool after number p_after, in their order. Second call: the same. Locks: none.
create function public.pool_parcels(p_pool_id text, p_version bigint, p_after int, p_limit int)
returns table (seq int, kind text, body text)
language sql stable security definer set search_path = '' as $$
  select p.seq, p.kind, p.body from intake.parcels p
  where p.pool_id = p_pool_id and p.version = p_version and p.seq > p_after
  order by p.seq limit p_limit;
$$;

-- Promise: this cell has these parcels of a pool that moves here; none of it is on sale yet. Returns the number of the last
-- parcel that is here without a gap before it, so that a mover goes on behind it; null where the pool was unpacked already.
-- Second call: the same. Locks: the parcels.
create function public.pool_receive(p_pool_id text, p_version bigint, p_seqs int[], p_kinds text[], p_bodies text[])
returns int
language plpgsql security definer set search_path = '' as $$
begin
  if exists (
    select from intake.pool_places p
    where p.pool_id = p_pool_id and p.version >= p_version and p.cell = intake.this_cell()
  ) then
    return null;
  end if;
  delete from intake.parcels p where p.pool_id = p_pool_id and p.version < p_version;
  insert into intake.parcels (pool_id, version, seq, kind, body)
  select p_pool_id, p_version, n.seq, n.kind, n.body from unnest(p_seqs, p_kinds, p_bodies) n (seq, kind, body)
  on conflict do nothing;
  return (
    select coalesce(max(n.seq), 0)
    from (select p.seq, row_number() over (order by p.seq) as nth from intake.parcels p
      where p.pool_id = p_pool_id and p.version = p_version) n
    where n.seq = n.nth
  );
end
$$;

-- Promise: the rows of the parcels stand in the tables that a pool lives in, its slots in the cache among them. Second call: a
-- unique violation. Locks: those of the inserts and of rebuild_inventory.
create function intake.empty_parcels(p_pool_id text, p_version bigint) returns void
language plpgsql set search_path = '' as $$
declare
  v_parcel record;
begin
  for v_parcel in
    select p.kind, p.body::jsonb as body from intake.parcels p
    where p.pool_id = p_pool_id and p.version = p_version
    order by p.kind <> 'config', p.seq
  loop
    case v_parcel.kind
      when 'config' then
        insert into public.engine_config
        select c.* from jsonb_populate_record(
          null::public.engine_config,
          (v_parcel.body -> 0) || jsonb_build_object('lane', nextval('public.engine_config_lane_seq'))
        ) c;
      when 'requests' then
        insert into intake.pool_requests select r.* from jsonb_populate_recordset(null::intake.pool_requests, v_parcel.body) r;
      when 'slots' then
        insert into public.slot_manifest (slot_id, pool_id, sale_order, put_on_sale_at, withdrawn_at, label)
        select (s ->> 0)::uuid, p_pool_id, (s ->> 1)::bigint, (s ->> 2)::timestamptz, (s ->> 3)::timestamptz, s ->> 4
        from jsonb_array_elements(v_parcel.body) s;
      when 'claims' then
        insert into public.claims select c.* from jsonb_populate_recordset(null::public.claims, v_parcel.body) c;
      when 'details' then
        insert into public.pool_details select d.* from jsonb_populate_recordset(null::public.pool_details, v_parcel.body) d;
      when 'orders' then
        insert into public.orders select o.* from jsonb_populate_recordset(null::public.orders, v_parcel.body) o;
      when 'payments' then
        insert into public.order_payments
        select p.* from jsonb_populate_recordset(null::public.order_payments, v_parcel.body) p on conflict (payment_key) do nothing;
      when 'checkouts' then
        insert into public.checkouts select k.* from jsonb_populate_recordset(null::public.checkouts, v_parcel.body) k;
      else
        insert into pgmq.q_intake_dlq (msg_id, read_ct, enqueued_at, vt, message) overriding system value
        select d.msg_id, d.read_ct, d.enqueued_at, d.vt, d.message
        from jsonb_populate_recordset(null::pgmq.q_intake_dlq, v_parcel.body) d;
    end case;
  end loop;
  insert into intake.pool_totals (pool_id, slots)
  select p_pool_id, count(*) from public.slot_manifest m where m.pool_id = p_pool_id having count(*) > 0;
  perform intake.rebuild_inventory(p_pool_id);
end
$$;

-- Promise: the pool lives in this cell, as it was packed, closed. This is where the directory turns: one transaction, with one
-- audit row. Raises SL014 where this cell has a pool of that name, SL022 where parcels are missing, and what the tables refuse,
-- such as the address of a hook that this cell does not allow. Second call: false, and changes nothing.
-- Locks: the place → those of intake.empty_parcels.
create function public.pool_unpack(p_pool_id text, p_version bigint, p_parcels int, p_actor text, p_reason text default null)
returns boolean
language plpgsql security definer set search_path = '' as $$
declare
  v_here text := intake.this_cell();
  v_there int;
begin
  insert into intake.pool_places as p (pool_id, cell, version) values (p_pool_id, v_here, p_version)
  on conflict (pool_id) do update set cell = v_here, version = p_version, moving_to = null where p.version < p_version;
  if not found then
    return false;
  end if;
  select count(*) into v_there from intake.parcels p where p.pool_id = p_pool_id and p.version = p_version;
  if v_there <> p_parcels then
    raise exception '% of % parcels of pool % are here', v_there, p_parcels, p_pool_id using errcode = 'SL022';
  elsif exists (select from public.engine_config c where c.pool_id = p_pool_id)
     or exists (select from intake.pool_totals t where t.pool_id = p_pool_id) then
    raise exception 'cell % has a pool %', v_here, p_pool_id using errcode = 'SL014';
  end if;
  perform intake.empty_parcels(p_pool_id, p_version);
  delete from intake.parcels p where p.pool_id = p_pool_id;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'pool_move_in', 'pool ' || p_pool_id, p_reason, jsonb_build_object('version', p_version));
  return true;
end
$$;

-- Promise: the target has unpacked the pool, so this cell keeps no parcel of it; its place names the target. Second call: false,
-- and changes nothing. Locks: the place.
create function public.pool_sent(p_pool_id text, p_version bigint) returns boolean
language plpgsql security definer set search_path = '' as $$
begin
  update intake.pool_places p set cell = p.moving_to, moving_to = null
  where p.pool_id = p_pool_id and p.version = p_version and p.moving_to is not null;
  if not found then
    return false;
  end if;
  delete from intake.parcels p where p.pool_id = p_pool_id and p.version = p_version;
  return true;
end
$$;

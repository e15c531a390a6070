-- INTAKE, part 1: extensions, queues, types and tables.
-- The claim row is the truth; inventory_slots is a cache of it that a crash empties and SQL rebuilds
-- (20260224100003_inventory.sql).

-- Only the global form closes new functions to PUBLIC: the per-schema form can add rights, never take
-- away the built-in ones.
alter default privileges revoke execute on functions from public;

-- The objects that were here before Sluice: the last migration leaves their rights as they are, and drops this table.
create table public.stood_before as
select 'pg_catalog.pg_class'::regclass as catalog, c.oid as object
from pg_catalog.pg_class c
where c.relnamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('public', 'intake', 'audit'))
union all
select 'pg_catalog.pg_proc', p.oid
from pg_catalog.pg_proc p
where p.pronamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('public', 'intake', 'audit'))
union all
select 'pg_catalog.pg_namespace', n.oid from pg_catalog.pg_namespace n;

-- On a server that does not allow extensions, `sluice migrate` has installed pgmq itself and stand-ins for the other
-- two as plain SQL, and the Node scheduler does the work of pg_cron and pg_net.
do $$
begin
  if pg_catalog.to_regnamespace('pgmq') is null then
    create extension pgmq;
  end if;
  if pg_catalog.to_regnamespace('cron') is null then
    create extension pg_cron;
  end if;
  if pg_catalog.to_regnamespace('net') is null then
    create extension pg_net with schema extensions;
  end if;
end
$$;

select pgmq.create('intake_queue');
select pgmq.create('intake_dlq');

-- The lane of a message is the upper part of its id: msg_id = (lane << 40) + a number of the sequence. So the primary key
-- sorts by lane and then by age, and each pool's messages can be taken without a look at another pool's backlog
-- (docs/decisions/0019-lanes.md). The sequence ends in an error before it reaches into the lane; at 10,000 messages a second
-- that is in three years, and at 100 in 348.
alter sequence pgmq.q_intake_queue_msg_id_seq maxvalue 1099511627775 no cycle;

-- Vacuum early: every read walks over the dead rows at the head of the queue.
alter table pgmq.q_intake_queue set (
  fillfactor = 45,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

-- No read ever uses the index on vt (pgmq compares it with clock_timestamp()), yet each message pays for it, and
-- no read can be a HOT update while it is there. A host that does not let us drop it loses speed, nothing else.
do $$
begin
  drop index if exists pgmq.q_intake_queue_vt_idx;
exception
  when insufficient_privilege or dependent_objects_still_exist then
    raise notice 'the index on vt of the intake queue stays: %', sqlerrm;
end
$$;

-- Everything outside the public contract lives in this schema; PostgREST does not expose it.
create schema intake;

create type public.slot_status as enum ('AVAILABLE', 'RESERVED', 'CONSUMED');

-- queued → validated → committed is the way of a claim; one that waits for its payment is held before; dead_letter waits for
-- an operator; the other five have given their slot back. These come last, so that freed_means_the_claim_has_ended compares
-- instead of naming them: Postgres parses a CHECK anew for every statement. A claim that was paid for ends only as voided.
create type public.claim_state as enum (
  'held', 'queued', 'validated', 'committed', 'dead_letter',
  'released', 'expired', 'refused', 'discarded', 'voided'
);

-- Ids that people and providers choose. A domain and not a CHECK of the table: Postgres parses a table's CHECKs
-- anew for every statement, which took 7 % of a single claim.
create domain public.given_id as text
  constraint has_1_to_200_characters check (length(value) between 1 and 200);

-- A pool is asked for by a path (/v1/pools/<pool_id>, percent-encoded). No path can hold "." or "..": clients take them
-- away on the way. A control character cannot be seen. Directly on text: generated types call a domain over a domain
-- "unknown".
create domain public.given_pool_id as text
  constraint has_1_to_200_characters check (length(value) between 1 and 200)
  constraint pool_id_is_not_dots_and_has_no_control_characters
  check (value not in ('.', '..') and value !~ '[\u0001-\u001f\u007f-\u009f]');

-- What a ticket calls its slot, such as a row and a seat. A domain for the same reason.
create domain public.slot_label as text
  constraint has_1_to_100_characters check (length(value) between 1 and 100);

-- The order in which slots are sold. Its own sequence: one owned by an UNLOGGED table restarts at 1
-- after a crash.
create sequence intake.sale_order_seq cache 1;

-- The id begins with the time (UUID version 7): slots are sold in about the order they were made, so neighbours
-- in time are neighbours in every index on slot ids (docs/decisions/0008).
create unlogged table public.inventory_slots (
  id uuid primary key default (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
    || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
  pool_id public.given_pool_id not null,
  status public.slot_status not null default 'AVAILABLE',
  locked_by text,
  locked_at timestamptz,
  sale_order bigint not null default nextval('intake.sale_order_seq'),
  -- The manifest has it too.
  label public.slot_label
) with (
  fillfactor = 60,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

create index idx_available_slots
  on public.inventory_slots (pool_id, sale_order)
  where status = 'AVAILABLE';

-- Single claims start in one of 64 stripes at random instead of queueing up at one row: skipping a row that another
-- session has locked costs a trip to the lock manager. A stripe is runs of 16 slots, so that stripes seldom share a page.
create index idx_available_stripes
  on public.inventory_slots (pool_id, (sale_order / 16 % 64), sale_order)
  where status = 'AVAILABLE';

-- A row with only a pool_id is a working pool. Its lane is its own for life, until there are more than 8191 pools: then two
-- share one. Ids of messages stay below 2^53, the largest that JavaScript can count to. Lane 0 is for pools without a row and
-- for messages that were not sent by intake_queue_send.
create table public.engine_config (
  pool_id public.given_pool_id primary key,
  batch_size int not null default 100,
  visibility_timeout_sec int not null default 45,
  max_retries int not null default 10,
  is_active boolean not null default true,
  validation_webhook_url text,
  commit_rpc_name text not null default 'finalize_transaction',
  commit_webhook_url text,
  max_per_user int,
  hold_sec int,
  opens_at timestamptz,
  closes_at timestamptz,
  require_auth boolean not null default false,
  allow_guests boolean not null default false,
  max_per_address int,
  challenge_difficulty int,
  commit_rate_per_sec int,
  confirm_by text not null default 'auto',
  price bigint,
  currency text,
  payment_tenant text,
  payment_livemode boolean not null default true,
  max_quantity int not null default 1,
  expire_grace_sec int not null default 60,
  refund_by text not null default 'sluice',
  lane int not null generated by default as identity (maxvalue 8191 cycle),
  constraint lane_in_range check (lane between 1 and 8191),
  constraint batch_size_in_range check (batch_size between 1 and 10000),
  constraint visibility_timeout_in_range check (visibility_timeout_sec between 1 and 43200),
  constraint max_retries_in_range check (max_retries between 1 and 1000),
  constraint max_per_user_positive check (max_per_user > 0),
  constraint max_per_address_positive check (max_per_address > 0),
  constraint challenge_difficulty_in_range check (challenge_difficulty between 1000 and 100000000),
  constraint hold_sec_positive check (hold_sec > 0),
  -- It becomes a part of a path, called with DB2's key.
  constraint commit_rpc_name_is_identifier check (commit_rpc_name ~ '^[A-Za-z_][A-Za-z0-9_]{0,62}$'),
  constraint commit_rate_positive check (commit_rate_per_sec > 0),
  constraint confirm_by_is_known check (confirm_by in ('auto', 'payment')),
  constraint price_has_a_currency check (
    (price is null) = (currency is null) and price > 0 and currency ~ '^[a-z]{3}$'
  ),
  constraint max_quantity_in_range check (max_quantity between 1 and 10),
  constraint expire_grace_in_range check (expire_grace_sec between 5 and 600),
  constraint refund_by_is_known check (refund_by in ('sluice', 'operator')),
  -- A session of the provider can be open for a day at most. No hook may come between a payment and its ticket, because what
  -- was paid is not refused.
  constraint payment_pool_is_complete check (
    confirm_by = 'auto' or (
      price is not null and payment_tenant is not null and coalesce(hold_sec, 0) between 60 and 86400
      and validation_webhook_url is null and commit_webhook_url is null and commit_rpc_name = 'finalize_transaction'
    )
  ),
  constraint opens_before_it_closes check (opens_at < closes_at)
);

create index engine_config_by_lane on public.engine_config (lane);

-- What buyers read about a pool. No claim looks here.
create table public.pool_details (
  pool_id public.given_pool_id primary key,
  title text,
  starts_at timestamptz,
  -- In which starts_at is told to people: a ticket is read at the place, not where the server is. Null: UTC.
  time_zone text,
  place text,
  picture_url text,
  text text,
  constraint title_is_short check (length(title) between 1 and 200),
  -- Names only: Postgres takes more for a zone than browsers do.
  constraint time_zone_is_a_name check (
    time_zone ~ '^[A-Za-z]+(/[A-Za-z0-9_+-]+){0,2}$' and timestamptz 'epoch' at time zone time_zone > '-infinity'
  ),
  constraint place_is_short check (length(place) between 1 and 200),
  constraint picture_url_is_http check (
    picture_url ~ '^https?://[^[:space:][:cntrl:]]+$' and length(picture_url) <= 2000
  ),
  constraint text_fits_a_page check (length(text) between 1 and 10000)
);

comment on column public.engine_config.batch_size is
  'For workers that read one pool by themselves. The bridge takes one batch for all pools and is told its size where it is started.';
comment on column public.engine_config.max_retries is
  'A message whose attempts have reached this goes to the dead letters instead of being tried: N means N - 1 tries, 1 means none.';

comment on column public.engine_config.require_auth is
  'Claims need a signed-in user. Anonymous sign-ins (is_anonymous in the token) count as such only with allow_guests.';
comment on column public.engine_config.max_per_address is
  'Slots that the buyers of one network address hold together. The server tells the address; its claims keep it for this rule alone.';
comment on column public.engine_config.confirm_by is
  'What makes a ticket of a claim: auto, the bridge at once; payment, once its price was paid within hold_sec.';
comment on column public.engine_config.price is 'Of one slot, in minor units of the currency.';
comment on column public.engine_config.payment_tenant is 'Whose payments count: the tenant of the endpoint that tells them.';
comment on column public.engine_config.max_quantity is 'How many slots one request may claim together.';
comment on column public.engine_config.expire_grace_sec is
  'How long a hold that is over waits for the provider to close the payment, before the slots are sold again all the same.';
comment on column public.engine_config.refund_by is
  'Who sends back what a payment could not buy: sluice, or an operator after a look at it.';
comment on column public.engine_config.challenge_difficulty is
  'Claims need a solved challenge: a proof of work of about half as many hashes. Null: no challenge.';

-- The rules of a pool with slots and no row of engine_config: the defaults of that table. A test compares the two.
create view intake.default_rules as
select 100 as batch_size, 45 as visibility_timeout_sec, 10 as max_retries, 'finalize_transaction'::text as commit_rpc_name;

-- Kept for 30 days (20260224100020_retention.sql).
create table public.engine_metrics (
  id bigint generated always as identity primary key,
  captured_at timestamptz not null default now(),
  pool_id text not null,
  available_slots int not null, reserved_slots int not null, consumed_slots int not null,
  queue_depth int not null,
  dlq_depth int not null default 0
);

create index idx_metrics_pool_ts
  on public.engine_metrics (pool_id, captured_at desc);

-- Promise: the client gets the answer of this transaction only when the standbys have everything that the answer is based on.
-- A transaction that writes nothing waits for no standby at commit, so a failover could take back what it has read. This
-- function writes an empty log record, so that the commit waits like that of a change. It does so only if commits are to wait:
-- sluice.ack is quorum, or is not set while the server has standbys to wait for. On a standby it raises. A transaction id alone
-- would not do: Postgres does not wait for a transaction that wrote no log. Second call: another record. Locks: none.
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

-- Promise: 16 bytes that stand for one request. A request id belongs to one user, namespace and secret, so that a stranger's
-- order number blocks no buyer and reveals nothing. The first four bytes come from the request id alone, so that operators find
-- it by intake.request_keys; the other twelve come from all fields: to hit another buyer's key takes 2^96 tries.
-- A key of the five columns themselves made a claim write a quarter more log (bench/README.md, cost).
-- User and request ids hold no line feed, so the hashed text is unambiguous. Second call: the same. Locks: none.
create function intake.request_key(
  p_pool_id text,
  p_request_id text,
  p_user_id text,
  p_verified boolean,
  p_secret_hash bytea
)
returns uuid
language plpgsql immutable set search_path = '' as $$
begin
  return encode(
    substr(sha256(convert_to(p_request_id, 'UTF8')), 1, 4) || substr(sha256(
      convert_to(p_pool_id || e'\n' || p_request_id || e'\n' || p_user_id || e'\n' || p_verified::text || e'\n', 'UTF8')
      || coalesce(p_secret_hash, '')
    ), 1, 12), 'hex')::uuid;
end
$$;

-- Promise: the first and the last key that requests with this id can have. Second call: the same. Locks: none.
create function intake.request_keys(p_request_id text, out first uuid, out last uuid)
language plpgsql immutable set search_path = '' as $$
declare
  v_begin text := left(encode(sha256(convert_to(p_request_id, 'UTF8')), 'hex'), 8);
begin
  first := rpad(v_begin, 32, '0');
  last := rpad(v_begin, 32, 'f');
end
$$;

-- One buyer's hold on one slot. freed_at is set when the slot went back on sale, so "live" needs no list
-- of states, and the way queued → validated → committed touches no indexed column (HOT updates).
-- The id begins with the time (UUID version 7), so that the order of ids is the order of claims. Three digits that stand for
-- the pool follow (intake.pool_digits), so that an id leads to its cell, and then 62 bits of chance. The default has no such
-- digits: it is for claims that are written by hand.
create table public.claims (
  claim_id uuid primary key default (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
    || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
  pool_id text not null,
  slot_id uuid not null,
  user_id public.given_id not null,
  request_id public.given_id,
  request_key uuid,
  state public.claim_state not null default 'queued',
  -- A token, or a server of ours, vouches for user_id. The same name, verified and unverified, is two users.
  verified boolean not null default false,
  -- SHA-256 of the secret that an unverified buyer made up. Its holder may read, repeat and release the claim.
  secret_hash bytea,
  -- Of the buyer, kept only where the pool has max_per_address.
  address text,
  -- That was solved for this claim, where the pool asks for one: a solution is good for one claim, on all servers.
  challenge text,
  msg_id bigint,
  claimed_at timestamptz not null default now(),
  hold_until timestamptz,
  freed_at timestamptz,
  end_reason text,
  end_as public.claim_state,
  end_due timestamptz,
  committed_by text,
  -- The claims that were made by one request have the id of the first of them. Null for a claim alone, unless it is paid for.
  order_id uuid,
  -- The claim that this one stands for: that had ended when its payment came.
  replaces uuid,
  -- True from its payment on; else null.
  paid boolean,
  constraint freed_means_the_claim_has_ended check (
    (freed_at is null) = (state < 'released')
    and (paid is null or state > 'held' and (state < 'released' or state = 'voided'))
  ),
  constraint each_request_has_its_key check ((request_key is null) = (request_id is null))
) with (
  fillfactor = 45,
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0
);

create unique index one_live_claim_per_slot on public.claims (slot_id) where freed_at is null;
-- Which slots have been sold again (bridge_first_claims).
create index freed_claims_by_slot on public.claims (slot_id) where freed_at is not null;
create unique index one_claim_per_request on public.claims (request_key) where request_key is not null;
create unique index one_claim_per_challenge on public.claims (challenge) where challenge is not null;
create index claims_by_user on public.claims (user_id, pool_id);
create index claims_by_address on public.claims (pool_id, address) where address is not null and freed_at is null;
-- By pool first: however many claims of one pool are due at once, those of the others are found beside them.
create index claims_on_hold on public.claims (pool_id, hold_until)
  where hold_until is not null and freed_at is null and end_as is null;
-- Of the claim whose id is the order's the primary key is enough: a held claim writes no more log than a queued one
-- (intake.claims_of_orders, bench paid).
create index claims_by_order on public.claims (order_id) where order_id <> claim_id;
create index claims_ending on public.claims (pool_id, end_due) where end_as is not null;

comment on column public.claims.end_as is
  'How the claim will end (released, expired, discarded) once the ledger has its tombstone; null while it shall not end, and after it did. It holds its slot until then.';
comment on column public.claims.end_due is 'When the end is looked at next.';
comment on column public.claims.committed_by is
  'What committed it, where that was not the ledger: function:<name> or hook.';

-- Every slot ever put on sale and not withdrawn. The cache is rebuilt from this table, the claims, and messages that were put
-- on the queue by hand. A slot that was withdrawn while a claim held it stays until the claim ends, with withdrawn_at: a
-- rebuild must not put it on sale again.
create table public.slot_manifest (
  slot_id uuid primary key,
  pool_id text not null,
  sale_order bigint not null,
  put_on_sale_at timestamptz not null default now(),
  withdrawn_at timestamptz,
  label public.slot_label
);

create index slot_manifest_by_pool on public.slot_manifest (pool_id);
create index slot_manifest_withdrawn on public.slot_manifest (pool_id) where withdrawn_at is not null;

-- How many slots of a pool are on the manifest: capacity without a count.
create table intake.pool_totals (
  pool_id text primary key,
  slots bigint not null,
  constraint slots_never_negative check (slots >= 0)
);

-- One row a pool, of the same persistence as the slots, and so also the sentinel: a pool with slots on the
-- manifest and no row here has lost its cache. No free slot has a sale_order below low_order; sold_out says
-- that none is free at all. A session that frees or adds a slot takes the row's lock (intake.slot_became_available).
create unlogged table intake.pool_marks (
  pool_id text primary key,
  low_order bigint not null,
  sold_out boolean not null default false
) with (fillfactor = 50);

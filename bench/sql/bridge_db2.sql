-- What the bridge suite needs on DB2: an empty ledger, and a look at the log and at the tickets.
create schema bench;

-- Promise: a ledger without tickets. Second call: the same. Locks: the tickets, exclusively.
create function bench.clear_tickets()
returns void
language sql
set search_path = ''
as $$
  truncate public.confirmed_tickets;
$$;

-- Promise: see bench.claims_digest() of DB1. Second call: the same. Locks: none.
create function bench.tickets_digest()
returns text
language sql
set search_path = ''
as $$
  select count(*) || ' '
    || md5(string_agg(t.claim_id || ' ' || t.resource_id || ' ' || t.user_id, ',' order by t.claim_id))
  from public.confirmed_tickets t;
$$;

-- Promise: how many bytes were ever written to the write-ahead log. Second call: as many or more. Locks: none.
create function bench.wal_bytes()
returns bigint
language sql
set search_path = ''
as $$
  select pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::bigint;
$$;

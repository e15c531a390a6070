-- OPERATORS: a copy of DB1's, so that commands that reach DB2 alone know whose key they were given. Servers write it every ten
-- seconds, and `sluice operators` at each change.

create table audit.operators (
  name text primary key,
  role text not null,
  key_hash bytea not null,
  is_revoked boolean not null,
  version int not null,
  copied_at timestamptz not null,
  constraint operator_role_is_known check (role in ('viewer', 'scanner', 'operator', 'admin')),
  constraint key_hash_is_sha256 check (octet_length(key_hash) = 32)
);

-- Promise: the copy has these operators, as public.known_operators of DB1 gives them with the hash in hex, and those it had
-- before: DB1 forgets none. Of two versions of a row the newer one stays. Second call: the same, and the copy is from now.
-- Locks: the rows, by name. Definer: service_role has no rights to the table.
create function public.copy_operators(p_operators jsonb) returns void
language sql security definer set search_path = '' as $$
  insert into audit.operators as o (name, role, key_hash, is_revoked, version, copied_at)
  select g.name, g.role, decode(g.key_hash, 'hex'), g.is_revoked, g.version, now()
  from jsonb_to_recordset(p_operators) g (name text, role text, key_hash text, is_revoked boolean, version int)
  order by g.name
  on conflict (name) do update
    set role = excluded.role, key_hash = excluded.key_hash, is_revoked = excluded.is_revoked, version = excluded.version,
      copied_at = excluded.copied_at
    where o.version <= excluded.version;
$$;

-- Promise: every operator that the copy has; age_sec is how long ago it was made. Second call: the same. Locks: none.
-- Definer: as copy_operators.
create function public.known_operators()
returns table (name text, role text, key_hash bytea, is_revoked boolean, version int, age_sec double precision)
language sql stable security definer set search_path = '' as $$
  select o.name, o.role, o.key_hash, o.is_revoked, o.version, extract(epoch from now() - o.copied_at)::double precision
  from audit.operators o;
$$;

-- OPERATORS: the people who may use the console, the admin API and the command line, each with a key and a role. Their names
-- stand in the audit log. DB2 has a copy, for commands that reach DB2 alone.

-- A row stays when its operator is revoked, so that no other person gets a name that the audit log knows. key_hash is the
-- sha256 of the key: 32 random bytes need no salt, and cannot be guessed from it. version grows with each change of a row: the
-- copy takes the newer one, in whatever order they come.
create table audit.operators (
  name text primary key,
  role text not null,
  key_hash bytea not null,
  key_made_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  version int not null default 1,
  constraint operator_name_is_one_line check (name ~ '^[^[:space:][:cntrl:]]([^[:cntrl:]]{0,98}[^[:space:][:cntrl:]])?$'),
  -- What the audit log calls a caller without a key of its own.
  constraint operator_name_is_not_taken check (lower(name) !~ '^(admin|owner|operator|service_role)($| \()'),
  constraint operator_role_is_known check (role in ('viewer', 'scanner', 'operator', 'admin')),
  constraint key_hash_is_sha256 check (octet_length(key_hash) = 32),
  constraint one_operator_per_key unique (key_hash)
);

-- Promise: a person of this name and role has this key, with an audit row. One who was revoked comes back. Raises SL001 when
-- there is an operator of this name, and for a name or role that cannot be. Second call: SL001. Locks: the operator.
-- For the owner only, as the three that follow: no role is granted any of them.
create function audit.add_operator(
  p_name text, p_role text, p_key_hash bytea, p_actor text, p_reason text default null
)
returns void
language plpgsql set search_path = '' as $$
begin
  insert into audit.operators as o (name, role, key_hash) values (p_name, p_role, p_key_hash)
  on conflict (name) do update
    set role = excluded.role, key_hash = excluded.key_hash, key_made_at = now(), revoked_at = null, version = o.version + 1
    where o.revoked_at is not null;
  if not found then
    raise exception 'there is an operator %', p_name
      using errcode = 'SL001', hint = 'rotate gives a new key; revoke first to change the role';
  end if;
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'operator_add', 'operator ' || p_name, p_reason, jsonb_build_object('role', p_role));
exception
  when check_violation or not_null_violation then
    raise exception 'this cannot be an operator'
      using errcode = 'SL001',
      hint = 'a name is 1 to 100 characters on one line, not admin, owner, operator or service_role; '
        || 'a role is viewer, scanner, operator or admin';
end
$$;

-- Promise: this key is the operator's, and the one before opens nothing any more; with an audit row. Raises SL001 when there
-- is no such operator, or a revoked one. Second call: another key, another audit row. Locks: the operator.
create function audit.rotate_operator(p_name text, p_key_hash bytea, p_actor text, p_reason text default null) returns void
language plpgsql set search_path = '' as $$
begin
  update audit.operators o
  set key_hash = p_key_hash, key_made_at = now(), version = o.version + 1
  where o.name = p_name and o.revoked_at is null;
  if not found then
    raise exception 'there is no operator %', p_name using errcode = 'SL001', hint = 'list shows them';
  end if;
  insert into audit.audit_logs (actor, action, subject, reason)
  values (p_actor, 'operator_rotate', 'operator ' || p_name, p_reason);
end
$$;

-- Promise: the operator's key opens nothing any more; with an audit row; true when it did. Raises SL001 when there was never
-- such an operator. Second call: false, no audit row. Locks: the operator.
create function audit.revoke_operator(p_name text, p_actor text, p_reason text default null) returns boolean
language plpgsql set search_path = '' as $$
begin
  update audit.operators o set revoked_at = now(), version = o.version + 1
  where o.name = p_name and o.revoked_at is null;
  if not found then
    if exists (select from audit.operators o where o.name = p_name) then
      return false;
    end if;
    raise exception 'there is no operator %', p_name using errcode = 'SL001', hint = 'list shows them';
  end if;
  insert into audit.audit_logs (actor, action, subject, reason)
  values (p_actor, 'operator_revoke', 'operator ' || p_name, p_reason);
  return true;
end
$$;

-- Promise: all operators by name, revoked ones too, without their keys. Second call: the same. Locks: none.
create function audit.list_operators()
returns table (
  name text, role text, key_made_at timestamptz, last_used_at timestamptz, revoked_at timestamptz
)
language sql stable set search_path = '' as $$
  select o.name, o.role, o.key_made_at, o.last_used_at, o.revoked_at from audit.operators o order by o.name;
$$;

-- Promise: every operator with the hash of the key, for servers, which know their callers by it, and for the copy in DB2.
-- Second call: the same. Locks: none. Definer, as the next: service_role has no rights to the table.
create function public.known_operators()
returns table (name text, role text, key_hash bytea, is_revoked boolean, version int, age_sec double precision)
language sql stable security definer set search_path = '' as $$
  select o.name, o.role, o.key_hash, o.revoked_at is not null, o.version, 0::double precision from audit.operators o;
$$;

-- Promise: the operator was here within the last minute. Written once a minute at most, whatever is asked: a console asks every
-- second. Second call: nothing. Locks: the operator.
create function public.operator_used(p_name text) returns void
language sql security definer set search_path = '' as $$
  update audit.operators o set last_used_at = now()
  where o.name = p_name and (o.last_used_at is null or o.last_used_at < now() - interval '1 minute');
$$;

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

-- Promise: this key is the operator's, and the key before it no longer works; with an audit row. Raises SL001 if the operator
-- does not exist or is revoked. Second call: another key, another audit row. Locks: the operator.
create function audit.rotate_operator(p_name text, p_key_hash bytea, p_actor text, p_reason text default null) returns void
language plpgsql set search_path = '' as $$
begin
  update audit.operators o
  set key_hash = p_key_hash, key_made_at = now(), version = o.version + 1
  where o.name = p_name and o.revoked_at is null;
  if not found then
    raise exception 'no active operator is called %', p_name using errcode = 'SL001', hint = 'list shows them';
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
    raise exception 'no operator is called %', p_name using errcode = 'SL001', hint = 'list shows them';
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

-- THE CHAIN: committed rows of the audit log are sealed, each seal with a hash over the row and the seal before it. A row that
-- is changed, removed or put among sealed ones does not fit any more, and a chain that is made anew does not have the heads that
-- were written down elsewhere.

-- One row. Rows up to begins_after were there before (adopted) and are not sealed; all later ones up to sealed_to are.
create table audit.chain (
  is_one boolean primary key default true,
  begins_after bigint not null,
  sealed_to bigint not null,
  seals bigint not null,
  head bytea not null,
  constraint there_is_one_chain check (is_one)
);

insert into audit.chain (begins_after, sealed_to, seals, head)
select coalesce(max(a.id), 0), coalesce(max(a.id), 0), 0, sha256('') from audit.audit_logs a;

create table audit.seals (
  seal_no bigint primary key,
  log_id bigint not null,
  row_hash bytea not null,
  chain_hash bytea not null,
  sealed_at timestamptz not null default now(),
  constraint one_seal_per_row unique (log_id)
);

create trigger seals_are_insert_only
  before update or delete or truncate on audit.seals
  for each statement execute function audit.refuse_change();

-- Promise: the hash of a row, the same on every version of Postgres and in every time zone. Second call: the same.
-- Locks: none.
create function audit.row_hash(p_row audit.audit_logs) returns bytea
language sql immutable set search_path = '' as $$
  select sha256(convert_to(jsonb_build_array(
    p_row.id, extract(epoch from p_row.at), p_row.actor, p_row.action, p_row.subject, p_row.reason, p_row.details
  )::text, 'UTF8'));
$$;

-- Promise: up to p_limit rows more are sealed, in the order of their ids; returns how many. A row gets its id before it is
-- committed, so sealing must not pass over an id whose transaction is open: the lock on the log is granted only when no
-- transaction has an uncommitted row, and a transaction that writes after that gets a higher id. If the lock is not free at
-- once, returns 0: the next call tries again, and no operator waits. Raises SL015 not read committed. Second call: the next
-- rows, then 0.
-- Locks: the chain → the log against writers. Definer: service_role has no rights to the chain.
create function public.seal_audit(p_limit int default 1000) returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_chain audit.chain;
  v_row audit.audit_logs;
  v_hash bytea;
  v_sealed int := 0;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform intake.refuse_isolation();
  end if;
  select c.* into v_chain from audit.chain c for update;
  lock table audit.audit_logs in share mode nowait;
  for v_row in
    select a.* from audit.audit_logs a where a.id > v_chain.sealed_to order by a.id limit p_limit
  loop
    v_hash := audit.row_hash(v_row);
    v_chain.seals := v_chain.seals + 1;
    v_chain.head := sha256(v_chain.head || v_hash);
    v_chain.sealed_to := v_row.id;
    v_sealed := v_sealed + 1;
    insert into audit.seals (seal_no, log_id, row_hash, chain_hash)
    values (v_chain.seals, v_row.id, v_hash, v_chain.head);
  end loop;
  if v_sealed > 0 then
    update audit.chain c set sealed_to = v_chain.sealed_to, seals = v_chain.seals, head = v_chain.head;
  end if;
  return v_sealed;
exception
  when lock_not_available then
    return 0;
end
$$;

-- Promise: where the chain stands: how many seals and its head; how many rows wait for one, and for how long the oldest has. It
-- begins and ends where its seals do, whatever audit.chain says.
-- Second call: the same, later. Locks: none. For the owner only, as the two that follow: no role is granted any of them.
create function audit.chain_state()
returns table (
  begins_after bigint, sealed_to bigint, seals bigint, head text, unsealed bigint, oldest_unsealed_sec double precision
)
language sql stable set search_path = '' as $$
  select least(c.begins_after, s.first_id - 1), greatest(c.sealed_to, s.last_id), c.seals, encode(c.head, 'hex'), count(a.id),
    coalesce(extract(epoch from now() - min(a.at)), 0)::double precision
  from audit.chain c
  cross join (select min(e.log_id) as first_id, max(e.log_id) as last_id from audit.seals e) s
  left join audit.audit_logs a on a.id > greatest(c.sealed_to, s.last_id)
  group by c.is_one, s.first_id, s.last_id;
$$;

-- Promise: what is wrong with the rows of ids above p_after up to p_to, which is at most sealed_to: changed, missing or added
-- since they were sealed, or sealed anew. Second call: the same. Locks: none.
create function audit.chain_faults(p_after bigint, p_to bigint) returns table (log_id bigint, fault text)
language sql stable set search_path = '' as $$
  with sealed as (
    select s.*, lag(s.chain_hash, 1, sha256('')) over w as chain_before, lag(s.seal_no, 1, 0::bigint) over w as no_before
    from audit.seals s
    where s.log_id <= p_to
      and s.log_id >= coalesce((select max(b.log_id) from audit.seals b where b.log_id <= p_after), p_after)
    window w as (order by s.log_id)
  ), compared as (
    select coalesce(s.log_id, a.id) as log_id, case
      when a.id is null then 'missing'
      when s.log_id is null then 'added'
      when s.row_hash <> audit.row_hash(a) then 'changed'
      when s.seal_no <> s.no_before + 1 then 'the seal before it is missing'
      when s.chain_hash <> sha256(s.chain_before || s.row_hash) then 'sealed anew'
    end as fault
    from (select l.* from audit.audit_logs l where l.id > p_after and l.id <= p_to) a
    full join (select t.* from sealed t where t.log_id > p_after) s on s.log_id = a.id
  )
  select c.log_id, c.fault from compared c where c.fault is not null order by c.log_id;
$$;

-- Promise: the head of the chain after p_seals seals, as hex; null where it has fewer. Second call: the same, for ever.
-- Locks: none.
create function audit.head_after(p_seals bigint) returns text
language sql stable set search_path = '' as $$
  select encode(s.chain_hash, 'hex') from audit.seals s where s.seal_no = p_seals;
$$;

-- Workers seal too, every five seconds (src/scheduler/sealing.ts).
select cron.schedule('seal_audit', '* * * * *', 'select public.seal_audit(10000)');

-- RULES: every change of a setting that decides how the product behaves leaves a row in the log, also one made in psql.

-- Promise: the fields of p_one that p_other does not have alike; all of them where it is null. Second call: the same.
-- Locks: none.
create function audit.differing(p_one jsonb, p_other jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(p_one) e
  where p_other is null or p_other -> e.key is distinct from e.value;
$$;

-- Trigger, at the end of the transaction. Promise: a rule that was added, changed or removed has a row in the log: that of the
-- function that did it, which names its subject, or one from here, with who was connected, in which role, and what was before
-- and after. tg_argv: how the log calls the thing, and the column of its name. Second call: a second row. Locks: none.
-- Definer: a role that may write a rule need not have rights to the log.
create function audit.note_rule() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  v_before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
  v_after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
  v_subject text := tg_argv[0] || ' ' || (coalesce(v_after, v_before) ->> tg_argv[1]);
begin
  if v_before is not distinct from v_after or exists (
    -- Rows of this transaction have its time.
    select from audit.audit_logs a where a.subject = v_subject and a.at = now() and a.action <> 'rule_change'
    union all
    select from audit.audit_logs a where a.action = 'import' and a.at = now()
  ) then
    return null;
  end if;
  insert into audit.audit_logs (actor, action, subject, details)
  values (
    session_user || coalesce(' as ' || nullif(current_setting('role', true), 'none'), ''), 'rule_change', v_subject,
    jsonb_build_object('table', tg_table_name, 'did', lower(tg_op), 'application', current_setting('application_name'),
      'before', audit.differing(v_before, v_after), 'after', audit.differing(v_after, v_before))
  );
  return null;
end
$$;

create constraint trigger engine_config_are_noted
  after insert or update or delete on public.engine_config
  deferrable initially deferred for each row execute function audit.note_rule('pool', 'pool_id');

create constraint trigger hook_allowed_hosts_are_noted
  after insert or update or delete on intake.hook_allowed_hosts
  deferrable initially deferred for each row execute function audit.note_rule('hook host', 'host');

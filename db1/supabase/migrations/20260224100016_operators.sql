-- OPERATORS: the people who may use the console, the admin API and the command line, each with a key and a role. Their names
-- stand in the audit log. DB2 has a copy, for commands that reach DB2 alone.

-- A row stays when its operator is revoked, so that no other person gets a name that the audit log knows. key_hash is the
-- sha256 of the key: 32 random bytes need no salt, and cannot be guessed from it.
create table audit.operators (
  name text primary key,
  role text not null,
  key_hash bytea not null,
  key_made_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  constraint operator_name_is_one_line check (name ~ '^[^[:space:][:cntrl:]]([^[:cntrl:]]{0,98}[^[:space:][:cntrl:]])?$'),
  -- What the audit log calls a caller without a key of its own.
  constraint operator_name_is_not_taken check (lower(name) !~ '^(admin|owner|operator|service_role)($| \()'),
  constraint operator_role_is_known check (role in ('viewer', 'scanner', 'operator', 'admin')),
  constraint key_hash_is_sha256 check (octet_length(key_hash) = 32),
  constraint one_operator_per_key unique (key_hash)
);

-- Promise: a person of this name and role has this key, with an audit row. One who was revoked comes back. Raises SL001 when
-- there is an operator of this name, and for a name or role that cannot be. Second call: SL001. Locks: the operator.
-- For the owner only, as the two that follow: no role is granted any of them. Definer, as they are: an owner who wants operators to be
-- changed in the console grants them to the role of the servers, which has no rights to the tables (docs/secure.md).
create function audit.add_operator(
  p_name text, p_role text, p_key_hash bytea, p_actor text, p_reason text default null
)
returns void
language plpgsql security definer set search_path = '' as $$
begin
  insert into audit.operators as o (name, role, key_hash) values (p_name, p_role, p_key_hash)
  on conflict (name) do update
    set role = excluded.role, key_hash = excluded.key_hash, key_made_at = now(), revoked_at = null
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
language plpgsql security definer set search_path = '' as $$
begin
  update audit.operators o
  set key_hash = p_key_hash, key_made_at = now()
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
language plpgsql security definer set search_path = '' as $$
begin
  update audit.operators o set revoked_at = now()
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
-- Definer, as the next two: service_role has no rights to the table.
create function public.operator_list()
returns table (
  name text, role text, key_made_at timestamptz, last_used_at timestamptz, revoked_at timestamptz
)
language sql stable security definer set search_path = '' as $$
  select o.name, o.role, o.key_made_at, o.last_used_at, o.revoked_at from audit.operators o order by o.name;
$$;

-- Promise: every operator with the hash of the key, for servers, which know their callers by it, and for the copy in DB2.
-- Second call: the same. Locks: none.
create function public.known_operators()
returns table (name text, role text, key_hash bytea, is_revoked boolean, age_sec double precision)
language sql stable security definer set search_path = '' as $$
  select o.name, o.role, o.key_hash, o.revoked_at is not null, 0::double precision from audit.operators o;
$$;

-- Promise: last_used_at of the operator is at most a minute old. A console asks every second, so the row is written once a minute at
-- most. Second call: changes nothing for a minute. Locks: the operator.
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
  other_hash bytea,
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
    p_row.id, extract(epoch from p_row.at), p_row.actor, p_row.action, p_row.subject, p_row.reason, p_row.details, p_row.written_by,
    p_row.changed
  )::text, 'UTF8'));
$$;

-- Promise: the hash of what else the row holds: columns that an adopted log brought along and that its own writers still fill. Null
-- where none of them is filled. Apart from row_hash, because these columns hold the ids of users and an erasure may change them
-- (audit.is_erased_row). Second call: the same. Locks: none.
create function audit.other_hash(p_row audit.audit_logs) returns bytea
language sql stable set search_path = ''
set timezone = 'UTC' set intervalstyle = 'postgres' set bytea_output = 'hex' set extra_float_digits = 1 as $$
  select sha256(convert_to(jsonb_object_agg(e.key, e.value)::text, 'UTF8')) from jsonb_each(to_jsonb(p_row)) e
  where e.value <> 'null' and e.key <> all ('{id,at,actor,action,subject,reason,details,written_by,changed}'::text[]);
$$;

-- Promise: whether a row of the log, which the chain covers as any other, says that an erasure made the other columns of this row what
-- they are (audit.note_erased_rows). Second call: the same. Locks: none.
create function audit.is_erased_row(p_row audit.audit_logs) returns boolean
language sql stable set search_path = '' as $$
  select exists (
    select from audit.audit_logs e
    where e.subject = 'audit row ' || p_row.id and e.action = 'log_erase'
      and e.details ->> 'other_hash' = coalesce(encode(audit.other_hash(p_row), 'hex'), '')
  );
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
  v_other bytea;
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
    v_other := audit.other_hash(v_row);
    v_chain.seals := v_chain.seals + 1;
    v_chain.head := sha256(v_chain.head || v_hash || coalesce(v_other, ''));
    v_chain.sealed_to := v_row.id;
    v_sealed := v_sealed + 1;
    insert into audit.seals (seal_no, log_id, row_hash, other_hash, chain_hash)
    values (v_chain.seals, v_row.id, v_hash, v_other, v_chain.head);
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
      when s.other_hash is distinct from audit.other_hash(a) and not audit.is_erased_row(a) then 'changed'
      when s.seal_no <> s.no_before + 1 then 'the seal before it is missing'
      when s.chain_hash <> sha256(s.chain_before || s.row_hash || coalesce(s.other_hash, '')) then 'sealed anew'
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

-- RULES: every change of a setting that decides how the product behaves is in the log, with what was before and after, also one made
-- in psql.

-- What this transaction has changed of the rules and no row of the log tells yet. Other transactions see it empty: by its end each
-- change stands in the row of the function that made it (audit.tell_changes) or in a row of its own (audit.tell_rest).
create table audit.untold (
  id bigint generated always as identity primary key,
  subject text not null,
  writer text not null,
  change jsonb not null
);

-- Promise: the fields of p_one that p_other does not have alike; all of them where it is null. Second call: the same.
-- Locks: none.
create function audit.differing(p_one jsonb, p_other jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(p_one) e
  where p_other is null or p_other -> e.key is distinct from e.value;
$$;

-- Promise: a rule as the log tells it: without the fields p_left_out, and of those in p_hashed a short hash. Second call: the same.
-- Locks: none.
create function audit.told_rule(p_rule jsonb, p_left_out text[], p_hashed text[]) returns jsonb
language sql immutable set search_path = '' as $$
  select jsonb_object_agg(e.key, case
    when e.key = any (p_hashed) then to_jsonb(left(encode(sha256(convert_to(e.value #>> '{}', 'UTF8')), 'hex'), 16))
    else e.value
  end)
  from jsonb_each(p_rule) e where e.key <> all (p_left_out);
$$;

-- Trigger. Promise: a rule that was added, changed or removed is among the untold changes, with what was before and after and who was
-- connected. tg_argv: how the log calls the thing, the column of its name, then columns that are not a rule and columns of which the
-- log has a hash. Second call: a second change. Locks: none.
-- Definer, as the next two: a role that may write a rule need not have rights to the log.
create function audit.note_rule() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  v_left_out text[] := coalesce(tg_argv[2], '{}');
  v_hashed text[] := coalesce(tg_argv[3], '{}');
  v_before jsonb := audit.told_rule(case when tg_op <> 'INSERT' then to_jsonb(old) end, v_left_out, v_hashed);
  v_after jsonb := audit.told_rule(case when tg_op <> 'DELETE' then to_jsonb(new) end, v_left_out, v_hashed);
begin
  if v_before is distinct from v_after then
    insert into audit.untold (subject, writer, change)
    values (
      tg_argv[0] || ' ' || (coalesce(v_after, v_before) ->> tg_argv[1]), audit.writer(),
      jsonb_build_object('table', tg_table_name, 'did', lower(tg_op),
        'before', audit.differing(v_before, v_after), 'after', audit.differing(v_after, v_before))
    );
  end if;
  return null;
end
$$;

-- Trigger. Promise: a row of the log about a rule tells all that the transaction has changed of it so far, by whichever statement:
-- a change by hand before a function of the product stands in that function's row. What comes after the row is told by the next one.
-- `sluice import` tells of its rules by its own row, which is its last. Second call: the same. Locks: none.
create function audit.tell_changes() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if coalesce(current_setting('sluice.audit_exception', true), '') = 'import' then
    delete from audit.untold u where new.action = 'import';
  elsif new.action <> 'rule_change' then
    with told as (
      delete from audit.untold u where u.subject = new.subject returning u.id, u.change
    )
    select jsonb_agg(t.change order by t.id) into new.changed from told t;
  end if;
  return new;
end
$$;

create trigger log_tells_changes before insert on audit.audit_logs for each row execute function audit.tell_changes();

-- Trigger, at the end of the transaction. Promise: a change that no row has told gets one. Second call: nothing. Locks: none.
create function audit.tell_rest() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  delete from audit.untold u where u.id = new.id;
  if found then
    insert into audit.audit_logs (actor, action, subject, details)
    values (new.writer, 'rule_change', new.subject,
      new.change || jsonb_build_object('application', current_setting('application_name')));
  end if;
  return null;
end
$$;

create constraint trigger changes_are_told
  after insert on audit.untold
  deferrable initially deferred for each row execute function audit.tell_rest();

create trigger engine_config_are_noted
  after insert or update or delete on public.engine_config
  for each row execute function audit.note_rule('pool', 'pool_id');

create trigger hook_allowed_hosts_are_noted
  after insert or update or delete on intake.hook_allowed_hosts
  for each row execute function audit.note_rule('hook host', 'host');

-- When an operator was last here is not a rule. The log tells one key from another by a short hash.
create trigger operators_are_noted
  after insert or update or delete on audit.operators
  for each row execute function audit.note_rule('operator', 'name', '{last_used_at}', '{key_hash}');

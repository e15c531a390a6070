-- OPERATORS: a copy of DB1's, so that commands that reach DB2 alone know whose key they were given. Servers write it every ten
-- seconds, and `sluice operators` at each change. service_role writes it, because servers do: what another holder of that role puts
-- into it stands until the next copy, and is in the log (audit.note_rule).

create table audit.operators (
  name text primary key,
  role text not null,
  key_hash bytea not null,
  is_revoked boolean not null,
  -- When DB1 said so. Of two copies the later reading stays, whichever is written last.
  read_at timestamptz not null,
  copied_at timestamptz not null,
  constraint operator_role_is_known check (role in ('viewer', 'scanner', 'operator', 'admin')),
  constraint key_hash_is_sha256 check (octet_length(key_hash) = 32)
);

-- Promise: the copy has these operators, as public.known_operators of DB1 gave them at p_read_at, with the hash in hex, and no
-- others: DB1 forgets none. A row that was read later stays. A reading from the future counts as one from now, so that no reading
-- outlasts the next. Second call: the same, and the copy is from now.
-- Locks: the rows, by name. Definer: service_role has no rights to the table.
create function public.copy_operators(p_operators jsonb, p_read_at timestamptz) returns void
language sql security definer set search_path = '' as $$
  delete from audit.operators o
  where o.read_at < least(p_read_at, now())
    and not exists (select from jsonb_to_recordset(p_operators) g (name text) where g.name = o.name);
  insert into audit.operators as o (name, role, key_hash, is_revoked, read_at, copied_at)
  select g.name, g.role, decode(g.key_hash, 'hex'), g.is_revoked, least(p_read_at, now()), now()
  from jsonb_to_recordset(p_operators) g (name text, role text, key_hash text, is_revoked boolean)
  order by g.name
  on conflict (name) do update
    set role = excluded.role, key_hash = excluded.key_hash, is_revoked = excluded.is_revoked, read_at = excluded.read_at,
      copied_at = excluded.copied_at
    where o.read_at <= excluded.read_at;
$$;

-- Promise: every operator that the copy has; age_sec is how long ago it was made. Second call: the same. Locks: none.
-- Definer: as copy_operators.
create function public.known_operators()
returns table (name text, role text, key_hash bytea, is_revoked boolean, age_sec double precision)
language sql stable security definer set search_path = '' as $$
  select o.name, o.role, o.key_hash, o.is_revoked, extract(epoch from now() - o.copied_at)::double precision
  from audit.operators o;
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
    perform public.refuse_isolation();
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
do $$
begin
  if pg_catalog.to_regnamespace('cron') is not null and pg_catalog.to_regproc('cron.run_job') is null then
    perform cron.schedule('seal_audit', '* * * * *', 'select public.seal_audit(10000)');
  end if;
end
$$;

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

-- When an endpoint was last compared with its provider is not a rule.
create trigger webhook_endpoints_are_noted
  after insert or update or delete on public.webhook_endpoints
  for each row execute function audit.note_rule('webhook endpoint', 'name', '{compared_at}');

create trigger webhook_handlers_are_noted
  after insert or update or delete on public.webhook_handlers
  for each row execute function audit.note_rule('webhook handler', 'name');

create trigger payment_rules_are_noted
  after insert or update or delete on public.payment_rules
  for each row execute function audit.note_rule('payment rule', 'event_type');

create trigger secret_names_are_noted
  after insert or update or delete on webhook.secret_names
  for each row execute function audit.note_rule('secret name', 'name');

create trigger call_sites_are_noted
  after insert or update or delete on public.call_sites
  for each row execute function audit.note_rule('call site', 'site_id');

-- When the copy was made is not a rule. The log tells one key from another by a short hash.
create trigger operators_are_noted
  after insert or update or delete on audit.operators
  for each row execute function audit.note_rule('operator', 'name', '{copied_at,read_at}', '{key_hash}');

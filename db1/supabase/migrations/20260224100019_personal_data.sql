-- PERSONAL DATA: what is here about one user, as JSON, and how a user is erased: the id is replaced by a random name wherever it
-- stands, and the key of the pseudonym in the audit log is destroyed (docs/decisions/0035-personal-data.md). Sums and keys that
-- catch duplicates stay. In steps, each its own transaction, that can be cut short and go on. The same in DB2; the program goes
-- through all databases (_shared/users/erase.ts).

-- One row for each table that can hold something about a user: what export reads and erase changes. A table that is not here is
-- on the list of exceptions in test/operators/personal_tables.ts, with a reason. The owner may add tables of the project's own.
--   turn             the order in which tables are gone through
--   key_columns      the primary key, by which a table is read page by page
--   user_column      holds the id. Without it a row is the user's where json_columns or text_columns name the user, or bytes among
--                    cleared_columns hold the id
--   is_indexed       an index leads from user_column to the rows
--   verified_by      over the row r: it is the verified user's. Without it all rows are
--   renamed_columns  hold the replacement afterwards, as user_column does
--   json_columns, text_columns   have the replacement where the id stood (json_by, audit.text_without)
--   cleared_columns  are null afterwards; is_deleted: the row is gone
--   kept_columns     stay as they are: they hold no user, or catch duplicates
--   also             a function of the erasure and the keys of the changed rows, called after them
--   erased_when      over r: steps change the columns above in such rows only
--   busy_when        over r: a worker has the row now, and the erasure waits
-- Every column that is in none of the lists, such as those that an adopted table brought along or that the owner added, is searched and
-- erased by its type (audit.other_columns).
create table audit.personal_places (
  place text primary key,
  turn int not null,
  key_columns text[] not null,
  user_column text,
  is_indexed boolean not null default false,
  verified_by text,
  renamed_columns text[] not null default '{}',
  json_columns text[] not null default '{}',
  json_by text not null default 'audit.json_without',
  text_columns text[] not null default '{}',
  cleared_columns text[] not null default '{}',
  kept_columns text[] not null default '{}',
  is_deleted boolean not null default false,
  also text,
  erased_when text,
  busy_when text,
  constraint one_place_per_turn unique (turn),
  constraint place_has_a_key check (cardinality(key_columns) > 0)
);

insert into audit.personal_places (turn, place, key_columns, user_column, is_indexed, verified_by, renamed_columns, text_columns,
  cleared_columns, also, erased_when)
values
  -- Claims that are on their way change with their messages (public.erase_claims), after the ledger was told.
  (10, 'public.claims', '{claim_id}', 'user_id', true, 'r.verified', '{request_id}', '{end_reason}', '{address}',
    'intake.erase_slots', $$ r.freed_at is not null or r.state = 'committed' $$),
  -- Slots that were reserved by hand: those of claims change with them.
  (20, 'public.inventory_slots', '{id}', 'locked_by', false,
    'coalesce((select c.verified from public.claims c where c.slot_id = r.id and c.freed_at is null), true)', '{}', '{}', '{}',
    null, null);

insert into audit.personal_places (turn, place, key_columns, user_column, verified_by, json_columns)
values
  (15, 'public.orders', '{order_id}', 'user_id', 'r.verified', '{}'),
  -- What Stripe was asked for. It is asked for again only while it has not answered; then it refuses other parameters, and the
  -- closer finds the session by its metadata.
  (16, 'public.checkouts', '{order_id,n}', null, '(select o.verified from public.orders o where o.order_id = r.order_id)', '{params}');

insert into audit.personal_places (turn, place, key_columns, verified_by, json_columns, json_by, busy_when)
values
  -- A message that was put there by hand: a worker that has it would write its ticket under the old name.
  (30, 'pgmq.q_intake_queue', '{msg_id}', 'intake.is_verified(r.message)', '{message}', 'audit.json_without',
    $$ r.read_ct > 0 and r.vt > clock_timestamp() and r.vt < 'infinity' $$),
  (31, 'pgmq.a_intake_queue', '{msg_id}', 'intake.is_verified(r.message)', '{message}', 'audit.json_without', null),
  (32, 'pgmq.q_intake_dlq', '{msg_id}', 'intake.is_verified(r.message)', '{message}', 'audit.json_without', null),
  (33, 'pgmq.a_intake_dlq', '{msg_id}', 'intake.is_verified(r.message)', '{message}', 'audit.json_without', null),
  -- On its way to DB2, where it is found next.
  (40, 'pgmq.q_event_inbox', '{msg_id}', null, '{message}', 'intake.delivery_without', 'r.vt > clock_timestamp()'),
  (41, 'pgmq.a_event_inbox', '{msg_id}', null, '{message}', 'intake.delivery_without', null),
  (42, 'pgmq.q_event_inbox_dlq', '{msg_id}', null, '{message}', 'intake.delivery_without', null),
  (43, 'pgmq.a_event_inbox_dlq', '{msg_id}', null, '{message}', 'intake.delivery_without', null);

-- The shape of an error can hold a user's name that has no digit in it.
insert into audit.personal_places (turn, place, key_columns, text_columns) values (80, 'audit.issues', '{id}', '{error,example_error}');

-- A pool on its way between two cells. An export reads it (intake.packed_of); an erasure begins when there is none
-- (audit.hold_pools).
insert into audit.personal_places (turn, place, key_columns, verified_by, text_columns, kept_columns, erased_when)
values (50, 'intake.parcels', '{pool_id,version,seq}', 'true', '{body}', '{kind}', 'false');

insert into audit.personal_places (turn, place, key_columns, json_columns, text_columns, also, erased_when)
values (90, 'audit.audit_logs', '{id}', '{details}', '{actor,subject,reason}', 'audit.note_erased_rows',
  'r.id <= (select c.begins_after from audit.chain c)');

-- What stays in each. Columns of types that hold no text need no list.
update audit.personal_places p set kept_columns = k.kept::text[]
from (values
  ('public.claims', '{pool_id,slot_id,request_key,secret_hash,challenge,committed_by,order_id,replaces}'),
  ('public.inventory_slots', '{pool_id,label}'),
  ('public.orders', '{pool_id,currency,tenant,payment_key,trace}'),
  ('public.checkouts', '{idempotency_key,tenant,session_id,url,payment_intent,state,lease_token}'),
  ('audit.issues', '{kind,lane,type,example_id,resolved_by}'),
  ('audit.audit_logs', '{action,written_by,changed}')
) k (place, kept)
where p.place = k.place;

-- Promise: no pool is between two cells, and none begins to be before this transaction ends; afterwards pool_pack sees the
-- erasure. Raises SL011 where one is. Second call: the same. Locks: moves (advisory).
create function audit.hold_pools() returns void
language plpgsql set search_path = '' as $$
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('sluice erasure', 0));
  if exists (select from intake.parcels) then
    raise exception 'a pool is on its way between two cells'
      using errcode = 'SL011', hint = 'npx sluice pools move goes on with a move that was cut short';
  end if;
end
$$;

-- A user who is being erased. The row goes with the last step: after it the database does not know the id any more. verified is
-- null where both namespaces are erased. turn and after say where the pass stands. A pass that changes nothing is the last one.
create table audit.erasures (
  user_id text primary key,
  replacement text not null,
  verified boolean,
  actor text not null,
  reason text,
  touched_at timestamptz not null default now(),
  turn int not null default 0,
  after jsonb,
  pass_changed bigint not null default 0,
  is_clean boolean not null default false,
  is_noted boolean not null default false,
  changed jsonb not null default '{}',
  constraint replacement_is_random check (replacement ~ '^erased:[0-9a-f]{32}$')
);

-- Trigger. Promise: an erasure never changes id, time or action of a row of the log. Of a row in the chain it changes only columns that
-- an adopted log brought along, which the seal's row_hash does not cover. Second call: the same. Locks: none.
create function audit.refuse_sealed() returns trigger
language plpgsql set search_path = '' as $$
begin
  if current_setting('sluice.audit_exception', true) = 'erase' and (
    (new.id, new.at, new.action) is distinct from (old.id, old.at, old.action)
    or old.id > (select c.begins_after from audit.chain c) and audit.row_hash(new) <> audit.row_hash(old)
  ) then
    raise exception 'row % of the log is sealed', old.id using errcode = 'restrict_violation';
  end if;
  return new;
end
$$;

create trigger sealed_rows_stay before update on audit.audit_logs for each row execute function audit.refuse_sealed();

-- Promise: the log says of each of these rows that came after the beginning of the chain what its other columns are since the erasure:
-- so a change that an erasure made is told from any other (audit.is_erased_row). Second call: a second row. Locks: none.
create function audit.note_erased_rows(p_erasure audit.erasures, p_keys jsonb) returns void
language sql set search_path = '' as $$
  insert into audit.audit_logs (actor, action, subject, details)
  select p_erasure.actor, 'log_erase', 'audit row ' || a.id,
    jsonb_build_object('replacement', p_erasure.replacement, 'other_hash', coalesce(encode(audit.other_hash(a), 'hex'), ''))
  from jsonb_array_elements(p_keys) k
  join audit.audit_logs a on a.id = (k ->> 'id')::bigint
  where a.id > (select c.begins_after from audit.chain c)
  order by a.id;
$$;

-- Promise: the columns of the place that are in none of its lists and can hold the id, each with two expressions in SQL over the row r:
-- whether it does, and what it holds instead. $1 is the id, $2 the replacement, $3 the id as bytes. Texts, JSON and lists of texts have
-- the replacement; a uuid has its digits, unless it is a foreign key; every other type is null afterwards. A column user_id of any
-- type is compared as a whole. Second call: the same, until the table changes. Locks: none.
create function audit.other_columns(p_place audit.personal_places) returns table (name text, finds text, becomes text)
language sql stable set search_path = '' as $$
  with typed as (
    select a.attname::text as name, format('r.%I', a.attname) as ref, format_type(a.atttypid, a.atttypmod) as type,
      coalesce(nullif(t.typbasetype, 0), t.oid) as base, t.typcategory as category,
      exists (select from pg_catalog.pg_constraint k
        where k.conrelid = a.attrelid and k.contype = 'f' and a.attnum = any (k.conkey)) and not a.attnotnull as is_reference
    from pg_catalog.pg_attribute a
    join pg_catalog.pg_type t on t.oid = a.atttypid
    where a.attrelid = pg_catalog.to_regclass(p_place.place) and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      and a.attname::text <> all (p_place.key_columns || p_place.renamed_columns || p_place.json_columns || p_place.text_columns
        || p_place.cleared_columns || p_place.kept_columns || coalesce(p_place.user_column, ''))
  ), kinds as (
    select c.*, case
      when c.base in ('json'::regtype, 'jsonb'::regtype) then 'json'
      when c.base in ('text[]'::regtype, 'varchar[]'::regtype) then 'texts'
      when c.base = 'uuid'::regtype then 'uuid'
      when c.base = 'bytea'::regtype then 'bytes'
      when c.category = 'S' then 'text'
      when c.name = 'user_id' then 'number'
      when c.category in ('U', 'C') or c.base = 'uuid[]'::regtype then 'any'
    end as kind
    from typed c
  ), found as (
    select c.*, case c.kind
      when 'json' then format('audit.json_without(%1$s::jsonb, $1, $2) is distinct from %1$s::jsonb', c.ref)
      when 'uuid' then format('%s::text = lower($1)', c.ref)
      when 'bytes' then format('coalesce(position($3 in %s), 0) > 0', c.ref)
      when 'number' then format('%s::text = $1', c.ref)
      else format('(audit.text_without(%1$s::text, $1, $2) is distinct from %1$s::text%2$s)', c.ref,
        case when c.name = 'user_id' then format(' or %s::text = $1', c.ref) end)
    end as finds
    from kinds c where c.kind is not null
  )
  select c.name, c.finds, format('case when %s then %s else %s end', c.finds, case
    when c.is_reference then 'null'
    when c.kind = 'json' then format('audit.json_without(%s::jsonb, $1, $2)::%s', c.ref, c.type)
    when c.kind = 'uuid' then 'right($2, 32)::uuid'
    when c.kind = 'texts' then format('array(select audit.text_without(e.e::text, $1, $2) from unnest(%s) with ordinality e (e, n)
      order by e.n)::%s', c.ref, c.type)
    when c.kind = 'text' then format('(case when %1$s::text = $1 then $2 else audit.text_without(%1$s::text, $1, $2) end)::%2$s',
      c.ref, c.type)
    else 'null'
  end, c.ref)
  from found c;
$$;

-- Promise: a condition in SQL over the row r that holds for rows of the user; $1 is the id, $2 the replacement, $3 the id as bytes,
-- $4 the namespace (null: both). For a step (p_for_step) only for rows in which it has something to change.
-- Second call: the same. Locks: none.
create function audit.found_by(p_place audit.personal_places, p_for_step boolean) returns text
language plpgsql stable set search_path = '' as $$
begin
  return format('((%s) and (%s)%s) and ($4 is null or (%s) = $4)', case
    when p_place.user_column is not null then format('r.%I = $1', p_place.user_column)
    else concat_ws(' or ',
      (select string_agg(format('%s(r.%I, $1, $2) is distinct from r.%I', p_place.json_by::regproc, c, c), ' or ')
        from unnest(p_place.json_columns) c),
      (select string_agg(format('audit.text_without(r.%I, $1, $2) is distinct from r.%I', c, c), ' or ')
        from unnest(p_place.text_columns) c),
      (select string_agg(format('coalesce(position($3 in r.%I), 0) > 0', a.attname), ' or ')
        from pg_catalog.pg_attribute a
        where a.attrelid = p_place.place::regclass and a.attname = any (p_place.cleared_columns)
          and a.atttypid = 'bytea'::regtype)
    )
  end, case when p_for_step then coalesce(p_place.erased_when, 'true') else 'true' end,
  (select string_agg(' or ' || o.finds, '') from audit.other_columns(p_place) o), coalesce(p_place.verified_by, 'true'));
end
$$;

-- Promise: the place of this name as a step and an export read it: by its index only where no other column has to be searched. Null
-- where the list has no such place. Second call: the same. Locks: none.
create function audit.place_of(p_place text) returns audit.personal_places
language plpgsql stable set search_path = '' as $$
declare
  v_place audit.personal_places := (select p from audit.personal_places p where p.place = p_place);
begin
  v_place.is_indexed := v_place.is_indexed and not exists (select from audit.other_columns(v_place));
  return v_place;
end
$$;

-- Promise: the columns of the key, each with p_prefix before it. Second call: the same. Locks: none.
create function audit.keys_of(p_place audit.personal_places, p_prefix text) returns text
language sql immutable set search_path = '' as $$
  select string_agg(format('%s.%I', p_prefix, k.name), ', ' order by k.ordinality)
  from unnest(p_place.key_columns) with ordinality k (name);
$$;

-- Promise: up to p_limit rows behind p_after in the order of their keys were looked at (of an indexed place at rows of the user
-- only): own are those of the user as JSON, or their keys alone; last_key is that of the last row, null where no row is left behind
-- it; is_busy says that a worker has one of them. Second call: the same. Locks: none.
-- Dynamic, as all that goes by the list: so export, erase and their test cannot disagree about a table.
create function audit.read_page(
  p_place audit.personal_places, p_user_id text, p_verified boolean, p_after jsonb, p_limit int, p_keys_only boolean,
  out own jsonb, out last_key jsonb, out is_busy boolean
)
language plpgsql stable set search_path = ''
set enable_seqscan = off as $$
declare
  v_finds text := audit.found_by(p_place, p_keys_only);
  -- Spares a walk over rows in which a step has nothing to change.
  v_walked text := coalesce('(' || case
    when p_keys_only and not exists (select from audit.other_columns(p_place)) then p_place.erased_when
  end || ')', 'true');
begin
  execute format(
    'with page as materialized (
      select k.key, f.is_found, f.is_found and %1$s as is_busy,
        case when f.is_found and not $7 then to_jsonb(r) else k.key end as row
      from %3$s r
      -- "offset 0" keeps the condition from being looked at twice.
      cross join lateral (select %4$s as is_found offset 0) f
      cross join lateral (select to_jsonb(k) as key from (select %2$s) k) k
      where %5$s and %6$s and %7$s
      order by %2$s limit $6
    ), numbered as (
      select p.*, row_number() over () as n from page p
    )
    select coalesce(jsonb_agg(p.row order by p.n) filter (where p.is_found), ''[]''),
      jsonb_agg(p.key) filter (where p.n = $6) -> 0, coalesce(bool_or(p.is_busy), false)
    from numbered p',
    coalesce('(' || p_place.busy_when || ')', 'false'), audit.keys_of(p_place, 'r'), p_place.place::regclass,
    case when p_place.is_indexed then 'true' else v_finds end, case when p_place.is_indexed then v_finds else 'true' end,
    v_walked,
    case when p_after is null then 'true' else format('(%s) > (select %s from jsonb_populate_record(null::%s, $5) k)',
      audit.keys_of(p_place, 'r'), audit.keys_of(p_place, 'k'), p_place.place::regclass) end
  ) into own, last_key, is_busy
  using p_user_id, 'erased:', convert_to(p_user_id, 'UTF8'), p_verified, p_after, p_limit, p_keys_only;
end
$$;

-- Promise: the audit log says once, under the pseudonym, that this user is being erased, by whom and why. Second call: nothing.
-- Locks: the erasure.
create function audit.note_erasure(p_erasure audit.erasures) returns void
language plpgsql set search_path = '' as $$
declare
  v_pseudonym text;
begin
  update audit.erasures e set is_noted = true where e.user_id = p_erasure.user_id and not e.is_noted;
  if not found then
    return;
  end if;
  v_pseudonym := audit.pseudonym(p_erasure.user_id);
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_erasure.actor, 'user_erase', 'user ' || v_pseudonym,
    audit.text_without(p_erasure.reason, p_erasure.user_id, v_pseudonym),
    jsonb_build_object('replacement', p_erasure.replacement, 'verified', p_erasure.verified));
end
$$;

-- Promise: the rows of the place with these keys are not the user's any more; returns how many there were. The one exception to
-- tables that are insert only. Second call: changes nothing more. Locks: the rows, then those of the place's function.
create function audit.erase_rows(p_erasure audit.erasures, p_place audit.personal_places, p_keys jsonb) returns int
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  -- Of a row that another column led to, and that is another user's, the listed columns stay.
  v_is_own text := format('(%s) and %s', coalesce(p_place.erased_when, 'true'),
    case when p_place.user_column is null then 'true' else format('r.%I = $1', p_place.user_column) end);
  v_sets text := concat_ws(', ',
    (select string_agg(format('%1$I = case when %2$s then %3$s else r.%1$I end', e.name, v_is_own, e.becomes), ', ')
      from (
        select p_place.user_column as name, '$2' as becomes where p_place.user_column is not null
        union all
        select c, format('case when r.%I is not null then $2 end', c) from unnest(p_place.renamed_columns) c
        union all
        select c, format('%s(r.%I, $1, $2)', p_place.json_by::regproc, c) from unnest(p_place.json_columns) c
        union all
        select c, format('audit.text_without(r.%I, $1, $2)', c) from unnest(p_place.text_columns) c
        union all
        select c, 'null' from unnest(p_place.cleared_columns) c
      ) e),
    (select string_agg(format('%I = %s', o.name, o.becomes), ', ') from audit.other_columns(p_place) o)
  );
  v_changed int;
begin
  perform set_config('sluice.audit_exception', 'erase', true);
  execute format(
    case when p_place.is_deleted then 'delete from %1$s r using' else 'update %1$s r set %4$s from' end
      || ' jsonb_populate_recordset(null::%1$s, $4) k where (%2$s) = (%3$s)',
    p_place.place::regclass, audit.keys_of(p_place, 'r'), audit.keys_of(p_place, 'k'), v_sets
  ) using p_erasure.user_id, p_erasure.replacement, convert_to(p_erasure.user_id, 'UTF8'), p_keys;
  get diagnostics v_changed = row_count;
  if p_place.also is not null and v_changed > 0 then
    execute format('select %s($1, $2)', p_place.also::regproc) using p_erasure, p_keys;
  end if;
  perform set_config('sluice.audit_exception', '', true);
  if v_changed > 0 then
    perform audit.note_erasure(p_erasure);
    update audit.erasures e
    set pass_changed = e.pass_changed + v_changed, changed = e.changed || jsonb_build_object(
      p_place.place, coalesce((e.changed ->> p_place.place)::bigint, 0) + v_changed)
    where e.user_id = p_erasure.user_id;
  end if;
  return v_changed;
end
$$;

-- Promise: the user is being erased from this database, of one namespace or (null) of both, under p_replacement or a name that is
-- made here; returns the name. Raises SL001 for what cannot be the id of a user, SL011 while a pool is between two cells.
-- Second call: the same name, and the erasure goes on where it stood; a second namespace widens it to both. Tables that were
-- found clean more than ten minutes ago are looked at again. Locks: those of audit.hold_pools → the erasure. Definer, as all
-- that follow: service_role has no rights to the tables.
create function public.begin_erasure(
  p_user_id text, p_verified boolean, p_replacement text, p_actor text, p_reason text default null
)
returns text
language plpgsql security definer set search_path = '' as $$
declare
  v_replacement text;
begin
  if (length(p_user_id) between 1 and 200) is not true or audit.is_replacement(p_user_id) then
    raise exception 'this is not the id of a user'
      using errcode = 'SL001', hint = 'an id has 1 to 200 characters, and erased:… stands for one who is erased';
  end if;
  perform audit.hold_pools();
  insert into audit.erasures as e (user_id, replacement, verified, actor, reason)
  values (p_user_id, coalesce(p_replacement, 'erased:' || replace(gen_random_uuid()::text, '-', '')), p_verified, p_actor, p_reason)
  on conflict (user_id) do update
    set replacement = coalesce(p_replacement, e.replacement), actor = excluded.actor, reason = excluded.reason,
      verified = case when e.verified = excluded.verified then e.verified end,
      turn = case when e.verified is not distinct from excluded.verified then e.turn else 0 end,
      after = case when e.verified is not distinct from excluded.verified then e.after end,
      is_clean = e.is_clean and e.verified is not distinct from excluded.verified and e.touched_at > now() - interval '10 minutes'
  returning e.replacement into v_replacement;
  return v_replacement;
end
$$;

-- Promise: up to p_limit rows of one place were looked at, twenty times as many where a column tells whose they are, and those of
-- the user changed: which place, and how many. is_clean: a whole pass has found nothing. Raises SL001 where no erasure of
-- this user was begun, SL011 while a worker has one of the rows.
-- Second call: the next rows; is_clean again at the end. Locks: the erasure → those of audit.erase_rows.
create function public.erase_step(p_user_id text, p_limit int default 500)
returns table (place text, changed int, is_clean boolean)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_erasure audit.erasures;
  v_place audit.personal_places;
  v_page record;
  v_changed int := 0;
  v_limit int;
begin
  select e.* into v_erasure from audit.erasures e where e.user_id = p_user_id for update;
  if not found then
    raise exception 'this user is not being erased' using errcode = 'SL001', hint = 'begin_erasure comes first';
  end if;
  v_place := audit.place_of((
    select p.place from audit.personal_places p
    where p.turn >= v_erasure.turn and not v_erasure.is_clean and pg_catalog.to_regclass(p.place) is not null
      and (p.verified_by is not null or coalesce(v_erasure.verified, true))
    order by p.turn limit 1
  ));
  if v_place.place is null then
    update audit.erasures e
    set turn = 0, after = null, is_clean = e.pass_changed = 0, pass_changed = 0, touched_at = now()
    where e.user_id = p_user_id returning e.is_clean into v_erasure.is_clean;
    return query select null::text, 0, v_erasure.is_clean;
    return;
  end if;
  v_limit := p_limit * case when v_place.user_column is null or v_place.is_indexed then 1 else 20 end;
  v_page := audit.read_page(v_place, p_user_id, v_erasure.verified, case when not v_place.is_indexed then v_erasure.after end,
    v_limit, true);
  if v_page.is_busy then
    raise exception 'a worker has a row of % that is the user''s', v_place.place
      using errcode = 'SL011', hint = 'ask again when the worker is done';
  elsif v_page.own <> '[]' then
    v_changed := audit.erase_rows(v_erasure, v_place, v_page.own);
  end if;
  update audit.erasures e
  set turn = case when v_page.last_key is null then v_place.turn + 1 else v_place.turn end, after = v_page.last_key, touched_at = now()
  where e.user_id = p_user_id;
  return query select v_place.place, v_changed, false;
end
$$;

-- Promise: the erasure is over in this database: the key of the user's pseudonym is destroyed, unless the verified user of the name
-- stays, and neither the id nor the erasure is here any more. Returns the replacement and how many rows of each table were
-- changed, none if the user was not known here. The planner's statistics, which hold values, are made anew.
-- Raises SL001 where the last pass has found something. Second call: no row. Locks: the erasure → the key.
create function public.finish_erasure(p_user_id text) returns table (replacement text, changed jsonb)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
  v_erasure audit.erasures;
  v_place text;
begin
  select e.* into v_erasure from audit.erasures e where e.user_id = p_user_id for update;
  if not found then
    return;
  elsif not v_erasure.is_clean then
    raise exception 'this user is not erased yet' using errcode = 'SL001', hint = 'erase_step comes first';
  end if;
  if coalesce(v_erasure.verified, true) and exists (select from audit.user_keys k where k.user_id = p_user_id) then
    perform audit.note_erasure(v_erasure);
    delete from audit.user_keys k where k.user_id = p_user_id;
    v_erasure.changed := v_erasure.changed || '{"audit.user_keys": 1}';
  end if;
  delete from audit.erasures e where e.user_id = p_user_id;
  if v_erasure.changed <> '{}' then
    for v_place in select pg_catalog.to_regclass(p.place) from audit.personal_places p
      where pg_catalog.to_regclass(p.place) is not null union all select 'audit.user_keys'
    loop
      execute format('analyze %s', v_place);
    end loop;
  end if;
  return query select v_erasure.replacement, v_erasure.changed;
end
$$;

-- Promise: how many erasures have stood still for ten minutes: their programs were cut short, and until they go on this database
-- knows the ids. Second call: the same, later. Locks: none. For the owner only: no role is granted it.
create function audit.unfinished_erasures() returns int
language sql stable set search_path = '' as $$
  select count(*)::int from audit.erasures e where e.touched_at < now() - interval '10 minutes';
$$;

-- Promise: the places that can hold something about a user of this namespace (null: both), in their order. Second call: the same.
-- Locks: none.
create function public.personal_places(p_verified boolean) returns setof text
language sql stable security definer set search_path = '' as $$
  select p.place from audit.personal_places p
  where pg_catalog.to_regclass(p.place) is not null and (p.verified_by is not null or coalesce(p_verified, true))
  order by p.turn;
$$;

-- Promise: the rows of the user in up to 20 parcels behind p_after, each as it was in its table, with the kind of its parcel: other users'
-- rows stand in the same parcel. last_key is null after the last parcel. Second call: the same. Locks: none.
create function intake.packed_of(p_user_id text, p_verified boolean, p_after jsonb, out own jsonb, out last_key jsonb)
language sql stable set search_path = '' as $$
  with page as materialized (
    select p.*, row_number() over (order by p.pool_id, p.version, p.seq) as n
    from intake.parcels p
    where p_after is null or (p.pool_id, p.version, p.seq)
      > (p_after ->> 'pool_id', (p_after ->> 'version')::bigint, (p_after ->> 'seq')::int)
    order by p.pool_id, p.version, p.seq limit 20
  ), packed as (
    select p.n, e.ordinality, e.value || jsonb_build_object('parcel', p.kind) as row, case p.kind
      when 'letters' then intake.is_verified(e.value -> 'message')
      when 'checkouts' then (
        select (o ->> 'verified')::boolean from intake.parcels q cross join jsonb_array_elements(q.body::jsonb) o
        where q.pool_id = p.pool_id and q.version = p.version and q.kind = 'orders' and o -> 'order_id' = e.value -> 'order_id'
      )
      else (e.value ->> 'verified')::boolean
    end as verified
    from page p cross join jsonb_array_elements(p.body::jsonb) with ordinality e
    where audit.json_without(e.value, p_user_id, 'erased:') <> e.value
  )
  select
    (select jsonb_agg(k.row order by k.n, k.ordinality) from packed k where p_verified is null or coalesce(k.verified, true) = p_verified),
    (select jsonb_build_object('pool_id', p.pool_id, 'version', p.version, 'seq', p.seq) from page p where p.n = 20);
$$;

-- Promise: how many times a pool has left this cell or come to it. What reads several cells one after another compares: a pool that
-- moved meanwhile may have been in none of them. Second call: the same, or more. Locks: none.
create function public.pool_moves() returns bigint
language sql stable security definer set search_path = '' as $$
  select count(*) from audit.audit_logs a where a.action in ('pool_move_out', 'pool_move_in');
$$;

-- Promise: what the place holds about the user among up to p_limit rows behind p_after, as JSON; last_key is null after the last
-- row. Of the audit log also rows under the user's pseudonym. Raises SL001 for a place that is not on the list. Second call: the same,
-- and what is new. Locks: none.
create function public.export_user(p_user_id text, p_verified boolean, p_place text, p_after jsonb, p_limit int)
returns table (own jsonb, last_key jsonb)
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  -- What proves something to us and tells nothing about the user.
  c_ours constant text[] := '{secret_hash,request_key,challenge,lease_token,lane}';
  v_place audit.personal_places := audit.place_of(p_place);
  v_page record;
  v_pseudonym text := (
    select 'user:' || left(encode(sha256(k.key || convert_to(p_user_id, 'UTF8')), 'hex'), 32)
    from audit.user_keys k where k.user_id = p_user_id
  );
begin
  if v_place.place is null then
    raise exception 'the list of places has no %', p_place using errcode = 'SL001';
  elsif p_place = 'audit.audit_logs' then
    select jsonb_agg(to_jsonb(a) order by a.id) filter (
        where strpos(a::text, v_pseudonym) > 0 or audit.text_without(a::text, p_user_id, '') <> a::text) as own,
      case when count(*) = p_limit then jsonb_build_object('id', max(a.id)) end as last_key
    into v_page
    from (select l.* from audit.audit_logs l where l.id > coalesce((p_after ->> 'id')::bigint, 0) order by l.id limit p_limit) a;
  elsif p_place = 'intake.parcels' then
    v_page := intake.packed_of(p_user_id, p_verified, p_after);
  else
    v_page := audit.read_page(v_place, p_user_id, p_verified, p_after, p_limit, false);
  end if;
  return query
  select coalesce(jsonb_agg(e.value - c_ours order by e.ordinality), '[]'), v_page.last_key
  from jsonb_array_elements(v_page.own) with ordinality e;
end
$$;

-- Promise: the audit log says, under the pseudonym, who exported what this database holds about the user. Second call: a second row.
-- Locks: those of audit.pseudonym.
create function public.note_export(p_user_id text, p_verified boolean, p_actor text, p_reason text default null) returns void
language plpgsql security definer set search_path = '' as $$
declare
  v_pseudonym text := audit.pseudonym(p_user_id);
begin
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'user_export', 'user ' || v_pseudonym, audit.text_without(p_reason, p_user_id, v_pseudonym),
    jsonb_build_object('verified', p_verified));
end
$$;

create trigger personal_places_are_noted
  after insert or update or delete on audit.personal_places
  for each row execute function audit.note_rule('personal place', 'place');

-- Promise: the slots of these claims are not held by the user's name any more. Second call: changes nothing.
-- Locks: the claims, held by the caller → those of share_pools → slots.
create function intake.erase_slots(p_erasure audit.erasures, p_keys jsonb) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim_ids uuid[] := array(select (k ->> 'claim_id')::uuid from jsonb_array_elements(p_keys) k);
  v_slot_ids uuid[] := array(select c.slot_id from public.claims c where c.claim_id = any (v_claim_ids));
begin
  perform intake.share_pools(array(select distinct c.pool_id from public.claims c where c.claim_id = any (v_claim_ids)));
  update public.inventory_slots s
  set locked_by = p_erasure.replacement
  where s.id = any (v_slot_ids) and s.locked_by = p_erasure.user_id;
end
$$;

-- Promise: a delivery of the inbox with p_new in place of the id, in what was read and in what its body holds. Then it has no
-- body: of one that was not read the body becomes the payload first. Second call: the same. Locks: none.
create function intake.delivery_without(p_message jsonb, p_user_id text, p_new text) returns jsonb
language plpgsql immutable set search_path = '' as $$
declare
  v_read jsonb := audit.json_without(p_message - 'body', p_user_id, p_new);
  v_body text;
  v_payload text;
begin
  begin
    v_body := convert_from(decode(p_message ->> 'body', 'base64'), 'UTF8');
    -- As it is stored, and without what JSON writes in another way.
    v_payload := coalesce(audit.json_without(v_body::jsonb, p_user_id, p_new)::text, v_body);
    if v_payload::jsonb = v_body::jsonb and v_read = p_message - 'body' then
      return p_message;
    end if;
  exception when others then
    -- Not JSON, or not text: the events were read from it.
    v_payload := null;
    if v_read = p_message - 'body' and audit.text_without(v_body, p_user_id, p_new) is not distinct from v_body then
      return p_message;
    end if;
  end;
  if v_payload is not null and jsonb_typeof(v_read #> '{events,0}') = 'object' and v_read #>> '{events,0,payload}' is null then
    v_read := jsonb_set(v_read, '{events,0,payload}', to_jsonb(v_payload));
  end if;
  return case when p_message ? 'body' then v_read || '{"body": ""}' else v_read end;
end
$$;

-- Promise: up to p_limit claims of a user who is being erased that are still on their way, under the old name. The ledger is told of
-- them (erase_tickets of DB2) before they change (erase_claims). Second call: the same. Locks: none.
create function public.open_claims_of(p_user_id text, p_limit int)
returns table (claim_id uuid, resource_id uuid, pool_id text)
language sql stable security definer set search_path = '' as $$
  select c.claim_id, c.slot_id, c.pool_id
  from audit.erasures e
  join public.claims c on c.user_id = e.user_id
  where e.user_id = p_user_id and c.freed_at is null and c.state <> 'committed' and (e.verified is null or c.verified = e.verified)
  order by c.claim_id
  limit p_limit;
$$;

-- Promise: these claims, with their messages, dead letters and slots, are not the user's any more; returns how many. One whose message
-- moved in this moment is left for the next call. A worker that has the message goes on with it: the ledger knows the new name.
-- Second call: 0. Locks: the erasure → messages → dead letters, each in the order of their ids → claims → pools → slots.
create function public.erase_claims(p_user_id text, p_claim_ids uuid[]) returns int
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_erasure audit.erasures := (select e from audit.erasures e where e.user_id = p_user_id for update);
  v_place audit.personal_places := audit.place_of('public.claims');
  v_msg_ids bigint[];
  v_letter_ids bigint[];
  v_keys jsonb;
begin
  select array_agg(c.msg_id) filter (where c.state <> 'dead_letter'), array_agg(c.msg_id) filter (where c.state = 'dead_letter')
  into v_msg_ids, v_letter_ids
  from public.claims c where c.claim_id = any (p_claim_ids) and c.user_id = v_erasure.user_id;
  perform from pgmq.q_intake_queue q where q.msg_id = any (v_msg_ids) order by q.msg_id for update;
  perform from pgmq.q_intake_dlq d where d.msg_id = any (v_letter_ids) order by d.msg_id for update;
  perform from public.claims c where c.claim_id = any (p_claim_ids) order by c.claim_id for update;
  select jsonb_agg(jsonb_build_object('claim_id', c.claim_id)),
    array_agg(c.msg_id) filter (where c.state <> 'dead_letter'), array_agg(c.msg_id) filter (where c.state = 'dead_letter')
  into v_keys, v_msg_ids, v_letter_ids
  from public.claims c
  where c.claim_id = any (p_claim_ids) and c.user_id = v_erasure.user_id and (
    c.msg_id is null or c.msg_id = any (case when c.state = 'dead_letter' then v_letter_ids else v_msg_ids end)
  );
  if v_keys is null then
    return 0;
  end if;
  update pgmq.q_intake_queue q
  set message = audit.json_without(q.message, v_erasure.user_id, v_erasure.replacement)
  where q.msg_id = any (v_msg_ids);
  update pgmq.q_intake_dlq d
  set message = audit.json_without(d.message, v_erasure.user_id, v_erasure.replacement)
  where d.msg_id = any (v_letter_ids);
  -- Here they may change on their way.
  v_place.erased_when := null;
  return audit.erase_rows(v_erasure, v_place, v_keys);
end
$$;

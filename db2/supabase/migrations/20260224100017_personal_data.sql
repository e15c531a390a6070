-- PERSONAL DATA: what is here about one user, as JSON, and how a user is erased: the id is replaced by a random name wherever it
-- stands, raw bodies go, and the key of the pseudonym in the audit log is destroyed (docs/decisions/0035-personal-data.md). Sums
-- and keys that catch duplicates stay. In steps, each its own transaction, that can be cut short and go on. The same in DB1; the
-- program goes through all databases (_shared/users/erase.ts).

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

-- Events before what they bring about: a worker that lets one take effect has it locked, and a step waits for it.
insert into audit.personal_places (turn, place, key_columns, json_columns, text_columns, cleared_columns, is_deleted, also)
values
  (10, 'public.webhook_events', '{id}', '{payload}', '{error}', '{raw_body}', false, 'webhook.erase_bodies'),
  (11, 'public.webhook_bodies', '{id}', '{}', '{}', '{body}', true, 'webhook.forget_bodies'),
  (12, 'public.webhook_alarms', '{id}', '{}', '{}', '{body}', false, null),
  (13, 'webhook.replies', '{event_id}', '{}', '{body}', '{}', false, null),
  (14, 'public.webhook_side_effects', '{id}', '{payload}', '{}', '{}', false, null),
  (20, 'public.calls', '{id}', '{payload}', '{}', '{}', false, null);

insert into audit.personal_places (turn, place, key_columns, user_column, is_indexed, verified_by, text_columns)
values
  (30, 'public.payments', '{provider,object_id}', 'user_id', false, null, '{}'),
  (31, 'public.credit_ledger', '{id}', 'user_id', true, null, '{}'),
  (40, 'public.confirmed_tickets', '{resource_id}', 'user_id', true, 'r.verified', '{}'),
  (41, 'public.voided_tickets', '{claim_id}', 'user_id', true, 'r.verified', '{cause}');

insert into audit.personal_places (turn, place, key_columns, verified_by, json_columns, text_columns)
values
  (50, 'public.claim_outbox', '{id}', $$ coalesce((r.fact ->> 'verified')::boolean, true) $$, '{fact,result}', '{error}'),
  (51, 'public.refunds_due', '{id}', null, '{}', '{reason,error}');

-- The shape of an error can hold a user's name that has no digit in it.
insert into audit.personal_places (turn, place, key_columns, text_columns) values (80, 'audit.issues', '{id}', '{error,example_error}');

insert into audit.personal_places (turn, place, key_columns, json_columns, text_columns, also, erased_when)
values (90, 'audit.audit_logs', '{id}', '{details}', '{actor,subject,reason}', 'audit.note_erased_rows',
  'r.id <= (select c.begins_after from audit.chain c)');

-- What stays in each. Columns of types that hold no text need no list.
update audit.personal_places p set kept_columns = k.kept::text[]
from (values
  ('public.webhook_events', '{webhook_id,provider,event_id,event_type,signature,payload_hash,dedupe_hash,body_id,lease_token,'
    || 'idempotency_key,skipped_by}'),
  ('public.webhook_alarms', '{webhook_id,provider,event_id,kind,stored_hash,received_hash,signature}'),
  ('public.webhook_side_effects', '{provider,event_id}'),
  ('public.calls', '{site_id,event_id,kind,signature_hash}'),
  ('public.payments', '{last_event_id,currency,order_id,silent_disputes,lost_disputes}'),
  ('public.credit_ledger', '{currency,kind,provider,object_id,event_id,business_key}'),
  ('public.confirmed_tickets', '{pool_id,claim_id,order_id}'),
  ('public.voided_tickets', '{resource_id,pool_id,order_id,outbox_id}'),
  ('public.claim_outbox', '{kind,payment_key,state,token}'),
  ('public.refunds_due', '{payment_key,order_id,currency,state,decided_by,refund_key,provider_refund_id,token}'),
  ('audit.issues', '{kind,lane,type,example_id,resolved_by}'),
  ('audit.audit_logs', '{action,written_by,changed}')
) k (place, kept)
where p.place = k.place;

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
-- made here; returns the name. Raises SL001 for what cannot be the id of a user.
-- Second call: the same name, and the erasure goes on where it stood; a second namespace widens it to both. What was found clean
-- more than ten minutes ago is looked at again. Locks: the erasure. Definer, as all that follow: service_role has no rights to the tables.
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
-- changed, none where the user was not known here. What the planner has kept of values is made anew.
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

-- Promise: what else is kept of these events is gone: replies, the bodies of their deliveries, whole ones of several events too, and
-- what came under their ids with another body. Second call: changes nothing. Locks: events of the same deliveries → bodies.
create function webhook.erase_bodies(p_erasure audit.erasures, p_keys jsonb) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_ids uuid[] := array(select (k ->> 'id')::uuid from jsonb_array_elements(p_keys) k);
  v_body_ids uuid[] := array(
    select distinct e.body_id from public.webhook_events e where e.id = any (v_ids) and e.body_id is not null
  );
begin
  delete from webhook.replies r where r.event_id = any (v_ids);
  update public.webhook_events e set body_id = null where e.body_id = any (v_body_ids);
  delete from public.webhook_bodies b where b.id = any (v_body_ids);
  update public.webhook_alarms a set body = null
  from public.webhook_events e
  where e.id = any (v_ids) and a.provider = e.provider and a.event_id = e.event_id;
end
$$;

-- Promise: no event points to these bodies, which are gone. Second call: changes nothing. Locks: the events.
create function webhook.forget_bodies(p_erasure audit.erasures, p_keys jsonb) returns void
language sql set search_path = ''
set enable_seqscan = off as $$
  update public.webhook_events e set body_id = null
  where e.body_id = any (array(select (k ->> 'id')::uuid from jsonb_array_elements(p_keys) k));
$$;

-- Promise: these claims {claim_id, resource_id, pool_id} of a user who is being erased, which are on their way, have their tickets and
-- tombstones under the replacement, those that are written later too, whichever name a worker brings. Returns how many there were.
-- The intake changes the claims after it. Raises SL015 not read committed. Second call: the same.
-- Placeholders (place_claims) make it wait for a finalize that runs, and one that comes later wait for it.
-- Locks: tickets in the order of their slots → voided_tickets.
create function public.erase_tickets(p_user_id text, p_claims jsonb) returns int
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_replacement text := (select e.replacement from audit.erasures e where e.user_id = p_user_id);
  v_claim_ids uuid[];
  v_slot_ids uuid[];
  v_placeholders uuid[];
begin
  v_placeholders := public.place_claims(p_claims);
  select array_agg(c.claim_id), array_agg(c.resource_id) into v_claim_ids, v_slot_ids
  from jsonb_to_recordset(p_claims) as c (claim_id uuid, resource_id uuid);
  insert into public.erased_claims as e (claim_id, replacement) select c, v_replacement from unnest(v_claim_ids) c
  on conflict (claim_id) do update set replacement = excluded.replacement;
  -- By its slot: a ticket that names no claim.
  update public.confirmed_tickets t set user_id = v_replacement
  where t.user_id = p_user_id and (t.claim_id = any (v_claim_ids) or t.resource_id = any (v_slot_ids));
  update public.voided_tickets v set user_id = v_replacement
  where v.claim_id = any (v_claim_ids) and v.user_id = p_user_id;
  delete from public.confirmed_tickets t where t.claim_id = any (v_placeholders);
  return cardinality(v_claim_ids);
end
$$;

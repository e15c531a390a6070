-- SEARCH: one question, and all that this database knows by it (docs/decisions/0037-ids-by-their-beginning.md). Every look is a range of
-- an index. An id of ours is a uuid, so its beginning is a range of the primary key. No index was added to a table that claims write.

-- Tickets and drop pages call a seat by its label, or by the last eight digits of its slot. A slot enters the manifest when it is put on
-- sale, and no claim changes it: a burst does not pay for these two.
create index slot_manifest_by_tail on public.slot_manifest (right(slot_id::text, 8));
create index slot_manifest_by_label on public.slot_manifest (label) where label is not null;

-- Something that was found. id is what its page is called by; ref is the id of what it leads to, where it has no page of its own.
-- why is what of it was asked for.
create type intake.found as (
  kind text, id text, ref text, pool_id text, user_id text, state text, at timestamptz, why text
);

-- Promise: the first and the last uuid that begin with the text, as it is printed or without its dashes; both null where the
-- text is not the beginning of a uuid, or of less than four digits. Second call: the same. Locks: none.
create function intake.uuid_range(p_q text, out first uuid, out last uuid)
language plpgsql immutable set search_path = '' as $$
declare
  c_least_digits constant int := 4;
  v_hex text := replace(lower(p_q), '-', '');
begin
  if v_hex !~ '^[0-9a-f]{1,32}$' or length(v_hex) < c_least_digits then
    return;
  end if;
  first := rpad(v_hex, 32, '0');
  last := rpad(v_hex, 32, 'f');
  if strpos(p_q, '-') > 0 and not starts_with(first::text, lower(p_q)) then
    first := null;
    last := null;
  end if;
end
$$;

-- Promise: a text behind all that begin with p_q, in the order of an index. Whether a text between the two does begin with it is for
-- starts_with to say: a linguistic order puts others there too. Second call: the same. Locks: none.
create function intake.text_end(p_q text) returns text
language sql immutable set search_path = '' as $$
  select p_q || chr(1114111);
$$;

-- Promise: these slots, each with the claim that it leads to: the live one, or the last that ended. Second call: the same, and what is
-- new. Locks: none.
create function intake.found_slots(p_slot_ids uuid[], p_why text) returns setof intake.found
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select 'slot', m.slot_id::text, coalesce(live.claim_id, gone.claim_id)::text, m.pool_id, coalesce(live.user_id, gone.user_id)::text,
    coalesce(live.state, gone.state)::text, m.put_on_sale_at, p_why
  from public.slot_manifest m
  left join lateral (
    select c.claim_id, c.user_id, c.state from public.claims c where c.slot_id = m.slot_id and c.freed_at is null
  ) live on true
  left join lateral (
    select c.claim_id, c.user_id, c.state from public.claims c where c.slot_id = m.slot_id and c.freed_at is not null
    order by c.claim_id desc limit 1
  ) gone on live.claim_id is null
  where m.slot_id = any (p_slot_ids);
$$;

-- Promise: claims, slots and orders whose id begins with the text, the newest p_limit of each kind. Second call: the same, and what is
-- new. Locks: none.
create function intake.search_ids(p_q text, p_limit int) returns setof intake.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  v_ids record := intake.uuid_range(p_q);
begin
  if v_ids.first is null then
    return;
  end if;
  return query
  select 'claim', c.claim_id::text, null::text, c.pool_id, c.user_id::text, c.state::text, c.claimed_at, 'id'
  from public.claims c
  where c.claim_id between v_ids.first and v_ids.last
  order by c.claim_id desc limit p_limit;
  return query
  select 'order', o.order_id::text, null::text, o.pool_id, o.user_id::text, intake.order_status(o), null::timestamptz, 'id'
  from public.orders o
  where o.order_id between v_ids.first and v_ids.last
  order by o.order_id desc limit p_limit;
  return query
  select * from intake.found_slots(array(
    select s.slot_id from public.slot_manifest s where s.slot_id between v_ids.first and v_ids.last order by s.slot_id limit p_limit
  ), 'id');
end
$$;

-- Promise: up to p_limit seats that a ticket calls by the text: by the beginning of a label, or by the end of a slot's id, eight digits or
-- more, in groups or not (A1B2 C3D4). Second call: the same, and what is new. Locks: none.
create function intake.search_seats(p_q text, p_limit int) returns setof intake.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  v_hex text := translate(lower(p_q), ' -', '');
  v_end text := intake.text_end(p_q);
begin
  return query
  select * from intake.found_slots(array(
    select s.slot_id from public.slot_manifest s
    where s.label >= p_q and s.label < v_end and starts_with(s.label, p_q) order by s.label limit p_limit
  ), 'seat');
  if v_hex ~ '^[0-9a-f]{8,31}$' then
    return query
    select * from intake.found_slots(array(
      select s.slot_id from public.slot_manifest s
      where right(s.slot_id::text, 8) = right(v_hex, 8) and right(replace(s.slot_id::text, '-', ''), length(v_hex)) = v_hex limit p_limit
    ), 'seat');
  end if;
end
$$;

-- Promise: up to p_limit users with claims here whose name begins with the text. One look in the index for each of them, however many
-- claims they have. Second call: the same, and what is new. Locks: none.
create function intake.search_users(p_q text, p_limit int) returns setof intake.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  -- A linguistic order may put others between them; so many are looked at and no more.
  c_most_looks constant int := 200;
  v_end text := intake.text_end(p_q);
begin
  return query
  with recursive known as (
    (
      select c.user_id::text as user_id, 1 as n from public.claims c
      where c.user_id >= p_q and c.user_id < v_end order by c.user_id limit 1
    )
    union all
    select (
      select c.user_id::text from public.claims c
      where c.user_id > k.user_id and c.user_id < v_end order by c.user_id limit 1
    ), k.n + 1
    from known k
    where k.user_id is not null and k.n < c_most_looks
  )
  select 'user', k.user_id, null::text, null::text, k.user_id, null::text, null::timestamptz, 'name'
  from known k
  where starts_with(k.user_id, p_q)
  limit p_limit;
end
$$;

-- Promise: the message, the dead letter and the audit row of this number; the letters, among the newest 10000, of the message that
-- had it; and what operators did to that letter. Second call: the same, and what is new. Locks: none.
create function intake.search_number(p_number bigint, p_limit int) returns setof intake.found
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select 'message', q.msg_id::text, q.message ->> 'claim_id', q.message ->> 'pool_id', q.message ->> 'user_id',
    q.message ->> 'state', q.enqueued_at, 'number'
  from pgmq.q_intake_queue q where q.msg_id = p_number
  union all
  select 'dead_letter', d.msg_id::text, d.message ->> 'claim_id', d.message ->> 'pool_id', d.message ->> 'user_id',
    'dead_letter', d.enqueued_at, 'number'
  from pgmq.q_intake_dlq d where d.msg_id = p_number
  union all
  select 'message', p_number::text, coalesce(a.message ->> 'claim_id', a.message ->> 'resource_id'), a.message ->> 'pool_id',
    a.message ->> 'user_id', 'archived', a.archived_at, 'number'
  from pgmq.a_intake_dlq a where a.msg_id = p_number
  union all
  (
    select 'dead_letter', d.msg_id::text, d.message ->> 'claim_id', d.message ->> 'pool_id', d.message ->> 'user_id',
      'dead_letter', d.enqueued_at, 'message'
    from (select * from pgmq.q_intake_dlq l order by l.msg_id desc limit 10000) d
    where d.message ->> 'original_msg_id' = p_number::text
    limit p_limit
  )
  union all
  select 'audit', a.id::text, a.subject, null, a.actor, a.action, a.at, 'number' from audit.audit_logs a where a.id = p_number
  union all
  (
    select 'audit', a.id::text, a.subject, null, a.actor, a.action, a.at, 'subject'
    from audit.audit_logs a where a.subject = 'dead letter ' || p_number order by a.at desc limit p_limit
  );
$$;

-- Promise: by text: claims of a request, payments and checkouts of orders, what operators did to something, operators.
-- Second call: the same, and what is new. Locks: none.
create function intake.search_texts(p_q text, p_limit int) returns setof intake.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  v_keys record := intake.request_keys(p_q);
begin
  return query
  select 'claim', c.claim_id::text, null::text, c.pool_id, c.user_id::text, c.state::text, c.claimed_at, 'request'
  from public.claims c
  where c.request_key between v_keys.first and v_keys.last and c.request_id = p_q limit p_limit;
  return query
  select 'payment', p.payment_key, p.order_id::text, o.pool_id, o.user_id::text, p.decision, p.decided_at, 'payment'
  from (select distinct e.payment_tenant as tenant from public.engine_config e where e.payment_tenant is not null) t
  cross join lateral (
    select case when starts_with(p_q, t.tenant || '/') then p_q else t.tenant || '/' || p_q end as key
  ) k
  cross join lateral (
    select r.* from public.order_payments r
    where r.payment_key >= k.key and r.payment_key < intake.text_end(k.key) and starts_with(r.payment_key, k.key) limit p_limit
  ) p
  left join public.orders o on o.order_id = p.order_id
  limit p_limit;
  return query
  select 'order', k.order_id::text, null::text, o.pool_id, o.user_id::text, k.state, k.created_at, 'checkout'
  from public.checkouts k
  join public.orders o on o.order_id = k.order_id
  where k.session_id >= p_q and k.session_id < intake.text_end(p_q) and starts_with(k.session_id, p_q) limit p_limit;
  return query
  select 'audit', a.id::text, a.subject, null::text, a.actor, a.action, a.at, 'subject'
  from unnest(array[p_q, 'claim ' || p_q, 'user ' || p_q, 'pool ' || p_q, 'issue ' || p_q]) s (subject)
  join audit.audit_logs a on a.subject >= s.subject and a.subject < intake.text_end(s.subject) and starts_with(a.subject, s.subject)
  limit p_limit;
  return query
  select 'audit', a.id::text, a.subject, null::text, a.actor, a.action, a.at, 'claim'
  from audit.audit_logs a
  where a.details ->> 'claim_id' = lower(p_q) or a.details ->> 'ended_claim_id' = lower(p_q)
  limit p_limit;
  return query
  select 'operator', o.name, null::text, null::text, o.name, o.role, o.last_used_at, 'name'
  from audit.operators o where strpos(lower(o.name), lower(p_q)) > 0 order by o.name limit p_limit;
end
$$;

-- Promise: up to p_limit issues, open ones first. It finds an issue by the beginning of its id, by its whole lane or type, and by a
-- text that starts at the start of a word in its lane, type or error. The text may be an error as it was logged: quoted parts and
-- numbers are reduced as audit.error_shape reduces them. Second call: the same, and what is new. Locks: none. The next file makes the
-- table.
create function intake.search_issues(p_q text, p_limit int) returns setof intake.found
language plpgsql stable set search_path = '' as $$
declare
  c_between_words constant text := '._:/-"';
  v_ids record := intake.uuid_range(p_q);
  -- A sign, a number or two letters stand in too many errors to say anything.
  v_asked text[] := array(
    select ' ' || translate(lower(a), c_between_words, '      ') from unnest(array[p_q, audit.error_shape(p_q)]) a where a ~ '[[:alpha:]]{3}'
  );
begin
  return query
  select 'issue', i.id::text, i.type, null::text, i.lane,
    case when i.resolved_at is not null then 'resolved' when i.openings > 1 then 'reopened' else 'open' end,
    i.last_seen_at, case when i.id between v_ids.first and v_ids.last then 'id' else 'words' end
  from audit.issues i
  cross join lateral (
    select ' ' || translate(lower(concat_ws(' ', i.lane, i.type, i.error)), c_between_words, '      ') as words
  ) t
  where i.id between v_ids.first and v_ids.last or p_q in (i.lane, i.type)
    or exists (select from unnest(v_asked) a where strpos(t.words, a) > 0)
  order by i.resolved_at is not null, i.last_seen_at desc, i.id limit p_limit;
end
$$;

-- Promise: all that this database knows by p_q: the beginning of an id, a number, the beginning of a user or of a payment, a whole
-- request id, a seat as tickets call it, a part of the name of a pool, words of an issue; at most p_limit of a kind and a way of finding it. Second call:
-- the same, and what is new. Locks: none. Definer, as all that follow: service_role has no rights to the tables.
create function public.search_intake(p_q text, p_limit int default 8) returns setof intake.found
language plpgsql stable security definer set search_path = '' as $$
declare
  c_most_digits constant int := 18;
begin
  return query select * from intake.search_ids(p_q, p_limit);
  if p_q ~ '^[0-9]+$' and length(p_q) <= c_most_digits then
    return query select * from intake.search_number(p_q::bigint, p_limit);
  end if;
  return query
  select 'pool', p.pool_id, null::text, p.pool_id, null::text, null::text, null::timestamptz, 'name'
  from (select c.pool_id from public.engine_config c union select t.pool_id from intake.pool_totals t) p
  where strpos(lower(p.pool_id), lower(p_q)) > 0
  order by not starts_with(p.pool_id, p_q), p.pool_id limit p_limit;
  return query select * from intake.search_users(p_q, p_limit);
  return query select * from intake.search_texts(p_q, p_limit);
  return query select * from intake.search_seats(p_q, p_limit);
  return query select * from intake.search_issues(p_q, p_limit);
end
$$;

-- How many rows a list has: exact, at_least (it was counted so far and no further), or about (from the statistics, or a sample).
create type intake.total as (total bigint, how text);

-- Promise: how many rows the table has, as its statistics say; null while it is small enough to be counted (16 MB, some
-- milliseconds). Second call: the same, later. Locks: none.
create function intake.rows_about(p_table regclass) returns bigint
language sql stable set search_path = '' as $$
  select case when pg_catalog.pg_relation_size(p_table) > 16 * 1024 * 1024 then greatest(s.n_live_tup, c.reltuples::bigint, 0) end
  from pg_catalog.pg_class c
  join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
  where c.oid = p_table;
$$;

-- Promise: the number as it was counted up to 10000, as intake.total has it. Second call: the same. Locks: none.
create function intake.counted(p_count bigint) returns intake.total
language sql immutable set search_path = '' as $$
  select least(p_count, 10000), case when p_count > 10000 then 'at_least' else 'exact' end;
$$;

-- Promise: how many claims match what is not null, as claim_search has it. By user, claim or request it asks an index. A large table is
-- sampled first (one page in a hundred): what is frequent is told from that, what is rare is counted, up to 10000.
-- Second call: the same, later. Locks: none.
create function public.claim_total(
  p_claim_id text default null,
  p_user_id text default null,
  p_request_id text default null,
  p_pool_id text default null,
  p_state text default null
)
returns intake.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_ids record := intake.uuid_range(p_claim_id);
  v_keys record := intake.request_keys(p_request_id);
  v_state public.claim_state := (select s from unnest(enum_range(null::public.claim_state)) s where s::text = p_state);
  v_about bigint := intake.rows_about('public.claims');
  v_count bigint;
begin
  if v_about is not null and p_claim_id is null and p_user_id is null and p_request_id is null then
    if p_pool_id is null and p_state is null then
      return row(v_about, 'about')::intake.total;
    end if;
    select count(*) * 100 into v_count from public.claims c tablesample system (1)
    where (p_pool_id is null or c.pool_id = p_pool_id) and (p_state is null or c.state = v_state);
    if v_count > 10000 then
      return row(v_count, 'about')::intake.total;
    end if;
  end if;
  select count(*) into v_count from (
    select from public.claims c
    where (p_claim_id is null or c.claim_id between v_ids.first and v_ids.last)
      and (p_user_id is null or c.user_id = p_user_id)
      and (p_request_id is null or c.request_id = p_request_id and c.request_key between v_keys.first and v_keys.last)
      and (p_pool_id is null or c.pool_id = p_pool_id)
      and (p_state is null or c.state = v_state)
    limit 10001
  ) counted;
  return intake.counted(v_count);
end
$$;

-- Promise: how many pools there are, as pool_list has them. Second call: the same, later. Locks: none.
create function public.pool_total() returns intake.total
language sql stable security definer set search_path = '' as $$
  select count(*), 'exact' from (select c.pool_id::text from public.engine_config c union select t.pool_id from intake.pool_totals t) p;
$$;

-- Promise: how many orders match what is not null, as order_list has it, counted up to 10000; about, where nothing is asked for and
-- there are many. Second call: the same, later. Locks: none.
create function public.order_total(p_pool_id text default null, p_user_id text default null, p_status text default null)
returns intake.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_about bigint := intake.rows_about('public.orders');
  v_count bigint;
begin
  if v_about is not null and p_pool_id is null and p_user_id is null and p_status is null then
    return row(v_about, 'about')::intake.total;
  end if;
  select count(*) into v_count from (
    select from public.orders o
    where (p_pool_id is null or o.pool_id = p_pool_id)
      and (p_user_id is null or o.order_id in (select c.order_id from public.claims c where c.user_id = p_user_id))
      and (p_status is null or intake.order_status(o) = p_status)
    limit 10001
  ) counted;
  return intake.counted(v_count);
end
$$;

-- Promise: how many dead letters match what is not null, as list_dead_letters has it, counted up to 10000.
-- Second call: the same, later. Locks: none.
create function public.dead_letter_total(
  p_pool_id text default null, p_reason text default null, p_older_than interval default null
)
returns intake.total
language sql stable security definer set search_path = '' as $$
  select (intake.counted(count(*))).* from (
    select from pgmq.q_intake_dlq d
    where (p_pool_id is null or d.message ->> 'pool_id' = p_pool_id)
      and (p_reason is null or starts_with(coalesce(d.message ->> 'reason', 'max_retries'), p_reason))
      and (p_older_than is null or d.enqueued_at < now() - p_older_than)
    limit 10001
  ) counted;
$$;

-- Promise: how many rows of the audit log match what is not null, as audit_page has it; about, where nothing is asked for and there are
-- many. Second call: the same, later. Locks: none.
create function public.audit_total(
  p_actor text default null, p_action text default null, p_subject text default null, p_id bigint default null
)
returns intake.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_about bigint := intake.rows_about('audit.audit_logs');
  v_count bigint;
begin
  if v_about is not null and p_actor is null and p_action is null and p_subject is null and p_id is null then
    return row(v_about, 'about')::intake.total;
  end if;
  select count(*) into v_count from (
    select from audit.audit_logs a
    where (p_actor is null or a.actor = p_actor) and (p_action is null or a.action = p_action)
      and (p_subject is null or a.subject = p_subject) and (p_id is null or a.id = p_id)
    limit 10001
  ) counted;
  return intake.counted(v_count);
end
$$;

-- Promise: what operators did to this user here (an export, an erasure that is under way), newest first. The log names users by
-- pseudonyms, so there are no rows of a user without a key. Second call: the same, and what is new. Locks: none.
create function public.user_audit(p_user_id text, p_limit int default 20) returns setof audit.audit_logs
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select a.*
  from audit.user_keys k
  join audit.audit_logs a
    on a.subject = 'user user:' || left(encode(sha256(k.key || convert_to(p_user_id, 'UTF8')), 'hex'), 32)
  where k.user_id = p_user_id
  order by a.at desc limit p_limit;
$$;

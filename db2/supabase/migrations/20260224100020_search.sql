-- SEARCH: one question, and all that the ledger knows by it; and the lists of tickets, payments and credits. As in DB1
-- (20260224100022_search.sql): every look is a range of an index that was there before.

-- As intake.found of DB1.
create type webhook.found as (
  kind text, id text, ref text, pool_id text, user_id text, state text, at timestamptz, why text
);

-- As intake.total of DB1.
create type webhook.total as (total bigint, how text);

-- Promise: as intake.uuid_range of DB1. Second call: the same. Locks: none.
create function webhook.uuid_range(p_q text, out first uuid, out last uuid)
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

-- Promise: as intake.text_end of DB1. Second call: the same. Locks: none.
create function webhook.text_end(p_q text) returns text
language sql immutable set search_path = '' as $$
  select p_q || chr(1114111);
$$;

-- Promise: as intake.rows_about of DB1. Second call: the same, later. Locks: none.
create function webhook.rows_about(p_table regclass) returns bigint
language sql stable set search_path = '' as $$
  select case when pg_catalog.pg_relation_size(p_table) > 16 * 1024 * 1024 then greatest(s.n_live_tup, c.reltuples::bigint, 0) end
  from pg_catalog.pg_class c
  join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
  where c.oid = p_table;
$$;

-- Promise: as intake.counted of DB1. Second call: the same. Locks: none.
create function webhook.counted(p_count bigint) returns webhook.total
language sql immutable set search_path = '' as $$
  select least(p_count, 10000), case when p_count > 10000 then 'at_least' else 'exact' end;
$$;

-- Promise: tickets, events and calls whose id begins with the text, and tickets whose slot does, the newest p_limit of each kind.
-- A ticket is called by its claim. Second call: the same, and what is new. Locks: none.
create function webhook.search_ids(p_q text, p_limit int) returns setof webhook.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  v_ids record := webhook.uuid_range(p_q);
begin
  if v_ids.first is null then
    return;
  end if;
  return query
  select 'ticket', t.claim_id::text, null::text, t.pool_id, t.user_id, 'valid', t.confirmed_at, 'id'
  from public.confirmed_tickets t where t.claim_id between v_ids.first and v_ids.last order by t.claim_id desc limit p_limit;
  return query
  select 'ticket', t.claim_id::text, null::text, t.pool_id, t.user_id, 'valid', t.confirmed_at, 'slot'
  from public.confirmed_tickets t where t.resource_id between v_ids.first and v_ids.last order by t.resource_id limit p_limit;
  return query
  select 'ticket', v.claim_id::text, null::text, v.pool_id, v.user_id, 'void', v.voided_at, 'id'
  from public.voided_tickets v
  where v.claim_id between v_ids.first and v_ids.last and v.confirmed_at is not null order by v.claim_id desc limit p_limit;
  return query
  select 'event', e.id::text, e.event_id, null::text, e.provider, e.status::text, e.received_at, 'id'
  from public.webhook_events e where e.id between v_ids.first and v_ids.last order by e.id desc limit p_limit;
  return query
  select 'call', c.id::text, c.event_id, null::text, c.site_id, c.kind, c.received_at, 'id'
  from public.calls c where c.id between v_ids.first and v_ids.last order by c.id desc limit p_limit;
end
$$;

-- Promise: the providers of all events, also those that no endpoint has: one look in the index for each. Second call: the same.
-- Locks: none.
create function webhook.event_providers() returns setof text
language sql stable set search_path = ''
set enable_seqscan = off as $$
  with recursive known as (
    (select e.provider from public.webhook_events e order by e.provider limit 1)
    union all
    select (select e.provider from public.webhook_events e where e.provider > k.provider order by e.provider limit 1)
    from known k where k.provider is not null
  )
  select k.provider from known k where k.provider is not null;
$$;

-- Promise: events whose own id begins with the text, and calls: those that were signed by an index, of the others the newest 10000;
-- and the call of a signature. Second call: the same, and what is new. Locks: none.
create function webhook.search_deliveries(p_q text, p_limit int) returns setof webhook.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  v_end text := webhook.text_end(p_q);
begin
  return query
  select 'event', e.id::text, e.event_id, null::text, e.provider, e.status::text, e.received_at, 'event id'
  from webhook.event_providers() p (provider)
  cross join lateral (
    select o.* from public.webhook_events o
    where o.provider = p.provider and o.event_id >= p_q and o.event_id < v_end and starts_with(o.event_id, p_q)
    order by o.event_id limit p_limit
  ) e
  limit p_limit;
  return query
  select 'call', c.id::text, c.event_id, null::text, c.site_id, c.kind, c.received_at, 'event id'
  from public.call_sites s
  cross join lateral (
    select o.* from public.calls o
    where o.site_id = s.site_id and o.event_id >= p_q and o.event_id < v_end and starts_with(o.event_id, p_q)
      and o.signature_hash is not null limit p_limit
  ) c
  limit p_limit;
  return query
  select 'call', c.id::text, c.event_id, null::text, c.site_id, c.kind, c.received_at, 'event id'
  from (select o.* from public.calls o order by o.id desc limit 10000) c
  where c.signature_hash is null and starts_with(c.event_id, p_q) limit p_limit;
  if p_q ~ '^[0-9a-f]{8,64}$' then
    return query
    select 'call', c.id::text, c.event_id, null::text, c.site_id, c.kind, c.received_at, 'signature'
    from public.call_sites s
    join public.calls c on c.site_id = s.site_id and c.signature_hash >= p_q and c.signature_hash < v_end
      and starts_with(c.signature_hash, p_q)
    limit p_limit;
  end if;
end
$$;

-- Promise: payments whose id begins with the text, with or without their tenant in front (tenant/payment), those of a refund, a
-- balance transaction or an errand to the intake, and refunds that are owed: by their id, or of the newest 10000 by the provider's.
-- Second call: the same, and what is new. Locks: none.
create function webhook.search_money(p_q text, p_limit int) returns setof webhook.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select 'payment', p.provider || '/' || p.object_id, p.order_id::text, null::text, p.user_id, p.state::text, p.occurred_at, p.why
  from webhook.tenants t
  cross join lateral (
    select case when starts_with(p_q, t.tenant || '/') then substr(p_q, length(t.tenant) + 2) else p_q end as own
  ) k
  cross join lateral (
    (
      select o.*, 'id' as why from public.payments o
      where o.provider = t.tenant and o.object_id >= k.own and o.object_id < webhook.text_end(k.own) and starts_with(o.object_id, k.own)
      order by o.object_id limit p_limit
    )
    union all
    (
      select o.*, 'refund' from public.payment_refunds r
      join public.payments o on o.provider = r.provider and o.object_id = r.object_id
      where r.provider = t.tenant and r.refund_id >= p_q and r.refund_id < webhook.text_end(p_q) and starts_with(r.refund_id, p_q)
      limit p_limit
    )
    union all
    (
      select o.*, 'transaction' from public.payment_transactions r
      join public.payments o on o.provider = r.provider and o.object_id = r.object_id
      where r.provider = t.tenant and r.transaction_id = p_q
    )
  ) p
  limit p_limit;
  return query
  select 'payment', o.payment_key, null::text, null::text, null::text, o.state, o.created_at, 'errand'
  from public.claim_outbox o
  where o.id >= p_q and o.id < webhook.text_end(p_q) and starts_with(o.id, p_q) and o.payment_key is not null
  order by o.id limit p_limit;
  return query
  select 'refund', r.id, r.order_id::text, r.payment_key, null::text, r.state, r.created_at, 'id'
  from public.refunds_due r
  where r.id >= p_q and r.id < webhook.text_end(p_q) and starts_with(r.id, p_q) order by r.id limit p_limit;
  return query
  select 'refund', r.id, r.order_id::text, r.payment_key, null::text, r.state, r.created_at, 'refund'
  from (select d.* from public.refunds_due d order by d.created_at desc, d.id desc limit 10000) r
  where r.provider_refund_id = p_q limit p_limit;
end
$$;

-- Promise: up to p_limit users of tickets and credits whose name begins with the text: one look in an index for each.
-- Second call: the same, and what is new. Locks: none.
create function webhook.search_users(p_q text, p_limit int) returns setof webhook.found
language plpgsql stable set search_path = ''
set enable_seqscan = off set plan_cache_mode = force_custom_plan as $$
declare
  -- A linguistic order may put others between them; so many are looked at and no more.
  c_most_looks constant int := 200;
  v_end text := webhook.text_end(p_q);
begin
  return query
  with recursive known as (
    select least(
      (select t.user_id from public.confirmed_tickets t where t.user_id >= p_q and t.user_id < v_end order by t.user_id limit 1),
      (select v.user_id from public.voided_tickets v where v.user_id >= p_q and v.user_id < v_end order by v.user_id limit 1),
      (select c.user_id from public.credit_ledger c where c.user_id >= p_q and c.user_id < v_end order by c.user_id limit 1)
    ) as user_id, 1 as n
    union all
    select least(
      (select t.user_id from public.confirmed_tickets t where t.user_id > k.user_id and t.user_id < v_end order by t.user_id limit 1),
      (select v.user_id from public.voided_tickets v where v.user_id > k.user_id and v.user_id < v_end order by v.user_id limit 1),
      (select c.user_id from public.credit_ledger c where c.user_id > k.user_id and c.user_id < v_end order by c.user_id limit 1)
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

-- Promise: as intake.search_issues of DB1. Second call: the same, and what is new. Locks: none. The table is made by the next file.
create function webhook.search_issues(p_q text, p_limit int) returns setof webhook.found
language plpgsql stable set search_path = '' as $$
declare
  c_between_words constant text := '._:/-"';
  v_ids record := webhook.uuid_range(p_q);
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

-- Promise: all that the ledger knows by p_q: the beginning of an id of ours, of an event, of a payment, of a refund or of a user, a part
-- of the name of an endpoint or a call site, words of an issue, and what operators did to it; at most p_limit of a kind and a way of finding it.
-- Second call: the same, and what is new. Locks: none. Definer, as all that follow: service_role need not have rights to the tables.
create function public.search_ledger(p_q text, p_limit int default 8) returns setof webhook.found
language plpgsql stable security definer set search_path = ''
set enable_seqscan = off as $$
declare
  c_most_digits constant int := 18;
begin
  return query select * from webhook.search_ids(p_q, p_limit);
  return query select * from webhook.search_users(p_q, p_limit);
  return query select * from webhook.search_money(p_q, p_limit);
  return query select * from webhook.search_deliveries(p_q, p_limit);
  return query select * from webhook.search_issues(p_q, p_limit);
  return query
  select 'endpoint', e.webhook_id::text, e.name, null::text, e.tenant, e.mode, e.created_at, 'name'
  from public.webhook_endpoints e
  where strpos(lower(e.name), lower(p_q)) > 0 or starts_with(e.webhook_id::text, lower(p_q)) or e.tenant = p_q
  order by e.name limit p_limit;
  return query
  select 'site', s.site_id, null::text, null::text, null::text, null::text, null::timestamptz, 'name'
  from public.call_sites s where strpos(lower(s.site_id), lower(p_q)) > 0 order by s.site_id limit p_limit;
  return query
  select 'audit', a.id::text, a.subject, null::text, a.actor, a.action, a.at, 'subject'
  from unnest(array[p_q, 'claim ' || p_q, 'refund ' || p_q, 'payment ' || p_q, 'webhook event ' || p_q, 'user ' || p_q, 'issue ' || p_q]) s (subject)
  join audit.audit_logs a on a.subject >= s.subject and a.subject < webhook.text_end(s.subject) and starts_with(a.subject, s.subject)
  limit p_limit;
  if p_q ~ '^[0-9]+$' and length(p_q) <= c_most_digits then
    return query
    select 'audit', a.id::text, a.subject, null::text, a.actor, a.action, a.at, 'number'
    from audit.audit_logs a where a.id = p_q::bigint;
  end if;
end
$$;

-- A ticket as operators see it. state is valid, used or void; voided_at and cause are those of one that is void.
create type webhook.ticket_view as (
  claim_id uuid, resource_id uuid, pool_id text, user_id text, verified boolean, order_id uuid, state text, confirmed_at timestamptz,
  used_at timestamptz, used_by text, voided_at timestamptz, cause text
);

-- Promise: p_limit tickets of those that match what is not null, behind the first p_offset, newest first: in the order of their claims'
-- ids, which begin with the time, from p_after on. p_claim_id and p_order_id are whole ids, or their beginnings (webhook.uuid_range).
-- p_state: valid (also when used) or void. By user, claim or order it asks an index; by pool it walks the tickets until it has a page. What was voided before it became a ticket is not in it.
-- Second call: the same, and what is new. Locks: none.
create function public.ticket_list(
  p_claim_id text default null,
  p_pool_id text default null,
  p_user_id text default null,
  p_order_id text default null,
  p_state text default null,
  p_after uuid default null,
  p_offset int default 0,
  p_limit int default 100
)
returns setof webhook.ticket_view
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_claims record := webhook.uuid_range(p_claim_id);
  v_orders record := webhook.uuid_range(p_order_id);
begin
  return query
  select p.claim_id, p.resource_id, p.pool_id, p.user_id, p.verified, p.order_id,
    case when p.voided_at is not null then 'void' when u.used_at is not null then 'used' else 'valid' end,
    p.confirmed_at, u.used_at, u.used_by, p.voided_at, p.cause
  from (
    (
      select t.claim_id, t.resource_id, t.pool_id, t.user_id, t.verified, t.order_id, t.confirmed_at,
        null::timestamptz as voided_at, null::text as cause
      from public.confirmed_tickets t
      where (p_state is null or p_state = 'valid') and (p_claim_id is null or t.claim_id between v_claims.first and v_claims.last)
        and (p_pool_id is null or t.pool_id = p_pool_id) and (p_user_id is null or t.user_id = p_user_id)
        and (p_order_id is null or t.order_id between v_orders.first and v_orders.last) and (p_after is null or t.claim_id < p_after)
      order by t.claim_id desc limit p_offset + p_limit
    )
    union all
    (
      select v.claim_id, v.resource_id, v.pool_id, v.user_id, v.verified, v.order_id, v.confirmed_at, v.voided_at, v.cause
      from public.voided_tickets v
      where (p_state is null or p_state = 'void') and v.confirmed_at is not null
        and (p_claim_id is null or v.claim_id between v_claims.first and v_claims.last)
        and (p_pool_id is null or v.pool_id = p_pool_id) and (p_user_id is null or v.user_id = p_user_id)
        and (p_order_id is null or v.order_id between v_orders.first and v_orders.last) and (p_after is null or v.claim_id < p_after)
      order by v.claim_id desc limit p_offset + p_limit
    )
    order by 1 desc limit p_limit offset p_offset
  ) p
  left join public.ticket_uses u on u.claim_id = p.claim_id
  order by p.claim_id desc;
end
$$;

-- Promise: how many tickets match what is not null, as ticket_list has it, counted up to 10000. Of a large table two answers are
-- estimates (about): all tickets, by the statistics, and the tickets of one pool, by a sample of one page in a hundred.
-- Second call: the same, later. Locks: none.
create function public.ticket_total(
  p_claim_id text default null,
  p_pool_id text default null,
  p_user_id text default null,
  p_order_id text default null,
  p_state text default null
)
returns webhook.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_claims record := webhook.uuid_range(p_claim_id);
  v_orders record := webhook.uuid_range(p_order_id);
  v_about bigint := webhook.rows_about('public.confirmed_tickets');
  v_count bigint;
begin
  if v_about is not null and p_claim_id is null and p_user_id is null and p_order_id is null and p_state is distinct from 'void' then
    if p_pool_id is null then
      return row(v_about, 'about')::webhook.total;
    end if;
    select count(*) * 100 into v_count from public.confirmed_tickets t tablesample system (1) where t.pool_id = p_pool_id;
    if v_count > 10000 then
      return row(v_count, 'about')::webhook.total;
    end if;
  end if;
  select count(*) into v_count from (
    select from public.confirmed_tickets t
    where (p_state is null or p_state = 'valid') and (p_claim_id is null or t.claim_id between v_claims.first and v_claims.last)
      and (p_pool_id is null or t.pool_id = p_pool_id) and (p_user_id is null or t.user_id = p_user_id)
      and (p_order_id is null or t.order_id between v_orders.first and v_orders.last)
    union all
    select from public.voided_tickets v
    where (p_state is null or p_state = 'void') and v.confirmed_at is not null
      and (p_claim_id is null or v.claim_id between v_claims.first and v_claims.last)
      and (p_pool_id is null or v.pool_id = p_pool_id) and (p_user_id is null or v.user_id = p_user_id)
      and (p_order_id is null or v.order_id between v_orders.first and v_orders.last)
    limit 10001
  ) counted;
  return webhook.counted(v_count);
end
$$;

-- Promise: p_limit payments of those that match what is not null, behind the first p_offset, by tenant and id, the last first, from
-- p_after (tenant/payment) on. No index has the time: each event would pay for it, and lose its HOT update. By user it asks the
-- credits, which are the user's, so a payment that moved nothing is not found by its user.
-- Second call: the same, and what is new. Locks: none.
create function public.payment_list(
  p_provider text default null,
  p_user_id text default null,
  p_state text default null,
  p_after text default null,
  p_offset int default 0,
  p_limit int default 100
)
returns table (
  payment_key text, provider text, object_id text, user_id text, state text, amount bigint, captured bigint, refunded bigint,
  disputed bigint, currency text, order_id uuid, occurred_at timestamptz
)
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  v_tenant text := split_part(p_after, '/', 1);
  v_object text := substr(p_after, strpos(p_after, '/') + 1);
begin
  return query
  select p.provider || '/' || p.object_id, p.provider, p.object_id, p.user_id, p.state::text, p.amount, p.captured, p.refunded,
    p.disputed, p.currency, p.order_id, p.occurred_at
  from public.payments p
  where (p_provider is null or p.provider = p_provider)
    and (p_user_id is null or (p.provider, p.object_id) in (
      select c.provider, c.object_id from public.credit_ledger c where c.user_id = p_user_id
    ))
    and (p_state is null or p.state::text = p_state)
    and (p_after is null or (p.provider, p.object_id) < (v_tenant, v_object))
  order by p.provider desc, p.object_id desc
  limit p_limit offset p_offset;
end
$$;

-- Promise: how many payments match what is not null, as payment_list has it, counted up to 10000; about, where nothing is asked for and
-- there are many. Second call: the same, later. Locks: none.
create function public.payment_total(p_provider text default null, p_user_id text default null, p_state text default null)
returns webhook.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_about bigint := webhook.rows_about('public.payments');
  v_count bigint;
begin
  if v_about is not null and p_provider is null and p_user_id is null and p_state is null then
    return row(v_about, 'about')::webhook.total;
  end if;
  select count(*) into v_count from (
    select from public.payments p
    where (p_provider is null or p.provider = p_provider)
      and (p_user_id is null or (p.provider, p.object_id) in (
        select c.provider, c.object_id from public.credit_ledger c where c.user_id = p_user_id
      ))
      and (p_state is null or p.state::text = p_state)
    limit 10001
  ) counted;
  return webhook.counted(v_count);
end
$$;

-- Promise: p_limit rows of the credit ledger of those that match what is not null, behind the first p_offset, newest first, before the
-- row p_after. By user it asks an index. Second call: the same, and what is new. Locks: none.
create function public.credit_list(
  p_user_id text default null,
  p_provider text default null,
  p_kind text default null,
  p_after bigint default null,
  p_offset int default 0,
  p_limit int default 100
)
returns setof public.credit_ledger
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select c.* from public.credit_ledger c
  where (p_user_id is null or c.user_id = p_user_id) and (p_provider is null or c.provider = p_provider)
    and (p_kind is null or c.kind = p_kind) and (p_after is null or c.id < p_after)
  order by c.id desc
  limit p_limit offset p_offset;
end
$$;

-- Promise: how many rows of the credit ledger match what is not null, as credit_list has it, counted up to 10000; about, where nothing is
-- asked for and there are many. Second call: the same, later. Locks: none.
create function public.credit_total(p_user_id text default null, p_provider text default null, p_kind text default null)
returns webhook.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_about bigint := webhook.rows_about('public.credit_ledger');
  v_count bigint;
begin
  if v_about is not null and p_provider is null and p_user_id is null and p_kind is null then
    return row(v_about, 'about')::webhook.total;
  end if;
  select count(*) into v_count from (
    select from public.credit_ledger c
    where (p_user_id is null or c.user_id = p_user_id) and (p_provider is null or c.provider = p_provider)
      and (p_kind is null or c.kind = p_kind)
    limit 10001
  ) counted;
  return webhook.counted(v_count);
end
$$;

-- Promise: how many events match what is not null, as webhook.list_events has it, but for a path into the payload: counted up to
-- 10000; about, where nothing is asked for and there are many. Second call: the same, later. Locks: none.
create function public.event_total(
  p_webhook_id uuid default null,
  p_event_id text default null,
  p_provider text default null,
  p_status text default null,
  p_since timestamptz default null,
  p_until timestamptz default null,
  p_event_type text default null,
  p_error text default null
)
returns webhook.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_status public.webhook_event_status := p_status;
  v_about bigint := webhook.rows_about('public.webhook_events');
  v_count bigint;
  v_webhook_ids uuid[] := case when p_event_id is not null and p_webhook_id is null then webhook.webhook_ids() end;
begin
  if v_about is not null and num_nulls(p_webhook_id, p_event_id, p_provider, p_status, p_since, p_until, p_event_type, p_error) = 8 then
    return row(v_about, 'about')::webhook.total;
  end if;
  select count(*) into v_count from (
    select from public.webhook_events e
    where (p_webhook_id is null or e.webhook_id = p_webhook_id)
      and (p_event_id is null or e.event_id = p_event_id)
      and (v_webhook_ids is null or e.webhook_id = any (v_webhook_ids))
      and (p_provider is null or p_provider in (e.provider, split_part(e.provider, ':', 1)))
      and (v_status is null or e.status = v_status)
      and (p_since is null or e.received_at >= p_since)
      and (p_until is null or e.received_at < p_until)
      and (p_event_type is null or e.event_type = p_event_type
        or right(p_event_type, 1) = '*' and starts_with(e.event_type, left(p_event_type, -1)))
      and (p_error is null or strpos(lower(e.error), lower(p_error)) > 0
        or strpos(lower(audit.error_shape(e.error)), lower(p_error)) > 0)
    limit 10001
  ) counted;
  return webhook.counted(v_count);
end
$$;

-- Promise: how many calls match what is not null, as calls.list_calls has it, counted up to 10000; about, where nothing is asked for and
-- there are many. Second call: the same, later. Locks: none.
create function public.call_total(p_site_id text default null, p_event_id text default null, p_kind text default null)
returns webhook.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_about bigint := webhook.rows_about('public.calls');
  v_count bigint;
begin
  if v_about is not null and p_site_id is null and p_event_id is null and p_kind is null then
    return row(v_about, 'about')::webhook.total;
  end if;
  select count(*) into v_count from (
    select from public.calls c
    where (p_site_id is null or c.site_id = p_site_id) and (p_event_id is null or c.event_id = p_event_id)
      and (p_kind is null or c.kind = p_kind)
    limit 10001
  ) counted;
  return webhook.counted(v_count);
end
$$;

-- Promise: how many refunds are in this state, or in all (null), counted up to 10000. Second call: the same, later. Locks: none.
create function public.refund_total(p_state text default null) returns webhook.total
language sql stable security definer set search_path = '' as $$
  select (webhook.counted(count(*))).* from (
    select from public.refunds_due r where p_state is null or r.state = p_state limit 10001
  ) counted;
$$;

-- Promise: as audit_total of DB1. Second call: the same, later. Locks: none.
create function public.audit_total(
  p_actor text default null, p_action text default null, p_subject text default null, p_id bigint default null
)
returns webhook.total
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
declare
  v_about bigint := webhook.rows_about('audit.audit_logs');
  v_count bigint;
begin
  if v_about is not null and p_actor is null and p_action is null and p_subject is null and p_id is null then
    return row(v_about, 'about')::webhook.total;
  end if;
  select count(*) into v_count from (
    select from audit.audit_logs a
    where (p_actor is null or a.actor = p_actor) and (p_action is null or a.action = p_action)
      and (p_subject is null or a.subject = p_subject) and (p_id is null or a.id = p_id)
    limit 10001
  ) counted;
  return webhook.counted(v_count);
end
$$;

-- Promise: all there is about a payment (tenant/payment), as JSON; null where it is not known: the payment, its refunds and balance
-- transactions as the provider told them, its rows of the credit ledger, the events that moved it, what the intake was asked, what is
-- owed of it, and what operators did. Second call: the same, later. Locks: none.
create function public.payment_details(p_payment_key text) returns jsonb
language plpgsql stable security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_payment public.payments;
  v_credits jsonb;
begin
  select p.* into v_payment from public.payments p
  where p.provider = split_part(p_payment_key, '/', 1) and p.object_id = substr(p_payment_key, strpos(p_payment_key, '/') + 1);
  if not found then
    return null;
  end if;
  v_credits := (
    select coalesce(jsonb_agg(to_jsonb(c) order by c.id), '[]') from public.credit_ledger c
    where c.user_id = v_payment.user_id and c.provider = v_payment.provider and c.object_id = v_payment.object_id
  );
  return jsonb_build_object(
    'payment', to_jsonb(v_payment) - array['arrival', 'changes', 'refund_told', 'refund_told_at', 'told', 'held', 'last_event_id']
      || jsonb_build_object('payment_key', p_payment_key),
    'credits', v_credits,
    'provider_refunds', (
      select coalesce(jsonb_agg(to_jsonb(r) - array['provider', 'object_id'] order by r.refund_id), '[]') from public.payment_refunds r
      where r.provider = v_payment.provider and r.object_id = v_payment.object_id
    ),
    'transactions', (
      select coalesce(jsonb_agg(to_jsonb(t) - array['provider', 'object_id', 'dispute_id', 'slack'] order by t.transaction_id), '[]')
      from public.payment_transactions t
      where t.provider = v_payment.provider and t.object_id = v_payment.object_id
    ),
    'events', (
      select coalesce(jsonb_agg(jsonb_build_object('id', e.id, 'event_id', e.event_id, 'event_type', e.event_type,
        'received_at', e.received_at, 'status', e.status) order by e.arrival), '[]')
      from (
        select l ->> 'event_id' as event_id from jsonb_array_elements(v_credits) l union select v_payment.last_event_id
      ) n
      join public.webhook_events e on e.provider = v_payment.provider and e.event_id = n.event_id
    ),
    'outbox', (
      select coalesce(jsonb_agg(to_jsonb(o) - 'token' order by o.created_at, o.id), '[]') from public.claim_outbox o
      where o.id in ('settle:' || p_payment_key, 'void:' || p_payment_key)
    ),
    'refunds', (
      select coalesce(jsonb_agg(to_jsonb(r) - array['token', 'refund_key'] order by r.created_at, r.id), '[]')
      from public.refunds_due r where r.payment_key = p_payment_key
    ),
    'audit', (
      select coalesce(jsonb_agg(to_jsonb(a) order by a.id), '[]') from audit.audit_logs a
      where a.subject = any (
        array['payment ' || p_payment_key, 'payment ' || v_payment.object_id]
          || array(select 'refund ' || r.id from public.refunds_due r where r.payment_key = p_payment_key)
      )
    )
  );
end
$$;

-- Promise: what an event brought about, as JSON: the payments that it moved or tells about, how many rows of the credit ledger it wrote,
-- and what operators did to it. Second call: the same, later. Locks: none.
create function webhook.event_links(p_id uuid) returns jsonb
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select jsonb_build_object(
    'payments', (
      select coalesce(jsonb_agg(jsonb_build_object('payment_key', p.provider || '/' || p.object_id, 'order_id', p.order_id,
        'user_id', p.user_id, 'state', p.state)), '[]')
      from (
        select c.object_id from public.credit_ledger c where c.provider = e.provider and c.event_id = e.event_id
        union
        select i from unnest(array[e.payload #>> '{data,object,payment_intent}', e.payload #>> '{data,object,id}']) i where i is not null
      ) n
      join public.payments p on p.provider = e.provider and p.object_id = n.object_id
    ),
    'credits', (select count(*) from public.credit_ledger c where c.provider = e.provider and c.event_id = e.event_id),
    'audit', (
      select coalesce(jsonb_agg(to_jsonb(a) order by a.id), '[]') from audit.audit_logs a where a.subject = 'webhook event ' || e.id
    )
  )
  from public.webhook_events e where e.id = p_id;
$$;

-- Promise: as user_audit of DB1. Second call: the same, and what is new. Locks: none.
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

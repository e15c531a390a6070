-- WEBHOOKS, payments. What a payment event changes, in the transaction that marks it as done.
--
-- An SQL handler is a function x(p_event public.webhook_events) returns text. Null: the effect is taken. A text: there
-- is nothing to do, and why. SQLSTATE SL030: no retry can help, to the dead letters. SL034: not now, try again later
-- without counting. Any other error: try again, a few times.
-- It must be harmless to run twice, and its result must not depend on the order in which events arrive.

-- The states of a payment in the order of their rank: a higher one is never followed by a lower one, so that events
-- within one second need no order. canceled is the tombstone: nothing follows it.
create type public.payment_state as enum (
  'created', 'requires_action', 'processing', 'failed', 'succeeded', 'partially_refunded', 'refunded', 'disputed',
  'dispute_won', 'dispute_lost', 'canceled'
);

-- One payment of a tenant (provider): the payment intent, or the charge that has none. What was told decides the state, whatever
-- came first: told is the highest state an event told (occurred_at, arrival and last_event_id are that event's), and
-- refunds count by their sum, because a refund can fail after all.
-- amount is what was paid, null until an event says so. refund_told is the total that a charge told last, at
-- refund_told_at; released is the part of a hold that was let go and stands among the refunds; refunded is what counts
-- (webhook.count_refunds), refund_rows how many rows of the ledger that took.
-- No checks: one costs about 5 µs a statement, and what goes in was checked on its way (webhook.apply_payment); the
-- ledger, where the money is, has them.
create table public.payments (
  provider text not null,
  object_id text not null,
  user_id text not null,
  state public.payment_state not null generated always as (greatest(told, case
    when refunded = 0 then 'created'::public.payment_state
    when refunded >= amount then 'refunded'
    else 'partially_refunded'
  end)) stored,
  told public.payment_state not null,
  occurred_at timestamptz not null,
  arrival bigint not null,
  last_event_id text not null,
  amount bigint,
  currency text,
  refund_told bigint not null default 0,
  refund_told_at timestamptz not null default '-infinity',
  released bigint not null default 0,
  refunded bigint not null default 0,
  refund_rows int not null default 0,
  primary key (provider, object_id)
) with (fillfactor = 80);

-- The single refunds of a payment. One that failed stays failed, whatever is told later; failed_at is the first word of
-- it.
create table public.payment_refunds (
  provider text not null,
  refund_id text not null,
  object_id text not null,
  amount bigint not null,
  failed_at timestamptz,
  primary key (provider, refund_id),
  constraint refund_is_not_negative check (amount >= 0)
);

create index payment_refunds_by_payment on public.payment_refunds (provider, object_id);

-- Who was credited or debited what, in minor units (cents), and why. Insert only: a balance is a sum, never an update, and
-- one of a tenant (provider) and a user.
-- business_key names the fact, because several events can tell one.
create table public.credit_ledger (
  id bigint generated always as identity primary key,
  created_at timestamptz not null default now(),
  user_id text not null,
  amount bigint not null,
  currency text not null,
  kind text not null,
  provider text not null,
  object_id text not null,
  event_id text not null,
  business_key text not null,
  constraint one_credit_per_event_and_kind unique (provider, event_id, kind),
  constraint one_credit_per_fact unique (provider, business_key),
  constraint credit_names_its_user check (length(user_id) between 1 and 200),
  constraint amount_in_range check (amount between -1000000000000000 and 1000000000000000),
  constraint currency_is_three_letters check (currency ~ '^[a-z]{3}$')
);

create index credit_ledger_by_user on public.credit_ledger (user_id);

-- Promise: always raises. Second call: the same. Locks: none.
create function webhook.refuse_change() returns trigger
language plpgsql set search_path = '' as $$
begin
  raise exception '% is insert only', tg_table_name
    using errcode = 'restrict_violation', hint = 'correct a wrong row with another row';
end
$$;

create trigger credit_ledger_is_insert_only
  before update or delete or truncate on public.credit_ledger
  for each statement execute function webhook.refuse_change();

-- Always: also for a session that plays replica, which skips other triggers.
alter table public.credit_ledger enable always trigger credit_ledger_is_insert_only;

-- What an event of a type tells about its payment: a state, and perhaps a fact about money, whose amount stands in the
-- first of amount_fields that is there; kind is what the ledger calls it. given is what the object must contain; of
-- several rules the one with the most conditions counts.
-- borrows_user: the object is about a payment and may leave out the user, which the payment has.
create table public.payment_rules (
  event_type text not null,
  given jsonb not null default '{}',
  state public.payment_state not null,
  fact text,
  kind text generated always as (case when fact like 'refund%' then 'refund' else fact end) stored,
  amount_fields text[],
  borrows_user boolean not null default false,
  primary key (event_type, given),
  constraint fact_is_known check (
    fact in ('payment', 'refund_total', 'refund', 'refund_failed', 'dispute', 'dispute_won')
  ),
  constraint refunds_are_told_as_a_sum check (state not in ('partially_refunded', 'refunded')),
  constraint fact_has_an_amount check ((fact is null) = (amount_fields is null))
);

insert into public.payment_rules (event_type, given, state, fact, amount_fields, borrows_user) values
  ('payment_intent.created', '{}', 'created', null, null, false),
  ('payment_intent.requires_action', '{}', 'requires_action', null, null, false),
  ('payment_intent.processing', '{}', 'processing', null, null, false),
  ('payment_intent.payment_failed', '{}', 'failed', null, null, false),
  ('payment_intent.succeeded', '{}', 'succeeded', 'payment', '{amount_received,amount}', false),
  ('payment_intent.canceled', '{}', 'canceled', null, null, false),
  ('charge.pending', '{}', 'processing', null, null, false),
  ('charge.failed', '{}', 'failed', null, null, false),
  ('charge.succeeded', '{}', 'succeeded', 'payment', '{amount_captured,amount}', false),
  -- Authorised only: no money has moved yet.
  ('charge.succeeded', '{"captured": false}', 'processing', null, null, false),
  ('charge.captured', '{}', 'succeeded', 'payment', '{amount_captured,amount}', false),
  ('charge.refunded', '{}', 'succeeded', 'refund_total', '{amount_refunded}', false),
  -- A hold that was let go: no money had moved.
  ('charge.refunded', '{"captured": false}', 'canceled', null, null, false),
  ('checkout.session.completed', '{"payment_status": "paid"}', 'succeeded', 'payment', '{amount_total}', false),
  ('checkout.session.completed', '{"payment_status": "unpaid"}', 'processing', null, null, false),
  ('checkout.session.async_payment_succeeded', '{}', 'succeeded', 'payment', '{amount_total}', false),
  ('checkout.session.async_payment_failed', '{}', 'failed', null, null, false),
  ('refund.failed', '{}', 'succeeded', 'refund_failed', '{amount}', true),
  ('invoice.paid', '{}', 'succeeded', 'payment', '{amount_paid}', false),
  ('charge.dispute.created', '{}', 'disputed', 'dispute', '{amount}', true),
  -- An inquiry: the bank asks, and takes nothing.
  ('charge.dispute.created', '{"status": "warning_needs_response"}', 'disputed', null, null, true),
  ('charge.dispute.created', '{"status": "warning_under_review"}', 'disputed', null, null, true),
  ('charge.dispute.funds_withdrawn', '{}', 'disputed', 'dispute', '{amount}', true),
  -- While a dispute is open, only a part of it may come back, of a payment that was refunded in part.
  ('charge.dispute.funds_reinstated', '{"status": "won"}', 'dispute_won', 'dispute_won', '{amount}', true),
  ('charge.dispute.closed', '{"status": "won"}', 'dispute_won', 'dispute_won', '{amount}', true),
  ('charge.dispute.closed', '{"status": "lost"}', 'dispute_lost', 'dispute', '{amount}', true),
  ('charge.dispute.closed', '{"status": "warning_closed"}', 'dispute_won', null, null, true);

-- charge.refund.updated is the name that refund.updated had before.
insert into public.payment_rules (event_type, given, state, fact, amount_fields, borrows_user)
select t.event_type, g.given, 'succeeded'::public.payment_state, g.fact, array['amount'], true
from unnest(array['refund.created', 'refund.updated', 'charge.refund.updated']) as t (event_type)
cross join (values
  ('{}'::jsonb, 'refund'), ('{"status": "failed"}', 'refund_failed'), ('{"status": "canceled"}', 'refund_failed')
) as g (given, fact);

-- Promise: one row in the ledger for this fact, or none where it stands there already; true when it was written.
-- Raises SL030 when the fact is known with another amount or payment. Second call: false.
-- Locks: the key of the fact; the caller holds the payment.
-- No sequential scans, here and below: a plan made while a table was small must not read all of it when it has grown.
create function webhook.write_credit(
  p_payment public.payments,
  p_kind text,
  p_fact_id text,
  p_amount bigint,
  p_event_id text
)
returns boolean
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_known public.credit_ledger;
begin
  insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
  values (p_payment.user_id, p_amount, p_payment.currency, p_kind, p_payment.provider, p_payment.object_id,
    p_event_id, p_kind || ':' || p_fact_id)
  on conflict (provider, business_key) do nothing;
  if found then
    return true;
  end if;
  select c.* into v_known from public.credit_ledger c
  where c.provider = p_payment.provider and c.business_key = p_kind || ':' || p_fact_id;
  if v_known.amount <> p_amount or v_known.object_id <> p_payment.object_id then
    raise exception '% % is known as % of %, not % of %', p_kind, p_fact_id, v_known.amount, v_known.object_id,
      p_amount, p_payment.object_id using errcode = 'SL030';
  end if;
  return false;
end
$$;

-- Promise: the payment with what an event told about its refunds: a charge tells their total, of which the last one told
-- counts; a refund tells itself. Raises SL030 when a refund changes its amount or its payment.
-- Second call: the same. Locks: the refund; the caller holds the payment, and writes its row.
create function webhook.note_refund(
  p_payment public.payments,
  p_fact text,
  p_refund_id text,
  p_amount bigint,
  p_at timestamptz
)
returns public.payments
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_payment public.payments := p_payment;
  v_refund public.payment_refunds;
begin
  if p_fact = 'refund_total' then
    if (p_at, p_amount) > (p_payment.refund_told_at, p_payment.refund_told) then
      v_payment.refund_told_at := p_at;
      v_payment.refund_told := p_amount;
    end if;
    return v_payment;
  end if;
  insert into public.payment_refunds as r (provider, refund_id, object_id, amount, failed_at)
  values (p_payment.provider, p_refund_id, p_payment.object_id, p_amount, case p_fact when 'refund_failed' then p_at end)
  on conflict (provider, refund_id) do update set failed_at = least(r.failed_at, excluded.failed_at)
  returning r.* into v_refund;
  if v_refund.amount <> p_amount or v_refund.object_id <> p_payment.object_id then
    raise exception 'refund % is known as % of %, not % of %',
      p_refund_id, v_refund.amount, v_refund.object_id, p_amount, p_payment.object_id using errcode = 'SL030';
  end if;
  return v_payment;
end
$$;

-- Promise: the payment with refunded as what is known makes it, and the ledger has the difference. The total that was
-- told, less what failed since (or in the same second: a refund fails after it was told), and the sum of the refunds
-- that told themselves: both may come, in any order, and the larger is right, because each can only lag behind. What was
-- let go of a hold is no refund, and no more comes back than was paid: nothing, as long as nobody told a payment.
-- Second call: the same, no further difference. Locks: the key of the fact; the caller holds the payment, and writes its
-- row.
create function webhook.count_refunds(p_payment public.payments, p_event_id text) returns public.payments
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_payment public.payments := p_payment;
begin
  select greatest(0, least(coalesce(p_payment.amount, 0), greatest(
    p_payment.refund_told - coalesce(sum(r.amount) filter (where r.failed_at >= p_payment.refund_told_at), 0),
    coalesce(sum(r.amount) filter (where r.failed_at is null), 0)
  ) - p_payment.released))
  into v_payment.refunded
  from public.payment_refunds r
  where r.provider = p_payment.provider and r.object_id = p_payment.object_id;
  if v_payment.refunded <> p_payment.refunded then
    v_payment.refund_rows := p_payment.refund_rows + 1;
    perform webhook.write_credit(v_payment, 'refund', p_payment.object_id || ':' || v_payment.refund_rows,
      p_payment.refunded - v_payment.refunded, p_event_id);
  end if;
  return v_payment;
end
$$;

-- Promise: the ledger has what an event told about money that is no refund, once per fact; true when that is news. A
-- dispute takes money and a won one gives it back: who gives back has taken, also where no event told that.
-- Raises SL030 as webhook.write_credit. Second call: false. Locks: the keys of the facts; the caller holds the payment.
create function webhook.take_money(
  p_payment public.payments,
  p_kind text,
  p_object_id text,
  p_amount bigint,
  p_event_id text
)
returns boolean
language plpgsql set search_path = '' as $$
begin
  if p_kind = 'payment' then
    return webhook.write_credit(p_payment, p_kind, p_payment.object_id, p_amount, p_event_id);
  elsif p_kind = 'dispute_won' then
    perform webhook.write_credit(p_payment, 'dispute', p_object_id, -p_amount, p_event_id);
    return webhook.write_credit(p_payment, p_kind, p_object_id, p_amount, p_event_id);
  end if;
  return webhook.write_credit(p_payment, p_kind, p_object_id, -p_amount, p_event_id);
end
$$;

-- Promise: what an event tells about a payment is known: the state where it is newer (state, occurred_at, arrival), the
-- money in any case, once per fact. p_told is the payment as this event alone tells it; p_amount is the fact's. Answers
-- "already known" or "older than what is known" where neither changed. Raises SL030 when it contradicts what is known,
-- and SL034 when it has no user and its payment is still to come. Second call: one of those two answers.
-- Locks: the payment → its refund → the key of the fact.
create function webhook.tell_payment(
  p_told public.payments,
  p_rule public.payment_rules,
  p_fact_id text,
  p_amount bigint
)
returns text
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_known public.payments;
  v_new public.payments;
  v_is_news boolean := false;
  v_is_written boolean;
begin
  if p_told.user_id is not null then
    insert into public.payments as p
      (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, released, currency)
    values (p_told.provider, p_told.object_id, p_told.user_id, p_told.told, p_told.occurred_at, p_told.arrival,
      p_told.last_event_id, p_told.amount, p_told.released, p_told.currency)
    on conflict (provider, object_id) do nothing
    returning p.* into v_known;
    v_is_news := found;
  end if;
  if not v_is_news then
    select p.* into v_known from public.payments p
    where p.provider = p_told.provider and p.object_id = p_told.object_id for update;
    if not found then
      raise exception 'no metadata.user_id, and payment % not seen yet', p_told.object_id using errcode = 'SL034';
    elsif v_known.user_id <> p_told.user_id or v_known.currency <> p_told.currency or v_known.amount <> p_told.amount then
      raise exception 'payment % is known as % % of user %, not % % of user %', p_told.object_id, v_known.amount,
        v_known.currency, v_known.user_id, p_told.amount, p_told.currency, p_told.user_id using errcode = 'SL030';
    end if;
  end if;
  v_new := v_known;
  v_new.amount := coalesce(v_known.amount, p_told.amount);
  v_new.released := greatest(v_known.released, p_told.released);
  v_new.currency := coalesce(v_known.currency, p_told.currency);
  if (p_told.told, p_told.occurred_at, p_told.arrival) > (v_known.told, v_known.occurred_at, v_known.arrival) then
    v_is_news := v_is_news or p_told.told > v_known.told;
    v_new.told := p_told.told;
    v_new.occurred_at := p_told.occurred_at;
    v_new.arrival := p_told.arrival;
    v_new.last_event_id := p_told.last_event_id;
  end if;
  if p_rule.kind = 'refund' then
    v_new := webhook.note_refund(v_new, p_rule.fact, p_fact_id, p_amount, p_told.occurred_at);
  elsif p_rule.kind is not null then
    -- A statement of its own: inside "… or v_is_news" the planner may leave the call out where the rest is true.
    v_is_written := webhook.take_money(v_new, p_rule.kind, p_fact_id, p_amount, p_told.last_event_id);
    v_is_news := v_is_news or v_is_written;
  end if;
  if p_rule.kind = 'refund' or (v_new.amount, v_new.released) is distinct from (v_known.amount, v_known.released) then
    v_new := webhook.count_refunds(v_new, p_told.last_event_id);
    v_is_news := v_is_news or v_new.refunded <> v_known.refunded;
  end if;
  if v_new is distinct from v_known then
    update public.payments p
    set (told, occurred_at, arrival, last_event_id, amount, currency, refund_told, refund_told_at, released, refunded,
        refund_rows)
      = (v_new.told, v_new.occurred_at, v_new.arrival, v_new.last_event_id, v_new.amount, v_new.currency,
        v_new.refund_told, v_new.refund_told_at, v_new.released, v_new.refunded, v_new.refund_rows)
    where p.provider = p_told.provider and p.object_id = p_told.object_id;
  end if;
  return case when v_is_news then null when v_new.last_event_id = p_told.last_event_id then 'already known'
    else 'older than what is known' end;
end
$$;

-- Promise: a payment event of Stripe has its effect, as payment_rules and webhook.tell_payment say. The payment is the
-- payment intent where the object is one or names one, so that charge, session and invoice tell of the same payment, or
-- else the charge. An object that names neither has no effect: whatever money it tells, they tell too, and nothing shows
-- that it is the same. The user is the object's metadata.user_id. Raises SL030 for what no retry can mend.
-- Second call: a reason to skip it. Locks: those of webhook.tell_payment.
create function webhook.apply_payment(p_event public.webhook_events) returns text
language plpgsql set search_path = '' as $$
declare
  c_releases_are_no_refunds constant text := '2025-03-31';
  v_object jsonb := p_event.payload #> '{data,object}';
  v_key text := coalesce(v_object ->> 'payment_intent', v_object ->> 'charge');
  v_told public.payments;
  v_rule public.payment_rules;
  -- As JSON, so that a number in quotes is none.
  v_held text := nullif(v_object -> 'amount', 'null');
  v_amount text;
  v_paid text;
  v_fault text;
begin
  -- Among objects jsonb sorts the one with more keys last.
  select r.* into v_rule from public.payment_rules r
  where r.event_type = p_event.event_type and coalesce(v_object, '{}') @> r.given
  order by r.given desc
  limit 1;
  if not found then
    return 'tells nothing about a payment';
  elsif v_key is null and p_event.event_type !~ '^(payment_intent|charge)\.\w+$' then
    return 'names no payment: its money is credited when a payment intent or a charge with metadata.user_id tells it';
  end if;
  v_key := coalesce(v_key, v_object ->> 'id');
  v_amount := nullif(coalesce(
    nullif(v_object -> v_rule.amount_fields[1], 'null'), v_object -> v_rule.amount_fields[2]
  ), 'null');
  v_paid := case v_rule.fact
    when 'payment' then v_amount
    when 'refund_total' then coalesce(v_object ->> 'amount_captured', v_object ->> 'amount')
  end;
  v_told.user_id := nullif(v_object #>> '{metadata,user_id}', '');
  v_told.currency := lower(v_object ->> 'currency');
  v_fault := case
    when (v_key ~ '^\w+$' and v_object ->> 'id' ~ '^\w+$') is not true then 'no id of a payment'
    when v_told.user_id is null and not v_rule.borrows_user then 'no metadata.user_id'
    when v_told.currency !~ '^[a-z]{3}$' then 'currency is not three letters'
    when v_rule.fact is null then null
    when v_told.currency is null then 'no currency'
    when v_amount is null then 'no ' || v_rule.amount_fields[1]
    when v_amount !~ '^\d+$' or v_paid !~ '^\d+$' or v_held !~ '^\d+$' then 'amount is no whole number'
    when greatest(v_amount::numeric, v_paid::numeric, v_held::numeric) > 1e15 then 'amount is above 10^15'
  end;
  if v_fault is not null then
    raise exception '%', v_fault using errcode = 'SL030';
  end if;
  v_told.provider := p_event.provider;
  v_told.object_id := v_key;
  v_told.told := v_rule.state;
  v_told.occurred_at := coalesce(p_event.occurred_at, p_event.received_at);
  v_told.arrival := p_event.arrival;
  v_told.last_event_id := p_event.event_id;
  v_told.amount := v_paid;
  -- Until this version what was not taken of a hold stood among the refunds; an event without a version counts as old.
  v_told.released := case
    when v_paid is null or p_event.payload ->> 'api_version' collate "C" >= c_releases_are_no_refunds then 0
    else greatest(0, v_held::bigint - v_paid::bigint)
  end;
  return webhook.tell_payment(v_told, v_rule, v_object ->> 'id', v_amount::bigint);
end
$$;

-- Promise: what each currency adds up to for this user with each tenant (provider), in minor units. Never over tenants: who
-- has the secret of one endpoint must not change what a user has with another. Second call: the same. Locks: none.
create function webhook.balance(p_user_id text) returns table (provider text, currency text, amount bigint)
language sql stable set search_path = '' as $$
  select c.provider, c.currency, sum(c.amount)::bigint
  from public.credit_ledger c
  where c.user_id = p_user_id
  group by c.provider, c.currency
  order by c.provider, c.currency;
$$;

insert into public.webhook_handlers (provider, event_type, kind, name)
select distinct 'stripe', r.event_type, 'sql', 'webhook.apply_payment' from public.payment_rules r;

alter table public.payments enable row level security;
alter table public.payment_refunds enable row level security;
alter table public.payment_rules enable row level security;
alter table public.credit_ledger enable row level security;

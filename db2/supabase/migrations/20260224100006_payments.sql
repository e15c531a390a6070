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

-- One payment of a tenant (provider): the payment intent, or the charge that has none. The state does not depend on the order of
-- events: told is the highest state that an event told (occurred_at, arrival and last_event_id are that event's).
-- user_id is null until an event names the user: the payment is recorded, and its credits wait.
-- The money, in the payment's own currency, each sum a function of the facts that were told and not of their order:
-- captured is the highest total of captures that an event told (a payment can be captured several times; no total ever
-- falls). refunded is what counts of the refunds (webhook.count_refunds): refund_told is the total that a charge told last,
-- at refund_told_at. disputed is the sum of the disputes' balance transactions, null until one was told. silent_disputes are
-- those that say that money moved while no event lists their transactions: how much is not known. lost_disputes are those that an
-- event called lost: what they took stays away, also where an appeal gives it back, which their transactions say.
-- amount is what was paid, by any event's word, null until one says so; held is the hold that it was taken from, whose rest old
-- versions of the API make a refund of. changes numbers the events that moved money.
-- adopted is what the ledger had debited of the payment when Sluice took it over, the last of it at adopted_until: for refunds or
-- disputes, it does not say which. So it has what happened until then, and a fact from then tells what a debit was for and moves no
-- money. refund_before is the lowest total of refunds that a charge had before a refund that came after adopted_until.
-- order_id is the order that the payment is for, by the word of its metadata (claim_id); see 20260224100015_orders.sql.
-- No checks: one costs about 5 µs a statement, and what goes in was checked on its way (webhook.apply_payment); the
-- ledger, where the money is, has them.
create table public.payments (
  provider text not null,
  object_id text not null,
  user_id text,
  -- A dispute that was lost, appealed, and gave all its money back is not lost.
  state public.payment_state not null generated always as (greatest(
    case when told = 'dispute_lost' and disputed = 0 then 'dispute_won'::public.payment_state else told end,
    case
      when refunded = 0 then 'created'::public.payment_state
      when refunded >= amount then 'refunded'
      else 'partially_refunded'
    end
  )) stored,
  told public.payment_state not null,
  occurred_at timestamptz not null,
  arrival bigint not null,
  last_event_id text not null,
  amount bigint,
  held bigint,
  currency text,
  captured bigint not null default 0,
  refund_told bigint not null default 0,
  refund_told_at timestamptz not null default '-infinity',
  refunded bigint not null default 0,
  disputed bigint,
  silent_disputes text[],
  lost_disputes text[],
  changes int not null default 1,
  order_id uuid,
  adopted bigint not null default 0,
  adopted_until timestamptz not null default '-infinity',
  refund_before bigint,
  primary key (provider, object_id)
) with (fillfactor = 80);

create index payments_by_order on public.payments (order_id) where order_id is not null;

-- Of these the credits wait (webhook.payments_without_user).
create index payments_without_user on public.payments (provider, object_id)
  where user_id is null and (captured <> 0 or refunded <> 0 or disputed <> 0);

-- Of these an operator must know (public.webhook_sample).
create index payments_with_silent_disputes on public.payments (provider, object_id) where silent_disputes is not null;

-- The single refunds of a payment. One that failed stays failed, whatever is told later; failed_at is the first word of
-- it. may_be_release: no event told it but of versions that make a refund of what is let go of a hold. is_adopted: it was made
-- until the payment's adopted_until.
create table public.payment_refunds (
  provider text not null,
  refund_id text not null,
  object_id text not null,
  amount bigint not null,
  failed_at timestamptz,
  may_be_release boolean not null default true,
  is_adopted boolean not null default false,
  primary key (provider, refund_id),
  constraint refund_is_not_negative check (amount >= 0)
);

create index payment_refunds_by_payment on public.payment_refunds (provider, object_id);

-- The balance transactions of a payment's disputes, in the payment's currency and without their fees: below zero is
-- withdrawn, above it reinstated. slack is what turning one back from the account's currency may have missed. is_adopted: it was
-- made until the payment's adopted_until.
create table public.payment_transactions (
  provider text not null,
  transaction_id text not null,
  object_id text not null,
  dispute_id text not null,
  amount bigint not null,
  slack bigint not null,
  is_adopted boolean not null default false,
  primary key (provider, transaction_id)
);

create index payment_transactions_by_payment on public.payment_transactions (provider, object_id);

-- Who was credited or debited what, in minor units (cents), and why. Insert only: a balance is a sum, never an update, and
-- one of a tenant (provider) and a user.
-- business_key numbers the changes of a payment's money: several events can tell one fact, and only the one that changes a
-- sum writes a row, with the difference.
create table if not exists public.credit_ledger (
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

-- Payments of a ledger that was taken over know what it has credited and debited, so that an event about one of them does not
-- credit it again. What was credited after the first debit is money that came back, as far as there are debits. What is left of the
-- debits counts as refunds until an event says otherwise.
insert into public.payments (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, currency,
  captured, refunded, adopted, adopted_until)
select c.provider, c.object_id, c.user_id, 'succeeded', c.created_at, 0, c.event_id, c.balance + c.debited, c.currency,
  c.balance + c.debited, c.debited, c.debited, c.debited_until
from (
  select o.provider, o.object_id, min(o.user_id) as user_id, min(o.currency) as currency, min(o.created_at) as created_at,
    min(o.event_id) as event_id, sum(o.amount)::bigint as balance,
    greatest(0, -sum(o.amount) filter (where o.is_after_debit))::bigint as debited,
    coalesce(max(o.created_at) filter (where o.is_after_debit), '-infinity') as debited_until
  from (
    select l.*, bool_or(l.amount < 0) over (partition by l.provider, l.object_id order by l.created_at, l.id) as is_after_debit
    from public.credit_ledger l
  ) o
  group by o.provider, o.object_id
) c;

-- Promise: raises, but for an update by audit.erase_rows: webhook.keep_credit sees to it that it changes the user and nothing
-- else. Second call: the same. Locks: none.
create function webhook.refuse_change() returns trigger
language plpgsql set search_path = '' as $$
begin
  if current_setting('sluice.audit_exception', true) = 'erase' and tg_op = 'UPDATE' then
    return null;
  end if;
  raise exception '% is insert only', tg_table_name
    using errcode = 'restrict_violation', hint = 'correct a wrong row with another row';
end
$$;

create trigger credit_ledger_is_insert_only
  before update or delete or truncate on public.credit_ledger
  for each statement execute function webhook.refuse_change();

-- Always: also for a session that plays replica, which skips other triggers.
alter table public.credit_ledger enable always trigger credit_ledger_is_insert_only;

-- Trigger. Promise: a row of the ledger can lose its user's name to a replacement, and nothing else of it changes: sums and keys stay.
-- Columns that an adopted ledger brought along may lose the name too. Second call: the same. Locks: none.
create function webhook.keep_credit() returns trigger
language plpgsql set search_path = '' as $$
begin
  if new.user_id <> old.user_id and not audit.is_replacement(new.user_id)
    or (new.id, new.created_at, new.amount, new.currency, new.kind, new.provider, new.object_id, new.event_id, new.business_key)
      is distinct from
      (old.id, old.created_at, old.amount, old.currency, old.kind, old.provider, old.object_id, old.event_id, old.business_key)
  then
    raise exception 'credit_ledger is insert only'
      using errcode = 'restrict_violation', hint = 'correct a wrong row with another row';
  end if;
  return new;
end
$$;

create trigger credits_stay before update on public.credit_ledger for each row execute function webhook.keep_credit();
alter table public.credit_ledger enable always trigger credits_stay;

-- What an event of a type tells about its payment: a state, and perhaps a fact about money, whose amount stands in the
-- first of amount_fields that is there; kind is what the ledger calls it. Only facts move money, states never do. given is
-- what the object must contain; of several rules the one with the most conditions counts. A rule without a state: the
-- event tells nothing.
-- names_user: the object's metadata.user_id is the payment's user. Refunds and disputes have metadata of their own.
create table public.payment_rules (
  event_type text not null,
  given jsonb not null default '{}',
  state public.payment_state,
  fact text,
  kind text generated always as (case when fact like 'refund%' then 'refund' else fact end) stored,
  amount_fields text[],
  names_user boolean not null default true,
  primary key (event_type, given),
  constraint fact_is_known check (fact in ('payment', 'refund_total', 'refund', 'refund_failed', 'dispute')),
  constraint refunds_are_told_as_a_sum check (state not in ('partially_refunded', 'refunded')),
  constraint fact_has_a_state check (fact is null or state is not null),
  constraint fact_has_an_amount check ((fact is null) = (amount_fields is null))
);

insert into public.payment_rules (event_type, given, state, fact, amount_fields) values
  ('payment_intent.created', '{}', 'created', null, null),
  ('payment_intent.requires_action', '{}', 'requires_action', null, null),
  ('payment_intent.processing', '{}', 'processing', null, null),
  ('payment_intent.payment_failed', '{}', 'failed', null, null),
  ('payment_intent.succeeded', '{}', 'succeeded', 'payment', '{amount_received,amount}'),
  ('payment_intent.canceled', '{}', 'canceled', null, null),
  ('charge.pending', '{}', 'processing', null, null),
  ('charge.failed', '{}', 'failed', null, null),
  ('charge.succeeded', '{}', 'succeeded', 'payment', '{amount_captured,amount}'),
  -- Authorised only: no money has moved yet.
  ('charge.succeeded', '{"captured": false}', 'processing', null, null),
  ('charge.captured', '{}', 'succeeded', 'payment', '{amount_captured,amount}'),
  -- Whatever was changed, perhaps the user.
  ('charge.updated', '{}', 'created', null, null),
  ('charge.updated', '{"captured": true, "status": "succeeded"}', 'succeeded', 'payment', '{amount_captured,amount}'),
  ('charge.refunded', '{}', 'succeeded', 'refund_total', '{amount_refunded}'),
  -- A hold that was let go: no money had moved.
  ('charge.refunded', '{"captured": false}', 'canceled', null, null),
  ('checkout.session.completed', '{"payment_status": "paid"}', 'succeeded', 'payment', '{amount_total}'),
  ('checkout.session.completed', '{"payment_status": "unpaid"}', 'processing', null, null),
  ('checkout.session.async_payment_succeeded', '{}', 'succeeded', 'payment', '{amount_total}'),
  ('checkout.session.async_payment_failed', '{}', 'failed', null, null);

-- invoice.payment_succeeded is the older name. Paid out of band: the money did not pass through Stripe.
insert into public.payment_rules (event_type, given, state, fact, amount_fields)
select t.event_type, '{}'::jsonb, 'succeeded'::public.payment_state, 'payment', '{amount_paid}'::text[]
from unnest('{invoice.paid,invoice.payment_succeeded}'::text[]) as t (event_type)
union all
select t.event_type, '{"paid_out_of_band": true}', null, null, null
from unnest('{invoice.paid,invoice.payment_succeeded}'::text[]) as t (event_type);

insert into public.payment_rules (event_type, given, state, fact, amount_fields, names_user) values
  ('invoice_payment.paid', '{}', 'succeeded', 'payment', '{amount_paid}', false),
  ('refund.failed', '{}', 'succeeded', 'refund_failed', '{amount}', false);

-- charge.refund.updated is the name that refund.updated had before.
insert into public.payment_rules (event_type, given, state, fact, amount_fields, names_user)
select t.event_type, g.given, 'succeeded'::public.payment_state, g.fact, '{amount}', false
from unnest('{refund.created,refund.updated,charge.refund.updated}'::text[]) as t (event_type)
cross join (values
  ('{}'::jsonb, 'refund'), ('{"status": "failed"}', 'refund_failed'), ('{"status": "canceled"}', 'refund_failed')
) as g (given, fact);

-- Every event about a dispute tells its balance transactions, whatever its status: an inquiry (warning_…) and a dispute
-- that was prevented have none, an appeal adds to them.
insert into public.payment_rules (event_type, given, state, fact, amount_fields, names_user)
select 'charge.dispute.' || t.name, g.given, g.state::public.payment_state, 'dispute', '{balance_transactions}', false
from unnest('{created,updated,funds_withdrawn,funds_reinstated,closed}'::text[]) as t (name)
cross join (values
  ('{}'::jsonb, 'disputed'), ('{"status": "won"}', 'dispute_won'), ('{"status": "prevented"}', 'dispute_won'),
  ('{"status": "warning_closed"}', 'dispute_won'), ('{"status": "lost"}', 'dispute_lost')
) as g (given, state);

-- Why an event of Stripe that has a rule changes nothing. The whole list: the handler answers with nothing else, and each
-- reason is explained in docs/integrations/stripe.md.
create type webhook.skip_reason as enum (
  'already known', 'older than what is known', 'tells nothing about a payment', 'names no payment',
  'names several payments', 'carries no object'
);

-- Promise: the ledger has the difference that p_after makes to p_before, one row for each kind of money that moved. Nothing
-- was written for a payment while it had no user. An adopted debit that turns out to be for a dispute and not for a refund, or the
-- other way round, moves nothing. Raises unique_violation when this change of the payment was written
-- already. Second call: that. Locks: the keys of the rows; the caller holds the payment.
create function webhook.write_credits(p_before public.payments, p_after public.payments, p_event_id text) returns void
language plpgsql set search_path = '' as $$
declare
  v_is_first boolean := p_before.user_id is null;
  v_refund bigint := case when v_is_first then 0 else p_before.refunded end - p_after.refunded;
  v_dispute bigint := coalesce(p_after.disputed, 0) - case when v_is_first then 0 else coalesce(p_before.disputed, 0) end;
  v_renamed bigint;
begin
  if p_after.user_id is null then
    return;
  elsif p_after.adopted_until > '-infinity' and sign(v_refund) * sign(v_dispute) < 0 then
    v_renamed := sign(v_refund) * least(abs(v_refund), abs(v_dispute));
    v_refund := v_refund - v_renamed;
    v_dispute := v_dispute + v_renamed;
  end if;
  insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
  select p_after.user_id, m.amount, p_after.currency, m.kind, p_after.provider, p_after.object_id, p_event_id,
    m.kind || ':' || p_after.object_id || ':' || p_after.changes
  from (values
    ('payment', p_after.captured - case when v_is_first then 0 else p_before.captured end),
    ('refund', v_refund),
    ('dispute', v_dispute)
  ) as m (kind, amount)
  where m.amount <> 0;
end
$$;

-- Promise: whether the object was made until p_until, by its own word; null where it has none. Second call: the same. Locks: none.
create function webhook.was_made_until(p_object jsonb, p_until timestamptz) returns boolean
language sql immutable set search_path = '' as $$
  select case when (p_object -> 'created')::text ~ '^\d{1,12}$' then to_timestamp((p_object ->> 'created')::bigint) <= p_until end;
$$;

-- Promise: the payment with what an event told about its refunds: a charge tells their total, of which the last one told
-- counts; a refund tells itself. p_may_be_release: the event's version makes a refund of what is let go of a hold.
-- Raises SL030 when a refund changes its amount or its payment.
-- Second call: the same. Locks: the refund; the caller holds the payment, and writes its row.
-- No sequential scans, here and below: a plan made while a table was small must not read all of it when it has grown.
create function webhook.note_refund(
  p_payment public.payments,
  p_fact text,
  p_refund jsonb,
  p_amount bigint,
  p_at timestamptz,
  p_may_be_release boolean
)
returns public.payments
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_payment public.payments := p_payment;
  v_refund public.payment_refunds;
begin
  if p_fact = 'refund_total' then
    if p_at > p_payment.adopted_until and (p_at, p_amount) > (p_payment.refund_told_at, p_payment.refund_told) then
      v_payment.refund_told_at := p_at;
      v_payment.refund_told := p_amount;
    end if;
    return v_payment;
  end if;
  insert into public.payment_refunds as r (provider, refund_id, object_id, amount, failed_at, may_be_release, is_adopted)
  values (p_payment.provider, p_refund ->> 'id', p_payment.object_id, p_amount, case p_fact when 'refund_failed' then p_at end,
    p_may_be_release, coalesce(webhook.was_made_until(p_refund, p_payment.adopted_until), p_at <= p_payment.adopted_until))
  on conflict (provider, refund_id) do update
    set failed_at = least(r.failed_at, excluded.failed_at), may_be_release = r.may_be_release and excluded.may_be_release,
      is_adopted = r.is_adopted or excluded.is_adopted
  returning r.* into v_refund;
  if v_refund.amount <> p_amount or v_refund.object_id <> p_payment.object_id then
    raise exception 'refund % is known as % of %, not % of %',
      v_refund.refund_id, v_refund.amount, v_refund.object_id, p_amount, p_payment.object_id using errcode = 'SL030';
  end if;
  return v_payment;
end
$$;

-- Promise: what of the adopted debits was for refunds: all that no balance transaction from then explains, and no more than was
-- refunded before a later refund. Second call: the same. Locks: none; the caller holds the payment.
create function webhook.adopted_refunds(p_payment public.payments) returns bigint
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select least(greatest(0, p_payment.adopted + coalesce(sum(t.amount), 0)), p_payment.refund_before)::bigint
  from public.payment_transactions t
  where t.provider = p_payment.provider and t.object_id = p_payment.object_id and t.is_adopted;
$$;

-- Promise: how much of this payment is refunded, by what is known. Two numbers say it: the total that a charge told, less what
-- failed since (or in the same second: a refund fails after it was told), and the sum of the refunds that told themselves, on top of
-- what was adopted. Both may come, in any order, and the larger is right, because each can only lag behind. A refund that may be the
-- rest of a hold, and has its amount, does not count. No more is refunded than was paid: nothing, as long as no event told a payment.
-- Second call: the same. Locks: none; the caller holds the payment.
create function webhook.count_refunds(p_payment public.payments) returns bigint
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select greatest(0, least(coalesce(p_payment.amount, 0), greatest(
    p_payment.refund_told - coalesce(sum(r.amount) filter (where r.failed_at >= p_payment.refund_told_at), 0),
    coalesce(sum(r.amount) filter (where r.failed_at is null and not r.is_adopted), 0)
      - case when bool_or(r.failed_at is null and not r.is_adopted and r.may_be_release and r.amount = p_payment.held - p_payment.amount)
        then p_payment.held - p_payment.amount else 0 end
      + case when p_payment.adopted > 0 then webhook.adopted_refunds(p_payment)
        - coalesce(sum(r.amount) filter (where r.is_adopted and r.failed_at > p_payment.adopted_until), 0) else 0 end
  )))::bigint
  from public.payment_refunds r
  where r.provider = p_payment.provider and r.object_id = p_payment.object_id;
$$;

-- Promise: what a balance transaction of this dispute moved, in the dispute's currency, which is the payment's. In the
-- account's own currency (amount × exchange_rate, rounded) it is turned back; where it can be the dispute's whole amount
-- it is that, because the quotient of two rounded numbers can miss it. Of a part nothing else is known: where a unit of the
-- account is worth several of the payment's, several parts look alike, and slack is how far off it may be. Raises SL030 for
-- what is not a balance transaction, or cannot be turned back. Second call: the same. Locks: none.
create function webhook.moved_amount(p_dispute jsonb, p_transaction jsonb, out amount bigint, out slack bigint)
language plpgsql immutable set search_path = '' as $$
declare
  -- An exchange rate comes with about six digits.
  c_slack constant numeric := 0.0001;
  -- As JSON, so that a number in quotes does not count as a number.
  v_amount numeric := case when (p_transaction -> 'amount')::text ~ '^-?\d{1,15}$' then p_transaction ->> 'amount' end;
  v_whole numeric := case when (p_dispute -> 'amount')::text ~ '^\d{1,15}$' then p_dispute ->> 'amount' end;
  v_rate numeric := case jsonb_typeof(p_transaction -> 'exchange_rate')
    when 'number' then nullif((p_transaction ->> 'exchange_rate')::numeric, 0)
  end;
begin
  slack := 0;
  if (p_transaction ->> 'id' ~ '^\w+$' and v_amount is not null and p_transaction ->> 'currency' is not null) is not true then
    raise exception 'a balance transaction lacks its id, its amount or its currency' using errcode = 'SL030';
  elsif lower(p_transaction ->> 'currency') = lower(p_dispute ->> 'currency') then
    amount := v_amount;
  elsif v_whole is not null and (v_rate is null or abs(v_whole * v_rate - abs(v_amount)) <= 0.5 + abs(v_amount) * c_slack) then
    amount := sign(v_amount) * v_whole;
  elsif v_rate is null or v_rate < 0 or abs(v_amount / v_rate) > 1e15 then
    raise exception 'balance transaction % is in another currency than its dispute, without an exchange rate',
      p_transaction ->> 'id' using errcode = 'SL030';
  else
    amount := round(v_amount / v_rate);
    slack := ceil(0.5 / v_rate + abs(amount) * c_slack);
  end if;
end
$$;

-- Promise: the balance transactions that this dispute carries are known, but for fees that are transactions of their own; returns
-- the payment. An event that says that money moved, of a dispute without a transaction, makes the dispute silent, until one tells
-- them. Raises SL030 when a transaction changes its amount (by more than rounding, after which the larger counts) or its payment.
-- Second call: the same. Locks: the transactions, by id; the caller holds the payment, and writes its row.
create function webhook.note_dispute(p_payment public.payments, p_event_type text, p_dispute jsonb) returns public.payments
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  c_fees constant text[] := '{stripe_fee,stripe_fx_fee,tax_fee}';
  c_moving constant text[] := '{charge.dispute.funds_withdrawn,charge.dispute.funds_reinstated}';
  -- What turning back from another currency may miss: one in so many.
  c_slack constant bigint := 10000;
  v_payment public.payments := p_payment;
  v_transaction jsonb;
  v_moved record;
  v_known public.payment_transactions;
begin
  for v_transaction in
    select t from jsonb_array_elements(nullif(p_dispute -> 'balance_transactions', 'null')) t
    where coalesce(t ->> 'type', '') <> all (c_fees) order by t ->> 'id'
  loop
    select m.amount, m.slack into v_moved from webhook.moved_amount(p_dispute, v_transaction) m;
    insert into public.payment_transactions (provider, transaction_id, object_id, dispute_id, amount, slack, is_adopted)
    values (p_payment.provider, v_transaction ->> 'id', p_payment.object_id, p_dispute ->> 'id', v_moved.amount, v_moved.slack,
      webhook.was_made_until(v_transaction, p_payment.adopted_until) is true)
    on conflict do nothing;
    continue when found;
    select t.* into v_known from public.payment_transactions t
    where t.provider = p_payment.provider and t.transaction_id = v_transaction ->> 'id';
    if abs(v_known.amount - v_moved.amount) > 1 + abs(v_moved.amount) / c_slack or v_known.object_id <> p_payment.object_id then
      raise exception 'balance transaction % is known as % of %, not % of %', v_known.transaction_id, v_known.amount,
        v_known.object_id, v_moved.amount, p_payment.object_id using errcode = 'SL030';
    end if;
    update public.payment_transactions t set amount = v_moved.amount
    where t.provider = p_payment.provider and t.transaction_id = v_known.transaction_id and t.amount < v_moved.amount;
  end loop;
  if exists (
    select from public.payment_transactions t
    where t.provider = p_payment.provider and t.object_id = p_payment.object_id and t.dispute_id = p_dispute ->> 'id'
  ) then
    v_payment.silent_disputes := nullif(array_remove(p_payment.silent_disputes, p_dispute ->> 'id'), '{}');
  elsif (p_event_type = any (c_moving) or p_dispute ->> 'status' = 'lost')
    and (p_dispute ->> 'id' = any (p_payment.silent_disputes)) is not true then
    v_payment.silent_disputes := p_payment.silent_disputes || (p_dispute ->> 'id');
  end if;
  if p_dispute ->> 'status' = 'lost' and (p_dispute ->> 'id' = any (p_payment.lost_disputes)) is not true then
    v_payment.lost_disputes := p_payment.lost_disputes || (p_dispute ->> 'id');
  end if;
  return v_payment;
end
$$;

-- Promise: what the balance transactions of each of the payment's disputes add up to, and how much of that is adopted. A dispute whose
-- parts add up to nothing or to all of it, as far as their slack lets one see, took nothing or all.
-- Second call: the same. Locks: none; the caller holds the payment.
create function webhook.dispute_sums(p_payment public.payments) returns table (dispute_id text, amount bigint, adopted bigint)
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select d.dispute_id, case
    when abs(d.amount) <= d.slack then 0
    when abs(abs(d.amount) - d.whole) <= d.slack then sign(d.amount) * d.whole
    else d.amount
  end::bigint, d.adopted::bigint
  from (
    select t.dispute_id, sum(t.amount) as amount, sum(t.slack) as slack, max(abs(t.amount)) filter (where t.slack = 0) as whole,
      coalesce(sum(t.amount) filter (where t.is_adopted), 0) as adopted
    from public.payment_transactions t
    where t.provider = p_payment.provider and t.object_id = p_payment.object_id
    group by t.dispute_id
  ) d;
$$;

-- Promise: what the payment's disputes add up to, null where no transaction is known. Of the time before adopted_until counts what was
-- adopted and is not a refund, and no transaction. Second call: the same. Locks: none; the caller holds the payment.
create function webhook.count_disputes(p_payment public.payments) returns bigint
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select case
    when p_payment.adopted_until = '-infinity' then k.amount
    when k.amount is null then nullif(webhook.adopted_refunds(p_payment) - p_payment.adopted, 0)
    else k.amount - k.adopted + webhook.adopted_refunds(p_payment) - p_payment.adopted
  end::bigint
  from (select sum(d.adopted) as adopted, sum(d.amount) as amount from webhook.dispute_sums(p_payment) d) k;
$$;

-- Promise: what lost disputes took of the payment, below zero. A lost dispute without a known transaction took all that was captured. A
-- dispute that is open took nothing yet: its money may come back. Second call: the same. Locks: none; the caller holds the payment.
create function webhook.lost_of(p_payment public.payments) returns bigint
language sql stable set search_path = '' as $$
  select case when count(d.dispute_id) < count(*) then -p_payment.captured else coalesce(sum(d.amount), 0) end::bigint
  from unnest(p_payment.lost_disputes) l (dispute_id)
  left join webhook.dispute_sums(p_payment) d using (dispute_id);
$$;

-- Promise: the payment with what an event told about its refunds or disputes, counted. The arguments are those of
-- webhook.tell_payment. Second call: the same. Locks: those of note_refund and note_dispute; the caller holds the payment.
create function webhook.note_money(
  p_payment public.payments,
  p_told public.payments,
  p_rule public.payment_rules,
  p_object jsonb,
  p_amount bigint,
  p_may_be_release boolean
)
returns public.payments
language plpgsql set search_path = '' as $$
declare
  v_payment public.payments := p_payment;
  v_is_adopted constant boolean := p_payment.adopted_until > '-infinity';
  -- What Stripe answers (pull:) has our time, and its clock may be ahead: it is newer than what was told until now.
  v_at constant timestamptz := case when p_told.last_event_id like 'pull:%' then greatest(p_told.occurred_at, p_payment.refund_told_at)
    else p_told.occurred_at end;
begin
  if p_rule.kind = 'refund' then
    v_payment := webhook.note_refund(v_payment, p_rule.fact, p_object, p_amount, v_at, p_may_be_release);
  elsif p_rule.kind = 'dispute' then
    v_payment := webhook.note_dispute(v_payment, p_rule.event_type, p_object);
  end if;
  if v_is_adopted and p_told.occurred_at > p_payment.adopted_until then
    v_payment.refund_before := least(p_payment.refund_before, p_told.refund_before);
  end if;
  if p_rule.kind is distinct from 'dispute' or v_is_adopted then
    v_payment.refunded := webhook.count_refunds(v_payment);
  end if;
  if p_rule.kind = 'dispute' or v_is_adopted then
    v_payment.disputed := webhook.count_disputes(v_payment);
  end if;
  return v_payment;
end
$$;

-- Promise: the payment as it is known, with what an event told about state, user and what was paid. Second call: the same.
-- Locks: none.
create function webhook.merge_payment(p_known public.payments, p_told public.payments) returns public.payments
language plpgsql immutable set search_path = '' as $$
declare
  v_new public.payments := p_known;
begin
  v_new.user_id := coalesce(p_known.user_id, p_told.user_id);
  v_new.currency := coalesce(p_known.currency, p_told.currency);
  v_new.order_id := coalesce(p_known.order_id, p_told.order_id);
  v_new.amount := greatest(p_known.amount, p_told.amount);
  v_new.held := greatest(p_known.held, p_told.held);
  v_new.captured := greatest(p_known.captured, p_told.captured);
  if (p_told.told, p_told.occurred_at, p_told.arrival) > (p_known.told, p_known.occurred_at, p_known.arrival) then
    v_new.told := p_told.told;
    v_new.occurred_at := p_told.occurred_at;
    v_new.arrival := p_told.arrival;
    v_new.last_event_id := p_told.last_event_id;
  end if;
  return v_new;
end
$$;

-- Promise: raises SL030 where an event tells another user, currency or order of a payment than is known. Providers go on naming a
-- user who was erased here: that does not count. The message leaves out the users' ids: errors stay, and stand in the audit log.
-- Second call: the same. Locks: none.
create function webhook.refuse_contradiction(p_known public.payments, p_told public.payments) returns void
language plpgsql set search_path = '' as $$
begin
  if p_known.user_id <> p_told.user_id and not audit.is_replacement(p_known.user_id) then
    raise exception 'payment % is known as another user''s', p_told.object_id using errcode = 'SL030';
  elsif p_known.currency <> p_told.currency then
    raise exception 'payment % is known in %, not in %', p_told.object_id, p_known.currency, p_told.currency
      using errcode = 'SL030';
  elsif p_known.order_id <> p_told.order_id then
    raise exception 'payment % is known for order %, not for %', p_told.object_id, p_known.order_id, p_told.order_id
      using errcode = 'SL030';
  end if;
end
$$;

-- Promise: what an event tells about a payment is known: the state where it is newer (state, occurred_at, arrival), the
-- money in any case, once per fact; the ledger has what that changed, once the user is known. p_told is the payment as
-- this event alone tells it; p_amount is the fact's; p_may_be_release as in webhook.note_refund. Answers "already known" or "older
-- than what is known" where nothing changed. A payment for an order tells that too (webhook.tell_order). Raises SL030 when it
-- contradicts what is known.
-- Second call: one of those two answers.
-- Locks: the payment → its refund or balance transactions → the keys of the ledger's rows → those of webhook.tell_order.
create function webhook.tell_payment(
  p_told public.payments,
  p_rule public.payment_rules,
  p_object jsonb,
  p_amount bigint,
  p_may_be_release boolean
)
returns webhook.skip_reason
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_known public.payments;
  v_new public.payments;
  v_is_first boolean;
begin
  insert into public.payments as p (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, held,
    currency, captured, order_id)
  values (p_told.provider, p_told.object_id, p_told.user_id, p_told.told, p_told.occurred_at, p_told.arrival,
    p_told.last_event_id, p_told.amount, p_told.held, p_told.currency, p_told.captured, p_told.order_id)
  on conflict (provider, object_id) do nothing
  returning p.* into v_new;
  v_is_first := found;
  v_known := v_new;
  if v_is_first then
    v_known.user_id := null;
  else
    select p.* into v_known from public.payments p
    where p.provider = p_told.provider and p.object_id = p_told.object_id for update;
    -- Asked before the call: nearly no event contradicts what is known, and a call costs more than the comparisons.
    if v_known.user_id <> p_told.user_id or v_known.currency <> p_told.currency or v_known.order_id <> p_told.order_id then
      perform webhook.refuse_contradiction(v_known, p_told);
    end if;
    v_new := webhook.merge_payment(v_known, p_told);
  end if;
  if p_rule.kind in ('refund', 'dispute') or (v_new.amount, v_new.held) is distinct from (v_known.amount, v_known.held) then
    v_new := webhook.note_money(v_new, p_told, p_rule, p_object, p_amount, p_may_be_release);
  end if;
  if not v_is_first and (v_new.user_id, v_new.captured, v_new.refunded, v_new.disputed)
    is distinct from (v_known.user_id, v_known.captured, v_known.refunded, v_known.disputed) then
    v_new.changes := v_known.changes + 1;
  end if;
  if v_is_first or v_new.changes <> v_known.changes then
    perform webhook.write_credits(v_known, v_new, p_told.last_event_id);
  end if;
  if v_is_first then
    v_known.user_id := v_new.user_id;
  end if;
  if v_new is distinct from v_known then
    update public.payments p
    set (user_id, told, occurred_at, arrival, last_event_id, amount, held, currency, captured, refund_told,
        refund_told_at, refunded, disputed, silent_disputes, lost_disputes, changes, order_id, refund_before)
      = (v_new.user_id, v_new.told, v_new.occurred_at, v_new.arrival, v_new.last_event_id, v_new.amount, v_new.held,
        v_new.currency, v_new.captured, v_new.refund_told, v_new.refund_told_at, v_new.refunded, v_new.disputed,
        v_new.silent_disputes, v_new.lost_disputes, v_new.changes, v_new.order_id, v_new.refund_before)
    where p.provider = p_told.provider and p.object_id = p_told.object_id;
  end if;
  if v_new.order_id is not null then
    perform webhook.tell_order(v_known, v_new, p_rule, p_object);
  end if;
  return case when v_is_first or v_new.told > v_known.told or v_new.changes <> v_known.changes
    or (v_new.order_id, v_new.lost_disputes) is distinct from (v_known.order_id, v_known.lost_disputes) then null
    when v_new.last_event_id = p_told.last_event_id then 'already known'
    else 'older than what is known' end;
end
$$;

-- Promise: the object of an event about an invoice, with its payment and its user where every other object has them. Until
-- version 2025-03-31 an invoice named its payment_intent or charge; since then its payments do, where they are included,
-- each with its own amount_paid, and an invoice payment names one. The user is the invoice's, or else its subscription's.
-- Second call: the same. Locks: none.
create function webhook.read_invoice(p_object jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select p_object || jsonb_strip_nulls(jsonb_build_object(
    'payment_intent', coalesce(p_object ->> 'payment_intent', n.payment #>> '{payment,payment_intent}'),
    'charge', coalesce(p_object ->> 'charge', n.payment #>> '{payment,charge}'),
    'amount_paid', coalesce(n.payment -> 'amount_paid', p_object -> 'amount_paid'),
    'metadata', jsonb_build_object('user_id', coalesce(
      nullif(p_object #>> '{metadata,user_id}', ''),
      nullif(p_object #>> '{parent,subscription_details,metadata,user_id}', ''),
      p_object #>> '{subscription_details,metadata,user_id}'
    ))
  ))
  from (select case
    when p_object ? 'payment' then p_object
    -- One that is not paid has null there: the invoice's money came another way.
    when p_object @? '$.payments.data[0]' and not p_object @? '$.payments.data[1]'
      and p_object #> '{payments,data,0,amount_paid}' is distinct from 'null' then p_object #> '{payments,data,0}'
  end as payment) n;
$$;

-- Promise: what is wrong with an event, so that no retry can mend it; null: nothing. p_amounts are as JSON. Second call: the
-- same. Locks: none.
create function webhook.payment_fault(
  p_rule public.payment_rules,
  p_object jsonb,
  p_key text,
  p_told public.payments,
  p_amounts text[]
)
returns text
language plpgsql immutable set search_path = '' as $$
begin
  return case
    when (p_key ~ '^\w+$' and p_object ->> 'id' ~ '^\w+$') is not true then 'no id of a payment'
    when length(p_told.user_id) > 200 then 'metadata.user_id is longer than 200 characters'
    -- The order of events decides which refunds count.
    when p_told.occurred_at is null then 'created is not a time'
    when p_told.currency !~ '^[a-z]{3}$' then 'currency is not three letters'
    when p_rule.fact is null then null
    when p_told.currency is null then 'no currency'
    when p_rule.fact = 'dispute' then case
      when coalesce(jsonb_typeof(p_object -> 'balance_transactions'), 'null') not in ('array', 'null')
        then 'balance_transactions is not a list'
    end
    when p_amounts[1] is null then 'no ' || p_rule.amount_fields[1]
    when p_amounts[1] !~ '^\d+$' or p_amounts[2] !~ '^\d+$' or p_amounts[3] !~ '^\d+$' then 'amount is not a whole number'
    when greatest(p_amounts[1]::numeric, p_amounts[2]::numeric, p_amounts[3]::numeric) > 1e15 then 'amount is above 10^15'
  end;
end
$$;

-- Promise: how much was refunded of a charge that states this total; null for what is not one. Where the version makes a refund of
-- what is let go of a hold (p_counts_releases), the total contains that rest, or is less than it and does not. Second call: the
-- same. Locks: none.
create function webhook.without_release(p_charge jsonb, p_total jsonb, p_counts_releases boolean) returns bigint
language sql immutable set search_path = '' as $$
  select n.total - case when p_counts_releases and n.total >= n.rest then n.rest else 0 end
  from (
    select case when p_total::text ~ '^\d{1,16}$' then p_total::text::bigint end as total,
      greatest(0, (p_charge ->> 'amount')::bigint - (p_charge ->> 'amount_captured')::bigint) as rest
  ) n;
$$;

-- Promise: a payment event of Stripe has its effect, as payment_rules and webhook.tell_payment say. The payment is the
-- payment intent where the object is one or names one, so that charge, session and invoice tell of the same payment, or
-- else the charge. An object that names neither has no effect: whatever money it tells, they tell too, and nothing shows
-- that it is the same. The user is the object's metadata.user_id; without one the payment is recorded, and credited when
-- another event names its user. metadata.claim_id, where it is an id of ours, is the order that it pays. Until version 2025-03-31 what
-- was not taken of a hold stood among the refunds; an event without a version counts as old. An event that says no time happened when
-- it came. Raises SL030 for what no retry can mend.
-- Second call: a reason to skip it. Locks: those of webhook.tell_payment.
create function webhook.apply_payment(p_event public.webhook_events) returns text
language plpgsql set search_path = '' as $$
declare
  c_releases_are_no_refunds constant text := '2025-03-31';
  v_is_old constant boolean := (p_event.payload ->> 'api_version' collate "C" >= c_releases_are_no_refunds) is not true;
  v_object jsonb := p_event.payload #> '{data,object}';
  v_key text;
  v_told public.payments;
  v_rule public.payment_rules;
  v_held text;
  v_amount text;
  v_paid text;
  v_fault text;
begin
  if jsonb_typeof(v_object) is distinct from 'object' then
    return 'carries no object'::webhook.skip_reason;
  elsif p_event.event_type like 'invoice%' then
    v_object := webhook.read_invoice(v_object);
  end if;
  -- Among objects jsonb sorts the one with more keys last.
  select r.* into v_rule from public.payment_rules r
  where r.event_type = p_event.event_type and v_object @> r.given
  order by r.given desc
  limit 1;
  v_key := coalesce(v_object ->> 'payment_intent', v_object ->> 'charge');
  if v_rule.state is null then
    return 'tells nothing about a payment'::webhook.skip_reason;
  elsif v_key is null and p_event.event_type !~ '^(payment_intent|charge)\.\w+$' then
    return (case when v_object @? '$.payments.data[1]' then 'names several payments' else 'names no payment'
      end)::webhook.skip_reason;
  end if;
  v_key := coalesce(v_key, v_object ->> 'id');
  -- As JSON, so that a number in quotes does not count as a number.
  v_held := nullif(v_object -> 'amount', 'null');
  v_amount := nullif(coalesce(
    nullif(v_object -> v_rule.amount_fields[1], 'null'), v_object -> v_rule.amount_fields[2]
  ), 'null');
  v_paid := case v_rule.fact
    when 'payment' then v_amount
    when 'refund_total' then coalesce(v_object ->> 'amount_captured', v_object ->> 'amount')
  end;
  v_told.user_id := case when v_rule.names_user then nullif(v_object #>> '{metadata,user_id}', '') end;
  if v_rule.names_user and v_object #>> '{metadata,claim_id}' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    v_told.order_id := v_object #>> '{metadata,claim_id}';
  end if;
  v_told.currency := lower(v_object ->> 'currency');
  v_told.occurred_at := coalesce(p_event.occurred_at, case
    when coalesce(nullif(p_event.payload -> 'created', 'null')::text, '0') ~ '^\d{1,11}$' then p_event.received_at
  end);
  v_fault := webhook.payment_fault(v_rule, v_object, v_key, v_told, array[v_amount, v_paid, v_held]);
  if v_fault is not null then
    raise exception '%', v_fault using errcode = 'SL030';
  end if;
  v_told.provider := p_event.provider;
  v_told.object_id := v_key;
  v_told.told := v_rule.state;
  v_told.arrival := p_event.arrival;
  v_told.last_event_id := p_event.event_id;
  v_told.amount := v_paid;
  v_told.captured := case v_rule.fact when 'payment' then v_paid else '0' end;
  v_told.held := case when v_paid is not null then v_held end;
  if v_rule.fact = 'refund_total' then
    v_amount := webhook.without_release(v_object, v_amount::jsonb, v_is_old);
    v_told.refund_before := webhook.without_release(
      v_object, p_event.payload #> '{data,previous_attributes,amount_refunded}', v_is_old
    );
  end if;
  return webhook.tell_payment(v_told, v_rule, v_object, case when v_rule.kind <> 'dispute' then v_amount end::bigint, v_is_old);
end
$$;

-- Promise: the balance of this user by currency and tenant (provider), in minor units. Never summed over tenants: the holder of
-- one endpoint's secret must not change what a user has with another tenant. Second call: the same. Locks: none.
create function webhook.balance(p_user_id text) returns table (provider text, currency text, amount bigint)
language sql stable set search_path = '' as $$
  select c.provider, c.currency, sum(c.amount)::bigint
  from public.credit_ledger c
  where c.user_id = p_user_id
  group by c.provider, c.currency
  order by c.provider, c.currency;
$$;

-- Promise: up to p_limit payments that moved money while no event names their user: their credits wait. Second call: the same,
-- and what is new. Locks: none.
create function webhook.payments_without_user(p_limit int default 100) returns setof public.payments
language sql stable set search_path = '' as $$
  select p.* from public.payments p
  where p.user_id is null and (p.captured <> 0 or p.refunded <> 0 or p.disputed <> 0)
  order by p.provider, p.object_id limit p_limit;
$$;

-- Promise: how many payments wait for their user, counted up to 10000 and no further. Second call: the same, later. Locks: none.
-- Definer: service_role need not have rights to the table.
create function webhook.count_payments_without_user() returns int
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select count(*)::int from (
    select from public.payments p
    where p.user_id is null and (p.captured <> 0 or p.refunded <> 0 or p.disputed <> 0) limit 10000
  ) waiting;
$$;

-- Promise: the payment is this user's, with an audit row, and the ledger has what it moved; true when it had no user. Raises
-- SL001 for a user id that the ledger would refuse. Second call: false, no audit row. Locks: the payment → the keys of the
-- ledger's rows. Definer: service_role writes neither table.
create function webhook.name_payment_user(
  p_provider text,
  p_object_id text,
  p_user_id text,
  p_actor text,
  p_reason text default null
)
returns boolean
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_known public.payments;
  v_new public.payments;
begin
  if (length(p_user_id) between 1 and 200) is not true then
    raise exception 'a user id has 1 to 200 characters' using errcode = 'SL001', hint = 'name the user as your payments do';
  end if;
  select p.* into v_known from public.payments p
  where p.provider = p_provider and p.object_id = p_object_id and p.user_id is null for update;
  if not found then
    return false;
  end if;
  update public.payments p set user_id = p_user_id, changes = p.changes + 1
  where p.provider = p_provider and p.object_id = p_object_id
  returning p.* into v_new;
  perform webhook.write_credits(v_known, v_new, v_new.last_event_id);
  insert into audit.audit_logs (actor, action, subject, reason, details)
  values (p_actor, 'payment_name_user', 'payment ' || p_object_id, p_reason,
    jsonb_build_object('provider', p_provider, 'user_id', p_user_id));
  return true;
end
$$;

-- Promise: a thin event (v1.…) has the effect of the event whose payload a worker has fetched for it: an event of Stripe, or the object
-- as it is now. Answers and raises as webhook.apply_payment, and SL001 for an event that is not thin. Second call: a reason to skip
-- it. Locks: those of webhook.tell_payment. Definer: service_role writes no payments.
create function webhook.apply_fetched(p_id uuid, p_payload jsonb) returns text
language plpgsql security definer set search_path = '' as $$
declare
  v_event public.webhook_events;
begin
  select e.* into v_event from public.webhook_events e where e.id = p_id and e.event_type like 'v1.%';
  if not found then
    raise exception 'no thin event has the id %', p_id using errcode = 'SL001';
  end if;
  v_event.event_type := substr(v_event.event_type, length('v1.') + 1);
  v_event.payload := p_payload;
  v_event.occurred_at := case when (p_payload -> 'created')::text ~ '^\d{1,12}$' then to_timestamp((p_payload ->> 'created')::bigint)
    else clock_timestamp() end;
  return webhook.apply_payment(v_event);
end
$$;

insert into public.webhook_handlers (provider, event_type, kind, name)
select distinct 'stripe', r.event_type, 'sql', 'webhook.apply_payment' from public.payment_rules r;

-- A thin event carries no amounts: a worker of Node fetches them (src/webhook/thin.ts).
insert into public.webhook_handlers (provider, event_type, kind, name)
select distinct 'stripe', 'v1.' || r.event_type, 'typescript', 'stripe-thin' from public.payment_rules r;

alter table public.payments enable row level security;
alter table public.payment_refunds enable row level security;
alter table public.payment_transactions enable row level security;
alter table public.payment_rules enable row level security;
alter table public.credit_ledger enable row level security;

-- ORDERS: what payments ask of the intake, how a ticket ends, what we owe for it, and who used one.
-- The intake alone decides what a payment is for. Here stands that money moved, and in claim_outbox what the intake has to be
-- asked about it; a courier carries it there and brings the answer (docs/paid_tickets.md). Something is taken away here
-- first (tombstone), there after (slot).
--
-- THE ORDER OF LOCKS, for all that touches payments, tickets and refunds:
--   event → payment, by its key → row of claim_outbox → tickets, by their slots → voided_tickets → refunds_due → keys of
--   credit_ledger. All that owes something of a payment, or takes tickets of it back, holds the payment, so that they are one
--   queue per payment. All run at read committed: who waited must see what the other committed.
--   A worker tells many events in one transaction, and their payments come in no order. One that meets a void of several orders may
--   be a deadlock: Postgres ends one of the two, and each is tried again.

-- What the intake has to be asked, once for each id. settle:<payment_key> is what the payment is for; void:<payment_key> takes
-- back what it bought; operator:<uuid> takes back the claims that an operator named. fact is what the intake is told, result what
-- it answered. A row stays for ever: its id is what makes a fact that is told twice one. payment_key is tenant/payment.
-- token names who works on it, until next_attempt_at. attempts counts failures; an outage is none. dead_letter: the intake can
-- never be told, error says why, and an operator lets it be tried again (resettle_payments).
create table public.claim_outbox (
  id text primary key,
  kind text not null,
  payment_key text,
  fact jsonb not null,
  state text not null default 'due',
  result jsonb,
  error text,
  token uuid,
  next_attempt_at timestamptz not null default now(),
  attempts int not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  constraint outbox_kind_is_known check (kind in ('settle', 'void')),
  constraint outbox_state_is_known check (state in ('due', 'done', 'dead_letter')),
  constraint done_means_finished check ((state = 'done') = (finished_at is not null))
) with (fillfactor = 80);

create index claim_outbox_due on public.claim_outbox (next_attempt_at) where state = 'due';
create index claim_outbox_dead on public.claim_outbox (kind) where state = 'dead_letter';
create index claim_outbox_decisions on public.claim_outbox (finished_at) where kind = 'settle' and state = 'done';

-- What we owe a buyer. id is settle:<payment_key> (a payment that bought nothing; with :<n> where it had bought meanwhile),
-- void:<claim_id> (a ticket that was taken back) or back:<payment_key>:<n> (money that came back after the tickets had gone).
-- due: the refunder sends it. review: an operator decides. sent: Stripe has it. done: the buyer has it, or nothing is left to
-- refund. failed: Stripe refused it, and an operator decides. skipped: an operator kept the money (credit_ledger: forfeit).
-- due, review and failed are open. refund_key names the refund in Stripe's metadata (sluice_refund), and with sluice:refund: before
-- it is the idempotency key: what is sent again after it failed has a new one (:try2, :try3 …; a ledger that was restored comes to the
-- same ones again, and finds what it had sent). tries counts takes. is_auto: no operator asked for it, and the brake counts it.
-- decided_by is the operator who did.
create table public.refunds_due (
  id text primary key,
  payment_key text not null,
  order_id uuid,
  amount bigint not null,
  currency text not null,
  reason text not null,
  state text not null,
  is_auto boolean not null,
  decided_by text,
  refund_key text not null,
  provider_refund_id text,
  error text,
  token uuid,
  next_attempt_at timestamptz not null default now(),
  tries int not null default 0,
  created_at timestamptz not null default now(),
  braked_at timestamptz,
  sent_at timestamptz,
  constraint one_refund_per_key unique (refund_key),
  constraint refund_state_is_known check (state in ('due', 'review', 'sent', 'done', 'failed', 'skipped')),
  constraint refund_is_above_zero check (amount > 0)
) with (fillfactor = 80);

create index refunds_due_next on public.refunds_due (next_attempt_at) where state = 'due';
create index refunds_due_open on public.refunds_due (state) where state in ('due', 'review', 'failed');
create index refunds_due_by_payment on public.refunds_due (payment_key);
create index refunds_due_by_order on public.refunds_due (order_id) where order_id is not null;
create index refunds_due_by_time on public.refunds_due (created_at, id);

-- A ticket that was let in, once. It stays when the ticket is voided afterwards.
create table public.ticket_uses (
  claim_id uuid primary key,
  used_at timestamptz not null default now(),
  used_by text not null,
  constraint use_names_its_actor check (length(used_by) between 1 and 200)
);

-- Promise: the payment under this key, locked; no row where it is not known. Second call: the same. Locks: the payment.
create function webhook.lock_payment(p_payment_key text) returns setof public.payments
language sql set search_path = '' as $$
  select p.* from public.payments p
  where p.provider = split_part(p_payment_key, '/', 1)
    and p.object_id = substr(p_payment_key, strpos(p_payment_key, '/') + 1)
  for update;
$$;

-- A row of the ledger about what a payment bought. purchase: it bought tickets. purchase_void: one was taken back. forfeit: the
-- seller keeps the money, or (above zero) does not after all, because it went back or a dispute took it. source is the row of
-- claim_outbox, the voided claim or the refund that it is about, gone:<payment_key>:<n>, or owed:void:<claim_id>.
create type webhook.order_credit as (
  payment_key text,
  user_id text,
  kind text,
  source text,
  amount bigint,
  currency text
);

-- Promise: the ledger has these rows, once for each kind and source. With payment, refund and dispute the rows of a payment add up
-- to what of it is owed. Second call: writes nothing. Locks: the keys of the rows, by source; the caller holds the payments.
create function webhook.write_order_credits(p_credits webhook.order_credit[]) returns void
language sql set search_path = '' as $$
  insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
  select c.user_id, c.amount, c.currency, c.kind, split_part(c.payment_key, '/', 1),
    substr(c.payment_key, strpos(c.payment_key, '/') + 1), c.source, c.kind || ':' || c.source
  from unnest(p_credits) c
  order by c.source
  on conflict do nothing;
$$;

-- Promise: what is left of an order's payment after its live tickets are paid for; both amounts can be below zero. owed: captured,
-- less refunded, less the tickets, less kept, less what disputes hold or took. The buyer should get it back. keepable: an operator
-- may keep it instead. It is the same, but of disputes only what is lost (webhook.lost_of) is subtracted: the money of an open one may
-- come back. kept: what the seller keeps already (forfeit); it is part of neither. As soon as the outbox has void:<payment_key>, the
-- tickets count nothing here, even while credit_ledger still has their purchases. A payment without a user has bought nothing. The
-- rows of the ledger have the payment's user, or the one that its settle row names: an erasure renames the payment first.
-- Second call: the same. Locks: none.
create function webhook.worth_of(p_payment public.payments, out owed bigint, out keepable bigint, out kept bigint)
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select m.left_over - m.tickets - m.kept + coalesce(p_payment.disputed, 0),
    m.left_over - m.tickets - m.kept + webhook.lost_of(p_payment),
    m.kept
  from (
    select p_payment.captured - p_payment.refunded as left_over, greatest(0, -coalesce(sum(c.amount) filter (
        where c.kind like 'purchase%' and not exists (
          select from public.claim_outbox o where o.id = 'void:' || p_payment.provider || '/' || p_payment.object_id)
      ), 0)) as tickets,
      -coalesce(sum(c.amount) filter (where c.kind = 'forfeit'), 0) as kept
    from public.credit_ledger c
    where c.user_id in (p_payment.user_id, (
        select o.fact ->> 'user_id' from public.claim_outbox o
        where o.id = 'settle:' || p_payment.provider || '/' || p_payment.object_id
      )) and (c.provider, c.object_id) = (p_payment.provider, p_payment.object_id)
  ) m;
$$;

-- Promise: the sum of the payment's open refunds (due, review, failed) under other ids than p_id. Stripe may have told a total of
-- refunds that is higher than the single refunds that we know; the excess may be refunds that a refunder has sent already. So it
-- is subtracted, but never more than the open refunds that a refunder has taken (tries > 0).
-- Second call: the same. Locks: none; the caller holds the payment.
create function webhook.owed_elsewhere(p_payment public.payments, p_id text) returns bigint
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select coalesce(sum(r.amount) - least(
    coalesce(sum(r.amount) filter (where r.tries > 0), 0),
    greatest(0, p_payment.refunded - coalesce((
      select sum(f.amount) from public.payment_refunds f
      where (f.provider, f.object_id) = (p_payment.provider, p_payment.object_id) and f.failed_at is null
    ), 0))
  ), 0)
  from public.refunds_due r
  where r.payment_key = p_payment.provider || '/' || p_payment.object_id and r.state in ('due', 'review', 'failed') and r.id <> p_id;
$$;

-- Promise: refunds_due has a row p_id for the lesser of p_amount and what is left of the payment: captured, less refunded, less
-- what disputes hold or took, less owed_elsewhere. Each refund counts once. If it is not clear yet whether a refund is counted
-- already, the row is written all the same, and is done when the whole payment is gone (tell_order). If nothing is left, there is
-- no row. An id void:… is about a ticket, which is void by now. For every other id, left is worth_of.owed less owed_elsewhere: live
-- tickets and what the seller keeps come first. They do so for an id void:…, too, but what went away in part stands against no ticket:
-- the row keeps its amount, and is for an operator to review. p_state is due or review. p_actor is the operator who asked for it, null
-- where Sluice owes it by itself.
-- Second call: changes nothing. Locks: the refund; the caller holds the payment.
create function webhook.owe(
  p_payment public.payments,
  p_id text,
  p_amount bigint,
  p_reason text,
  p_state text,
  p_actor text
)
returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_elsewhere constant bigint := webhook.owed_elsewhere(p_payment, p_id);
  v_owed constant bigint := (select w.owed from webhook.worth_of(p_payment) w) - v_elsewhere;
  v_left bigint := p_payment.captured - p_payment.refunded + coalesce(p_payment.disputed, 0) - v_elsewhere;
  v_is_short boolean;
  v_state text;
begin
  if p_id not like 'void:%' then
    v_left := v_owed;
  end if;
  v_is_short := v_owed < least(p_amount, v_left);
  v_state := case when v_is_short then 'review' else p_state end;
  if least(p_amount, v_left) > 0 then
    insert into public.refunds_due
      (id, payment_key, order_id, amount, currency, reason, state, is_auto, decided_by, refund_key, error)
    values (p_id, p_payment.provider || '/' || p_payment.object_id, p_payment.order_id, least(p_amount, v_left), p_payment.currency,
      p_reason, v_state, v_state = 'due' and p_actor is null, p_actor, p_id,
      case when v_is_short then 'other tickets of the payment are worth what is left of it' end)
    on conflict do nothing;
  end if;
end
$$;

-- Promise: the ledger has a row forfeit for the lesser of p_amount and worth_of.keepable less owed_elsewhere. p_source is the
-- voided claim (void:<claim_id>) or the id of the refund that an operator skipped. If that is not above zero, or if the payment
-- has no user, it writes nothing.
-- Second call: changes nothing. Locks: the key of the ledger's row; the caller holds the payment.
create function webhook.forfeit(p_payment public.payments, p_source text, p_amount bigint) returns void
language sql set search_path = '' as $$
  select webhook.write_order_credits(array[(
    p_payment.provider || '/' || p_payment.object_id, p_payment.user_id, 'forfeit', p_source, -k.amount, p_payment.currency
  )::webhook.order_credit])
  from (
    select least(p_amount, w.keepable - webhook.owed_elsewhere(p_payment, p_source)) as amount from webhook.worth_of(p_payment) w
  ) k
  where k.amount > 0 and p_payment.user_id is not null;
$$;

-- Promise: the claims {claim_id, resource_id, pool_id, user_id, verified, order_id, payment_key, unit_price, currency} have their
-- tombstones, and their tickets are gone. What becomes of their price is told at webhook.take_back_purchases. Returns the claims
-- that were not voided before. Raises SL015 not read committed. Second call: none, and changes nothing.
-- Locks: tickets, by their slots → voided_tickets → refunds_due → keys of the ledger; the caller holds the payments and the row.
create function webhook.end_tickets(p_row public.claim_outbox, p_claims jsonb) returns uuid[]
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim_ids uuid[] := array(select c.claim_id from jsonb_to_recordset(p_claims) as c (claim_id uuid));
  v_placed uuid[];
  v_new uuid[];
begin
  -- A ticket of the slot that names no claim (name_ticket) gets the name of this claim, which is its own.
  update public.confirmed_tickets t set claim_id = c.claim_id
  from jsonb_to_recordset(p_claims) as c (claim_id uuid, resource_id uuid, pool_id text, user_id text)
  where t.resource_id = c.resource_id and t.claim_id = t.resource_id and t.claim_id <> c.claim_id
    and (t.pool_id, t.user_id) = (c.pool_id, c.user_id);
  v_placed := public.place_claims(p_claims);
  -- A statement of its own: it sees the tickets for which the placeholders waited.
  perform from public.confirmed_tickets t where t.claim_id = any (v_claim_ids) order by t.resource_id for update;
  with voided as (
    insert into public.voided_tickets as v
      (claim_id, resource_id, pool_id, user_id, verified, order_id, confirmed_at, cause, outbox_id)
    select c.claim_id, c.resource_id, c.pool_id, c.user_id, coalesce(c.verified, true), c.order_id, t.confirmed_at,
      p_row.fact ->> 'cause', p_row.id
    from jsonb_to_recordset(p_claims)
      as c (claim_id uuid, resource_id uuid, pool_id text, user_id text, verified boolean, order_id uuid)
    left join public.confirmed_tickets t on t.claim_id = c.claim_id and t.claim_id <> all (v_placed)
    order by c.resource_id
    on conflict do nothing
    returning v.claim_id
  )
  select coalesce(array_agg(v.claim_id), '{}') into v_new from voided v;
  delete from public.confirmed_tickets t where t.claim_id = any (v_claim_ids);
  perform webhook.take_back_purchases(p_row, p_claims, v_new);
  return v_new;
end
$$;

-- Promise: what the seller keeps of the price of this claim (void:<claim_id>), because an operator voided it without a refund; 0
-- where it is nothing, and where refunds_due has its refund: what an operator skipped stays skipped. Second call: the same.
-- Locks: none.
create function webhook.kept_price(p_payment public.payments, p_source text) returns bigint
language sql stable set search_path = ''
set enable_seqscan = off as $$
  select coalesce(max(greatest(0, least(-c.amount, w.kept))), 0)
  from public.credit_ledger c
  cross join lateral webhook.worth_of(p_payment) w
  where (c.provider, c.event_id, c.kind, c.object_id) = (p_payment.provider, p_source, 'forfeit', p_payment.object_id)
    and not exists (select from public.refunds_due r where r.id = p_source)
    and not exists (
      select from public.credit_ledger b
      where (b.provider, b.event_id, b.kind) = (p_payment.provider, 'owed:' || p_source, 'forfeit')
    );
$$;

-- Promise: those of the claims whose price is kept (webhook.kept_price): a void with a refund still owes it. Second call: the same.
-- Locks: none.
create function public.kept_claims(p_claim_ids uuid[]) returns setof uuid
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select v.claim_id
  from public.voided_tickets v
  join public.payments p on p.order_id = v.order_id
  where v.claim_id = any (p_claim_ids) and webhook.kept_price(p, 'void:' || v.claim_id) > 0;
$$;

-- Promise: the purchases of the voided claims p_new are taken back in the ledger, all before anything else: none of them is worth
-- anything then. What each cost is owed where the outbox row asks for a refund, forfeited where an operator asked for none, and neither
-- where the payment itself is gone. Where the row asks for a refund, the claims that were voided before are owed what the seller
-- keeps of them (webhook.kept_price), and the seller keeps it no longer. The ledger's rows have the name that the payment has: a
-- payment that came after its user was erased has the name that it brought, the claim has not. Where the pool's operators refund
-- themselves, the refund waits for one.
-- Second call: changes nothing. Locks: keys of the ledger and refunds_due; the caller holds the payments.
create function webhook.take_back_purchases(p_row public.claim_outbox, p_claims jsonb, p_new uuid[]) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_claim record;
  v_price bigint;
begin
  perform webhook.write_order_credits(array(
    select (
      c.payment_key, coalesce((select p.user_id from webhook.lock_payment(c.payment_key) p), c.user_id), 'purchase_void',
      'void:' || c.claim_id, c.unit_price, c.currency
    )::webhook.order_credit
    from jsonb_to_recordset(p_claims) as c (claim_id uuid, user_id text, payment_key text, unit_price bigint, currency text)
    where c.claim_id = any (p_new) and c.payment_key is not null
  ));
  for v_claim in
    select 'void:' || c.claim_id as source, c.claim_id = any (p_new) as is_new, c.unit_price, p as payment,
      case when s.result ->> 'refund_by' = 'operator' then 'review' else 'due' end as state
    from jsonb_to_recordset(p_claims) as c (claim_id uuid, payment_key text, unit_price bigint)
    cross join lateral webhook.lock_payment(c.payment_key) p
    left join public.claim_outbox s on s.id = 'settle:' || c.payment_key
    order by c.claim_id
  loop
    if (p_row.fact ->> 'refund')::boolean then
      v_price := case when v_claim.is_new then v_claim.unit_price else webhook.keep_no_longer(v_claim.payment, v_claim.source) end;
      perform webhook.owe(
        v_claim.payment, v_claim.source, v_price, coalesce(p_row.fact ->> 'reason', 'the ticket was taken back'), v_claim.state,
        p_row.fact ->> 'actor'
      );
    elsif v_claim.is_new and p_row.fact ->> 'cause' = 'operator' then
      perform webhook.forfeit(v_claim.payment, v_claim.source, v_claim.unit_price);
    end if;
  end loop;
end
$$;

-- Promise: what the seller keeps of this price (webhook.kept_price) is not kept any more; returns it. Second call: 0.
-- Locks: the key of the ledger's row; the caller holds the payment.
create function webhook.keep_no_longer(p_payment public.payments, p_source text) returns bigint
language plpgsql set search_path = '' as $$
declare
  v_kept constant bigint := webhook.kept_price(p_payment, p_source);
begin
  if v_kept > 0 then
    perform webhook.write_order_credits(array[(
      p_payment.provider || '/' || p_payment.object_id, p_payment.user_id, 'forfeit', 'owed:' || p_source, v_kept, p_payment.currency
    )::webhook.order_credit]);
  end if;
  return v_kept;
end
$$;

-- Promise: a payment that is gone takes back what it bought: the intake is to be asked (void:<payment_key>), and where it has said
-- which claims those are, their tickets are void now: a door must not let them in while the intake is away. Nothing where the
-- payment has not been told yet: that event finds it gone. Second call: changes nothing.
-- Locks: the outbox row → those of webhook.end_tickets; the caller holds the payment.
create function webhook.take_back(p_payment public.payments) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_key constant text := p_payment.provider || '/' || p_payment.object_id;
  v_settle public.claim_outbox;
  v_void public.claim_outbox;
  v_claims jsonb;
begin
  select o.* into v_settle from public.claim_outbox o where o.id = 'settle:' || v_key;
  if not found then
    return;
  end if;
  insert into public.claim_outbox as o (id, kind, payment_key, fact)
  values ('void:' || v_key, 'void', v_key, v_settle.fact || jsonb_build_object(
    'cause', case when p_payment.told = 'dispute_lost' then 'dispute' else 'refund' end, 'refund', false
  ))
  on conflict do nothing
  returning o.* into v_void;
  if not found or v_settle.result ->> 'decision' is distinct from 'funds' then
    return;
  end if;
  select jsonb_agg(jsonb_build_object(
    'claim_id', t.claim_id, 'resource_id', t.resource_id, 'pool_id', t.pool_id, 'user_id', t.user_id, 'verified', t.verified,
    'order_id', t.order_id, 'payment_key', v_key, 'currency', v_settle.fact ->> 'currency',
    'unit_price', (v_settle.fact ->> 'amount')::bigint / jsonb_array_length(v_settle.result -> 'claim_ids')
  )) into v_claims
  from jsonb_array_elements_text(v_settle.result -> 'claim_ids') i
  join public.confirmed_tickets t on t.claim_id = i::uuid;
  if v_claims is not null then
    perform webhook.end_tickets(v_void, v_claims);
  end if;
end
$$;

-- Promise: where the refund that an event tells is one of ours (by its id, or by metadata.sluice_refund), its row says how it
-- stands: sent, done where the buyer has it, failed where it failed. Returns what is owed again by that: the amount of one that
-- was sent and failed, else 0. Second call: 0. Locks: the refund; the caller holds the payment.
create function webhook.note_own_refund(p_payment public.payments, p_object jsonb) returns bigint
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_state constant text := (
    select case when r.failed_at is not null then 'failed' when p_object ->> 'status' = 'succeeded' then 'done' else 'sent' end
    from public.payment_refunds r
    where r.provider = p_payment.provider and r.refund_id = p_object ->> 'id'
  );
  v_old public.refunds_due;
begin
  select d.* into v_old from public.refunds_due d
  where d.payment_key = p_payment.provider || '/' || p_payment.object_id
    and (d.provider_refund_id = p_object ->> 'id'
      or d.provider_refund_id is null and d.refund_key = p_object #>> '{metadata,sluice_refund}')
  for update;
  if v_old.state = v_state or (v_old.state, v_state) = ('done', 'sent') or v_old.state = 'skipped' or v_old.id is null then
    return 0;
  end if;
  update public.refunds_due d
  set state = v_state, provider_refund_id = p_object ->> 'id', sent_at = coalesce(d.sent_at, now()),
    error = case v_state when 'failed' then coalesce(p_object ->> 'failure_reason', p_object ->> 'status') end
  where d.id = v_old.id;
  return case when v_state = 'failed' and v_old.state in ('sent', 'done') then v_old.amount else 0 end;
end
$$;

-- Promise: after an event changed the payment of an order, the outbox, the refunds and the ledger follow.
-- A payment that names a claim: the outbox has settle:<payment_key>, once, and the intake decides what the payment is for.
-- A payment that is gone, refunded in full or lost in a dispute with nothing left: its tickets are taken back (take_back), and its
-- open refunds are done. A refund that Sluice sent: its row follows (note_own_refund). A refund or a lost dispute that takes money
-- which the seller keeps: the ledger has a row forfeit above zero for that part; an open dispute changes nothing, it may be won.
-- Money that comes back, by a failed refund or a dispute, after the intake has decided about the payment or was asked for its
-- tickets: owe writes back:… for an operator to review. A failed refund of ours is owed by its own row instead.
-- Second call: changes nothing.
-- Locks: outbox row → those of webhook.end_tickets → refunds_due → key of the ledger; the caller holds the payment.
create function webhook.tell_order(
  p_known public.payments,
  p_new public.payments,
  p_rule public.payment_rules,
  p_object jsonb
)
returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_key constant text := p_new.provider || '/' || p_new.object_id;
  v_back bigint := p_known.refunded - p_new.refunded
    + coalesce(p_new.disputed, case when p_new.lost_disputes is null then 0 else -p_new.captured end)
    - coalesce(p_known.disputed, case when p_known.lost_disputes is null then 0 else -p_known.captured end);
  -- Nothing of the payment is left to the seller.
  v_is_gone constant boolean := coalesce(p_new.amount > 0 and p_new.refunded >= p_new.amount, false)
    or p_new.lost_disputes is not null and p_new.captured - p_new.refunded + webhook.lost_of(p_new) <= 0;
begin
  -- Asked first: an insert would wait for a courier that is about to finish the row.
  if p_rule.fact = 'payment' and p_object #>> '{metadata,claim_id}' is not null
    and not exists (select from public.claim_outbox o where o.id = 'settle:' || v_key) then
    insert into public.claim_outbox (id, kind, payment_key, fact)
    values ('settle:' || v_key, 'settle', v_key, jsonb_build_object(
      'payment_key', v_key, 'tenant', p_new.provider, 'livemode', p_object -> 'livemode' is distinct from 'false',
      'claim_id', p_new.order_id, 'user_id', p_new.user_id, 'verified', p_object #>> '{metadata,verified}', 'amount', p_new.captured,
      'currency', p_new.currency, 'checkout', p_object #>> '{metadata,checkout}'
    ));
  end if;
  if v_is_gone then
    perform webhook.take_back(p_new);
  end if;
  if p_rule.fact in ('refund', 'refund_failed') then
    v_back := v_back - webhook.note_own_refund(p_new, p_object);
  end if;
  if p_new.refunded > p_known.refunded or p_new.lost_disputes is not null then
    perform webhook.write_order_credits(array[(
      v_key, p_new.user_id, 'forfeit', 'gone:' || v_key || ':' || p_new.changes, least(w.kept, -w.keepable), p_new.currency
    )::webhook.order_credit])
    from webhook.worth_of(p_new) w where least(w.kept, -w.keepable) > 0;
  end if;
  if v_is_gone then
    update public.refunds_due d set state = 'done', error = 'the payment went back another way'
    where d.payment_key = v_key and d.state in ('due', 'review', 'failed');
  elsif v_back > 0 and exists (
    select from public.claim_outbox o
    where o.id = 'void:' || v_key or o.id = 'settle:' || v_key and o.result ->> 'decision' in ('funds', 'refund', 'void')
  ) then
    perform webhook.owe(p_new, 'back:' || v_key || ':' || p_new.changes, v_back, 'money came back', 'review', null);
  end if;
end
$$;

-- THE COURIER.

-- Promise: up to p_limit rows of the outbox that are due, longest due first, each under a lease of p_lease_sec seconds with a token
-- of its own. The lease only saves work: what makes it happen once is the intake's own decision. Second call: other rows.
-- Locks: the rows; what others have locked is skipped. Definer, as all that follow: service_role may not write the tables.
create function public.outbox_take(p_limit int, p_lease_sec int)
returns table (id text, token uuid, kind text, fact jsonb, attempts int, created_at timestamptz)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  return query
  with due as materialized (
    select o.id from public.claim_outbox o
    where o.state = 'due' and o.next_attempt_at <= clock_timestamp()
    order by o.next_attempt_at
    limit p_limit
    for update skip locked
  )
  update public.claim_outbox o
  set token = gen_random_uuid(), next_attempt_at = clock_timestamp() + make_interval(secs => p_lease_sec)
  from due d
  where o.id = d.id
  returning o.id, o.token, o.kind, o.fact, o.attempts, o.created_at;
end
$$;

-- Promise: the ledger has the purchase of this payment, less the tickets of it that were taken back, or (not p_is_bought) none of it:
-- a row with what is missing to that. Second call: writes nothing. Locks: the key of the row; the caller holds payment and row.
create function webhook.note_purchase(p_row public.claim_outbox, p_is_bought boolean) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_user_id constant text := p_row.fact ->> 'user_id';
  v_rest bigint;
  v_times int;
begin
  select case when p_is_bought then -(p_row.fact ->> 'amount')::bigint else 0 end
      - coalesce(sum(c.amount) filter (where c.is_decision or not p_is_bought), 0), count(*) filter (where c.is_decision)
  into v_rest, v_times
  from (
    select k.amount, k.event_id = p_row.id or starts_with(k.event_id, p_row.id || ':') as is_decision
    from public.credit_ledger k
    where k.user_id = v_user_id and k.provider || '/' || k.object_id = p_row.payment_key
      and (k.kind in ('purchase', 'purchase_void') or k.kind = 'forfeit' and starts_with(k.event_id, p_row.id))
  ) c;
  if v_rest <> 0 then
    perform webhook.write_order_credits(array[(
      p_row.payment_key, v_user_id, case when v_rest < 0 then 'purchase' else 'purchase_void' end,
      p_row.id || case when v_times < 2 then '' else ':' || v_times end, v_rest, p_row.fact ->> 'currency'
    )::webhook.order_credit]);
  end if;
end
$$;

-- Promise: what a decision makes of its payment is in the ledger, but for a first one by which it bought. refund: it is owed, at once
-- where we took the money by a session of ours and the pool lets us refund, else when an operator says so. Where an earlier decision
-- was another one (the intake was restored to a moment before it), the purchase is taken back, or made, and what was owed for want of
-- it is not owed any more. Second call: changes nothing. Locks: refunds_due → keys of the ledger; the caller holds payment and row.
create function webhook.note_decision(p_row public.claim_outbox, p_result jsonb) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_was_bought constant boolean := p_row.result ->> 'decision' = 'funds';
  v_is_bought constant boolean := p_result ->> 'decision' = 'funds';
  v_is_ours constant boolean := (p_result ->> 'is_own')::boolean and p_result ->> 'refund_by' = 'sluice';
  v_times int := 0;
begin
  if v_was_bought <> v_is_bought then
    perform webhook.note_purchase(p_row, v_is_bought);
    select count(*) into v_times from public.refunds_due d
    where d.payment_key = p_row.payment_key and (d.id = p_row.id or starts_with(d.id, p_row.id || ':'));
  end if;
  if v_is_bought then
    update public.refunds_due d set state = 'done', error = 'the payment bought tickets after all'
    where d.payment_key = p_row.payment_key and d.state in ('due', 'review', 'failed')
      and (d.id = p_row.id or starts_with(d.id, p_row.id || ':'));
  elsif p_result ->> 'decision' = 'refund' then
    perform webhook.owe(p, p_row.id || case when v_times = 0 then '' else ':' || v_times end, (p_row.fact ->> 'amount')::bigint,
      coalesce(p_result ->> 'reason', 'it bought nothing'), case when v_is_ours then 'due' else 'review' end, null)
    from webhook.lock_payment(p_row.payment_key) p;
  end if;
end
$$;

-- Promise: each of the rows {id, token, result} is done, with what the intake answered: result is settle_payment's row for a settle
-- ({decision, reason, order_id, is_own, refund_by, claim_ids}), and anything for a void. The ledger has what payments bought
-- (funds), all in one statement, and webhook.note_decision sees to the others, and to those that had a decision before. An intake that
-- was restored may know fewer of the claims that a payment bought: the list stays. lost_lease: another has it by now, or it was
-- done before, and nothing changes. Raises SL001 for a decision that is none (unknown waits: outbox_later_all), and then finishes none.
-- Second call: lost_lease.
-- Locks: payments that did not buy or had a decision, by key → rows, by id → those of webhook.note_decision → keys of the ledger.
create function public.outbox_finish_all(p_rows jsonb) returns table (id text, outcome text)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  c_decisions constant text[] := '{funds,refund,void,ignored}';
  v_ids text[] := array(select d ->> 'id' from jsonb_array_elements(p_rows) d);
  v_done record;
begin
  -- What bought tickets changes nothing that is read of its payment. So it takes no lock there, and does not meet a worker that tells
  -- many payments in the order in which they came.
  perform webhook.lock_payments(array(
    select o.payment_key from jsonb_to_recordset(p_rows) as d (id text, result jsonb)
    join public.claim_outbox o on o.id = d.id
    where o.id = any (v_ids) and o.kind = 'settle' and (d.result ->> 'decision' <> 'funds' or o.result is not null)
  ));
  v_ids := array(
    select o.id from jsonb_to_recordset(p_rows) as d (id text, token uuid)
    join public.claim_outbox o on o.id = d.id
    where o.id = any (v_ids) and o.token = d.token and o.state = 'due' order by o.id for update of o
  );
  for v_done in
    select o as errand, d.result from jsonb_to_recordset(p_rows) as d (id text, result jsonb)
    join public.claim_outbox o on o.id = d.id
    where o.id = any (v_ids) and o.kind = 'settle'
      and (d.result ->> 'decision' is distinct from 'funds' or o.result is not null)
    order by o.id
  loop
    if (v_done.result ->> 'decision' = any (c_decisions)) is not true then
      raise exception 'a payment is not finished as %', coalesce(v_done.result ->> 'decision', 'undecided')
        using errcode = 'SL001', hint = 'a decision is one of ' || array_to_string(c_decisions, ', ');
    end if;
    perform webhook.note_decision(v_done.errand, v_done.result);
  end loop;
  perform webhook.write_order_credits(array(
    select (
      o.payment_key, o.fact ->> 'user_id', 'purchase', o.id, -(o.fact ->> 'amount')::bigint, o.fact ->> 'currency'
    )::webhook.order_credit
    from jsonb_to_recordset(p_rows) as d (id text, result jsonb)
    join public.claim_outbox o on o.id = d.id
    where o.id = any (v_ids) and o.kind = 'settle' and d.result ->> 'decision' = 'funds' and o.result is null
  ));
  update public.claim_outbox o
  set state = 'done', finished_at = now(), error = null, result = d.result || case
    when (d.result ->> 'decision', o.result ->> 'decision') = ('funds', 'funds') and o.result -> 'claim_ids' @> (d.result -> 'claim_ids')
    then jsonb_build_object('claim_ids', o.result -> 'claim_ids') else '{}'
  end
  from jsonb_to_recordset(p_rows) as d (id text, result jsonb)
  where o.id = any (v_ids) and o.id = d.id;
  return query
  select d.id, case when d.id = any (v_ids) then 'done' else 'lost_lease' end
  from jsonb_to_recordset(p_rows) as d (id text);
end
$$;

-- Promise: the payments under these keys are locked. Second call: the same. Locks: the payments, by key.
create function webhook.lock_payments(p_payment_keys text[]) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
begin
  perform webhook.lock_payment(k.payment_key)
  from (select distinct i as payment_key from unnest(p_payment_keys) i where i is not null order by 1) k;
end
$$;

-- Promise: as outbox_finish_all, of one row: done or lost_lease. Second call: lost_lease. Locks: those of outbox_finish_all.
create function public.outbox_finish(p_id text, p_token uuid, p_result jsonb) returns text
language sql security definer set search_path = '' as $$
  select f.outcome from public.outbox_finish_all(jsonb_build_array(
    jsonb_build_object('id', p_id, 'token', p_token, 'result', p_result)
  )) f;
$$;

-- Promise: each of the rows {id, token, delay_sec, error, is_final} is due again in delay_sec seconds. error is what failed, and
-- counts as an attempt; null is an outage or an order that is not known yet, and counts for nothing. After the tenth attempt, or
-- where is_final says that no other can end better, it is a dead_letter and is not taken any more. outcome: due, dead_letter,
-- lost_lease where another has it by now. Second call: lost_lease. Locks: the rows, by id.
create function public.outbox_later_all(p_rows jsonb) returns table (id text, outcome text)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  c_attempts_max constant int := 10;
  v_ids text[] := array(select d ->> 'id' from jsonb_array_elements(p_rows) d);
begin
  perform from public.claim_outbox o where o.id = any (v_ids) and o.state = 'due' order by o.id for update;
  return query
  with late as (
    update public.claim_outbox o
    set token = null, next_attempt_at = clock_timestamp() + make_interval(secs => d.delay_sec),
      attempts = o.attempts + case when d.error is null then 0 else 1 end, error = coalesce(left(d.error, 2000), o.error),
      state = case when d.error is not null and (d.is_final or o.attempts + 1 >= c_attempts_max) then 'dead_letter' else 'due' end
    from jsonb_to_recordset(p_rows) as d (id text, token uuid, delay_sec int, error text, is_final boolean)
    where o.id = any (v_ids) and o.id = d.id and o.token = d.token and o.state = 'due'
    returning o.id, o.state
  )
  select d.id, coalesce(l.state, 'lost_lease')
  from jsonb_to_recordset(p_rows) as d (id text)
  left join late l on l.id = d.id;
end
$$;

-- Promise: none of these claims (rows of public.void_targets of the intake) can be a ticket, now or later. What becomes of their price
-- is told at webhook.take_back_purchases. outcome is voided (by this call) or already. The intake may then free the slots.
-- Raises SL001 if the outbox has no void with this id, SL015 not read committed. Second call: already.
-- Locks: payments, by key → outbox row → those of webhook.end_tickets.
create function public.void_order_tickets(p_outbox_id text, p_claims jsonb) returns table (claim_id uuid, outcome text)
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_row public.claim_outbox;
  v_new uuid[];
begin
  perform public.answer_in_cell();
  perform webhook.lock_payments(array(
    select c.payment_key from jsonb_to_recordset(p_claims) as c (payment_key text)
  ));
  select o.* into v_row from public.claim_outbox o where o.id = p_outbox_id and o.kind = 'void' for update;
  if not found then
    raise exception 'the outbox has no void %', p_outbox_id using errcode = 'SL001';
  end if;
  v_new := webhook.end_tickets(v_row, p_claims);
  return query
  select c.claim_id, case when c.claim_id = any (v_new) then 'voided' else 'already' end
  from jsonb_to_recordset(p_claims) as c (claim_id uuid);
end
$$;

-- Promise: the courier is to take these claims back, with a refund of what each cost or without (then the seller keeps the money),
-- and an audit row says who asked; returns the id of the outbox row. Claims that have ended already, are not paid yet or are not known
-- to the intake stay as they are: it names its targets when it is asked. Raises SL001 for a list that is empty, above 1000 or has
-- gaps. Second call: a second row, which finds nothing left to do; with a refund, after a call without one, it owes what was kept.
-- Locks: none but the new rows.
create function public.request_void(p_claim_ids uuid[], p_refund boolean, p_actor text, p_reason text default null)
returns text
language plpgsql security definer set search_path = '' as $$
declare
  c_claims_max constant int := 1000;
  v_id constant text := 'operator:' || gen_random_uuid();
begin
  if (cardinality(p_claim_ids) between 1 and c_claims_max and array_position(p_claim_ids, null) is null
    and p_refund is not null) is not true then
    raise exception 'a void names 1 to % claims, and says whether they are refunded', c_claims_max using errcode = 'SL001';
  end if;
  insert into public.claim_outbox (id, kind, fact)
  values (v_id, 'void', jsonb_build_object(
    'claim_ids', p_claim_ids, 'cause', 'operator', 'refund', p_refund, 'actor', p_actor, 'reason', p_reason
  ));
  insert into audit.audit_logs (actor, action, subject, reason, details)
  select p_actor, 'ticket_void', 'claim ' || i, p_reason, jsonb_build_object('refund', p_refund, 'outbox_id', v_id)
  from unnest(p_claim_ids) i;
  return v_id;
end
$$;

-- WHAT WE ASKED STRIPE FOR.

-- Promise: a checkout session or a refund, as Stripe answered with it, is an event of the tenant under the id pull:<its id>, and has
-- had its effect: what Stripe tells us by an answer counts as what it tells by a webhook, which may never come. Returns how the event
-- stands: success, skipped, failed (a worker tries it again), dead_letter, typescript (its handler is yours), in_flight. Raises
-- SL001 for another object, SL031 for a tenant without an endpoint. Second call: the same, with no second effect.
-- Locks: the event → those of its handler (webhook.tell_payment).
create function public.record_pulled(p_tenant text, p_object jsonb) returns text
language plpgsql security definer set search_path = '' as $$
declare
  v_type constant text := case p_object ->> 'object'
    when 'checkout.session' then 'checkout.session.completed' when 'refund' then 'refund.updated'
  end;
  v_payload jsonb;
  v_body bytea;
  v_webhook_id uuid;
  v_id uuid;
begin
  if v_type is null or (p_object ->> 'id' ~ '^\w+$') is not true then
    raise exception 'only a checkout session or a refund of Stripe can be recorded' using errcode = 'SL001';
  end if;
  v_payload := jsonb_build_object('id', 'pull:' || (p_object ->> 'id'), 'object', 'event', 'type', v_type,
    'data', jsonb_build_object('object', p_object))
    || case when p_object ? 'livemode' then jsonb_build_object('livemode', p_object -> 'livemode') else '{}' end;
  select e.webhook_id into v_webhook_id from public.webhook_endpoints e
  where e.tenant = p_tenant
  order by webhook.misfit(e, v_payload) is null desc, e.is_active desc, e.created_at, e.webhook_id
  limit 1;
  if v_webhook_id is null then
    raise exception 'the tenant % has no endpoint', p_tenant using errcode = 'SL031';
  end if;
  v_body := convert_to(v_payload::text, 'UTF8');
  select r.id into v_id from webhook.record_events(
    array[v_webhook_id], array[v_payload ->> 'id'], array[v_type], array[null::timestamptz], array[null::text],
    array[encode(v_body, 'base64')], array[null::uuid], array[encode(sha256(v_body), 'hex')], array[null::text],
    array[null::text], array[null::text], true
  ) r;
  return (select p.outcome from webhook.process_event(v_id) p);
end
$$;

-- THE REFUNDER.

-- Promise: where more than 20 refunds came up by themselves within 10 minutes, and those are more than 5 % of the payments that
-- were decided in that time, all that wait become review, and braked_at says so: what makes us owe that much may be a fault of ours, and
-- money that went out does not come back. Those that an operator asked for go on. Returns how many became review.
-- Second call: 0. Locks: the refunds; what others have locked is skipped, and braked by the next call.
create function webhook.brake_refunds() returns int
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  c_window constant interval := '10 minutes';
  c_refunds_max constant int := 20;
  c_share_max constant numeric := 0.05;
  v_refunds constant bigint := (
    select count(*) from public.refunds_due r where r.created_at > now() - c_window and r.is_auto
  );
  v_braked int;
begin
  if v_refunds <= c_refunds_max or v_refunds <= c_share_max * (
    select count(*) from public.claim_outbox o
    where o.kind = 'settle' and o.state = 'done' and o.finished_at > now() - c_window
  ) then
    return 0;
  end if;
  with waiting as materialized (
    select r.id from public.refunds_due r where r.state = 'due' and r.decided_by is null for update skip locked
  )
  update public.refunds_due r set state = 'review', braked_at = now() from waiting w where r.id = w.id;
  get diagnostics v_braked = row_count;
  return v_braked;
end
$$;

-- Promise: up to p_limit refunds that are due, longest due first, each under a lease of p_lease_sec seconds, unless the brake holds
-- them (webhook.brake_refunds). The idempotency key is sluice:refund:<refund_key>, metadata.sluice_refund is refund_key: the refunder
-- looks for a refund with that metadata before it sends one. tries counts this take. Second call: other refunds.
-- Locks: the refunds; what others have locked is skipped.
create function public.refunds_take(p_limit int, p_lease_sec int)
returns table (
  id text, token uuid, tenant text, payment text, payment_key text, order_id uuid, amount bigint, currency text, reason text,
  refund_key text, tries int
)
language plpgsql security definer set search_path = ''
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  perform webhook.brake_refunds();
  return query
  with due as materialized (
    select r.id from public.refunds_due r
    where r.state = 'due' and r.next_attempt_at <= clock_timestamp()
    order by r.next_attempt_at
    limit p_limit
    for update skip locked
  )
  update public.refunds_due r
  set token = gen_random_uuid(), next_attempt_at = clock_timestamp() + make_interval(secs => p_lease_sec), tries = r.tries + 1
  from due d
  where r.id = d.id
  returning r.id, r.token, split_part(r.payment_key, '/', 1), substr(r.payment_key, strpos(r.payment_key, '/') + 1),
    r.payment_key, r.order_id, r.amount, r.currency, r.reason, r.refund_key, r.tries;
end
$$;

-- Promise: Stripe's refund is known here as an event would tell it (record_pulled), and its row is sent, or done or failed by its
-- status, all in one transaction: its webhook may never come, and the last part of a payment that goes back takes the rest of its
-- tickets with it. Returns how the row stands, or lost_lease where another has it: what Stripe did is told all the same. Raises SL001
-- for an id that is none, or a refund of another payment. Second call: the same. Locks: event → payment → refund.
create function public.refund_sent(p_id text, p_token uuid, p_refund jsonb) returns text
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_key constant text := (select r.payment_key from public.refunds_due r where r.id = p_id);
  v_state text;
begin
  if v_key is null or split_part(v_key, '/', 2) not in (p_refund ->> 'payment_intent', p_refund ->> 'charge') is not false then
    raise exception '% is not the refund %', coalesce(p_refund ->> 'id', 'this'), p_id using errcode = 'SL001';
  end if;
  perform public.record_pulled(split_part(v_key, '/', 1), p_refund);
  perform webhook.lock_payments(array[v_key]);
  update public.refunds_due r
  set provider_refund_id = p_refund ->> 'id', sent_at = coalesce(r.sent_at, now()),
    error = case when r.state = 'failed' then r.error end,
    state = case when r.state in ('due', 'review') then 'sent' else r.state end
  where r.id = p_id and r.token = p_token
  returning r.state into v_state;
  return coalesce(v_state, 'lost_lease');
end
$$;

-- Promise: the refund is tried again in p_delay_sec seconds, where that is said (Stripe was away, which is not the refund's doing), else
-- after 2, 4, 8 … seconds up to an hour; or, where p_is_final (Stripe refuses it), it is failed and waits for an operator. False where
-- another has it by now. Second call: false. Locks: the refund.
create function public.refund_failed(
  p_id text, p_token uuid, p_error text, p_is_final boolean, p_delay_sec int default null
)
returns boolean
language plpgsql security definer set search_path = '' as $$
declare
  c_pause_max_sec constant int := 3600;
begin
  update public.refunds_due r
  set token = null, error = left(p_error, 2000), state = case when p_is_final then 'failed' else r.state end,
    next_attempt_at = clock_timestamp()
      + make_interval(secs => coalesce(p_delay_sec, least(c_pause_max_sec, 2 ^ least(r.tries, 12))))
  where r.id = p_id and r.token = p_token and r.state in ('due', 'review');
  return found;
end
$$;

-- Promise: an operator decides about refunds that wait for one (review, failed): send, they are due; skip, the seller keeps the
-- money, which the ledger has as forfeit. Each that changes has an audit row. outcome: due, skipped, unknown (no such refund),
-- unchanged (it does not wait), tried (it may have reached Stripe: only send settles that, the refunder looks it up first).
-- With p_dry_run nothing changes, and due and skipped are would_send and would_skip. Raises SL001 for another action.
-- Second call: unchanged, no audit row. Locks: payments, by key → refunds → keys of the ledger.
create function public.decide_refunds(
  p_ids text[],
  p_action text,
  p_actor text,
  p_reason text default null,
  p_dry_run boolean default false
)
returns table (id text, outcome text)
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_refund public.refunds_due;
begin
  if (p_action in ('send', 'skip')) is not true then
    raise exception 'a refund is sent or skipped' using errcode = 'SL001', hint = 'the action is send or skip';
  end if;
  perform webhook.lock_payments(array(select r.payment_key from public.refunds_due r where r.id = any (p_ids)));
  for id in select distinct i from unnest(p_ids) i order by 1 loop
    select r.* into v_refund from public.refunds_due r where r.id = decide_refunds.id for update;
    outcome := case
      when not found then 'unknown'
      when v_refund.state not in ('review', 'failed') then 'unchanged'
      when p_action = 'send' then 'due'
      when v_refund.state = 'review' and v_refund.tries > 0 then 'tried'
      else 'skipped'
    end;
    if p_dry_run and outcome in ('due', 'skipped') then
      outcome := 'would_' || p_action;
    elsif outcome in ('due', 'skipped') then
      perform webhook.decide_refund(v_refund, outcome, p_actor);
      insert into audit.audit_logs (actor, action, subject, reason, details)
      values (p_actor, 'refund_' || p_action, 'refund ' || id, p_reason, jsonb_build_object(
        'payment_key', v_refund.payment_key, 'amount', v_refund.amount, 'currency', v_refund.currency, 'was', v_refund.state));
    end if;
    return next;
  end loop;
end
$$;

-- Promise: the refund is due, under a new key where Stripe has failed the old one, or skipped and forfeited (webhook.forfeit).
-- Second call: the same. Locks: the refund → the key of the ledger's row; the caller holds the payment.
create function webhook.decide_refund(p_refund public.refunds_due, p_state text, p_actor text) returns void
language plpgsql set search_path = ''
set enable_seqscan = off as $$
declare
  v_is_new constant boolean := p_state = 'due' and p_refund.state = 'failed';
  v_try constant int := coalesce(substring(substr(p_refund.refund_key, length(p_refund.id) + 1) from '^:try(\d+)$')::int, 1);
begin
  update public.refunds_due r
  set state = p_state, decided_by = p_actor, token = null, next_attempt_at = now(), braked_at = null,
    error = case when p_state = 'due' then null else r.error end,
    tries = case when v_is_new then 0 else r.tries end,
    provider_refund_id = case when v_is_new then null else r.provider_refund_id end,
    refund_key = case when v_is_new then r.id || ':try' || v_try + 1 else r.refund_key end
  where r.id = p_refund.id;
  if p_state = 'skipped' then
    perform webhook.forfeit(p, p_refund.id, p_refund.amount) from webhook.lock_payment(p_refund.payment_key) p;
  end if;
end
$$;

-- Promise: p_limit refunds in this state, or in all (null), newest first, before the refund p_after and behind the first p_offset.
-- Second call: the same. Locks: none.
create function public.list_refunds(
  p_state text default null, p_after text default null, p_limit int default 100, p_offset int default 0
)
returns setof public.refunds_due
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select r.* from public.refunds_due r
  where (p_state is null or r.state = p_state)
    and (p_after is null or (r.created_at, r.id) < (select a.created_at, a.id from public.refunds_due a where a.id = p_after))
  order by r.created_at desc, r.id desc
  limit p_limit offset p_offset;
end
$$;

-- Promise: the refunds of an order, oldest first. Second call: the same. Locks: none.
create function public.order_refunds(p_order_id uuid) returns setof public.refunds_due
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select public.answer_in_cell();
  select r.* from public.refunds_due r where r.order_id = p_order_id order by r.created_at, r.id;
$$;

-- TICKETS AS THINGS.

-- Promise: valid, and from now on used, by this actor; used, since used_at and by used_by; voided; unknown. Of two scanners one gets
-- valid. One that is being voided is waited for. Raises SL015 not read committed. Second call: used. Locks: the ticket → its use.
create function public.check_ticket(p_claim_id uuid, p_actor text)
returns table (outcome text, used_at timestamptz, used_by text, pool_id text, resource_id uuid, user_id text)
language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_column
begin
  perform public.answer_in_cell();
  if current_setting('transaction_isolation') <> 'read committed' then
    perform public.refuse_isolation();
  end if;
  select 'valid', t.pool_id, t.resource_id, t.user_id into outcome, pool_id, resource_id, user_id
  from public.confirmed_tickets t where t.claim_id = p_claim_id for share;
  if found then
    insert into public.ticket_uses as u (claim_id, used_by) values (p_claim_id, p_actor)
    on conflict do nothing returning u.used_at, u.used_by into used_at, used_by;
    if not found then
      select 'used', u.used_at, u.used_by into outcome, used_at, used_by
      from public.ticket_uses u where u.claim_id = p_claim_id;
    end if;
    return next;
    return;
  end if;
  return query
  select case when v.claim_id is null then 'unknown' else 'voided' end, u.used_at, u.used_by, v.pool_id, v.resource_id, v.user_id
  from (select) one
  left join public.voided_tickets v on v.claim_id = p_claim_id and v.confirmed_at is not null
  left join public.ticket_uses u on u.claim_id = v.claim_id;
end
$$;

-- Promise: the ticket of a claim, or what it was; no row where it never was one. Second call: the same. Locks: none.
create function public.ticket_details(p_claim_id uuid)
returns table (
  pool_id text, resource_id uuid, user_id text, order_id uuid, confirmed_at timestamptz, voided_at timestamptz, cause text,
  used_at timestamptz
)
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select public.answer_in_cell();
  select k.pool_id, k.resource_id, k.user_id, k.order_id, k.confirmed_at, k.voided_at, k.cause, u.used_at
  from (
    select t.pool_id, t.resource_id, t.user_id, t.order_id, t.confirmed_at, null::timestamptz as voided_at, null::text as cause
    from public.confirmed_tickets t where t.claim_id = p_claim_id
    union all
    select v.pool_id, v.resource_id, v.user_id, v.order_id, v.confirmed_at, v.voided_at, v.cause
    from public.voided_tickets v where v.claim_id = p_claim_id and v.confirmed_at is not null
  ) k
  left join public.ticket_uses u on u.claim_id = p_claim_id;
$$;

-- WHAT OPERATORS SEE.

-- Promise: all that the ledger knows of an order: {payments, events, outbox, refunds, tickets, voided, ledger}. events are those that
-- moved money of its payments, or told their state last. Second call: the same, later. Locks: none.
create function public.ledger_order_details(p_order_id uuid) returns jsonb
language plpgsql stable security definer set search_path = ''
set enable_seqscan = off as $$
declare
  v_keys constant text[] := array(
    select p.provider || '/' || p.object_id from public.payments p where p.order_id = p_order_id
  );
  v_ledger constant jsonb := (
    select coalesce(jsonb_agg(to_jsonb(c) order by c.id), '[]')
    from public.payments p
    join public.credit_ledger c on c.user_id = p.user_id and (c.provider, c.object_id) = (p.provider, p.object_id)
    where p.order_id = p_order_id
  );
begin
  return jsonb_build_object(
    'payments', (select coalesce(jsonb_agg(to_jsonb(p) order by p.arrival), '[]') from public.payments p where p.order_id = p_order_id),
    'ledger', v_ledger,
    'events', (
      select coalesce(jsonb_agg(jsonb_build_object('id', e.id, 'event_id', e.event_id, 'event_type', e.event_type,
        'received_at', e.received_at, 'status', e.status) order by e.arrival), '[]')
      from (
        select l ->> 'provider' as provider, l ->> 'event_id' as event_id from jsonb_array_elements(v_ledger) l
        union
        select p.provider, p.last_event_id from public.payments p where p.order_id = p_order_id
      ) n
      join public.webhook_events e on e.provider = n.provider and e.event_id = n.event_id
    ),
    'outbox', (
      select coalesce(jsonb_agg(to_jsonb(o) - 'token' order by o.created_at, o.id), '[]') from public.claim_outbox o
      where o.id = any (array(select t.kind || k.key from unnest(v_keys) k (key), unnest('{settle:,void:}'::text[]) as t (kind)))
        or o.id in (select v.outbox_id from public.voided_tickets v where v.order_id = p_order_id)
    ),
    'refunds', (
      select coalesce(jsonb_agg(to_jsonb(r) - 'token' order by r.created_at, r.id), '[]') from public.refunds_due r
      where r.order_id = p_order_id
    ),
    'tickets', (
      select coalesce(jsonb_agg(to_jsonb(t) || jsonb_build_object('used_at', u.used_at) order by t.resource_id), '[]')
      from public.confirmed_tickets t left join public.ticket_uses u on u.claim_id = t.claim_id where t.order_id = p_order_id
    ),
    'voided', (
      select coalesce(jsonb_agg(to_jsonb(v) order by v.voided_at, v.claim_id), '[]') from public.voided_tickets v
      where v.order_id = p_order_id
    )
  );
end
$$;

-- Promise: what waits, looked at up to 10000 of a kind and no further: outbox {settle, void} each {due, oldest_sec, dead_letters};
-- refunds by state {due, review, failed}; refunds_oldest_sec, for how long the oldest due one has been owed; braked, refunds that the
-- brake holds; decisions of the last hour by kind {funds, refund, void, ignored}, without payments for claims that are not paid
-- for. Second call: the same, later. Locks: none.
create function public.ledger_order_metrics() returns jsonb
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  with waiting as materialized (
    select o.kind, o.created_at from public.claim_outbox o where o.state = 'due' order by o.next_attempt_at limit 10000
  ), dead as materialized (
    select o.kind from public.claim_outbox o where o.state = 'dead_letter' limit 10000
  ), owed as materialized (
    select r.state, r.braked_at, r.created_at from public.refunds_due r where r.state in ('due', 'review', 'failed') limit 10000
  ), decided as materialized (
    select o.result ->> 'decision' as decision from public.claim_outbox o
    where o.kind = 'settle' and o.state = 'done' and o.finished_at > now() - interval '1 hour'
      and o.result ->> 'reason' is distinct from 'no_order' limit 10000
  )
  select jsonb_build_object(
    'outbox', (
      select jsonb_object_agg(k, (
        select jsonb_build_object('due', count(*),
          'oldest_sec', coalesce(greatest(0, round(extract(epoch from clock_timestamp() - min(w.created_at)), 1)), 0),
          'dead_letters', (select count(*) from dead d where d.kind = k))
        from waiting w where w.kind = k
      )) from unnest('{settle,void}'::text[]) k
    ),
    'refunds', (
      select jsonb_object_agg(k, (select count(*) from owed w where w.state = k)) from unnest('{due,review,failed}'::text[]) k
    ),
    'refunds_oldest_sec', (
      select coalesce(greatest(0, round(extract(epoch from clock_timestamp() - min(w.created_at)), 1)), 0) from owed w where w.state = 'due'
    ),
    'braked', (select count(*) from owed w where w.state = 'review' and w.braked_at is not null),
    'decisions', (
      select jsonb_object_agg(k, (select count(*) from decided d where d.decision = k))
      from unnest('{funds,refund,void,ignored}'::text[]) k
    )
  );
$$;

-- RECONCILE.

-- Promise: those of the claims that have a tombstone, with its cause; is_underway: the courier still has to tell the intake. One that
-- is not, and whose claim lives in the intake, is a void that was not finished (void_unfinished: finish_void there).
-- Second call: the same. Locks: none.
create function public.voided_claims(p_claim_ids uuid[])
returns table (claim_id uuid, cause text, outbox_id text, voided_at timestamptz, is_underway boolean)
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select v.claim_id, v.cause, v.outbox_id, v.voided_at, coalesce(o.state = 'due', false)
  from public.voided_tickets v
  left join public.claim_outbox o on o.id = v.outbox_id
  where v.claim_id = any (p_claim_ids);
$$;

-- Promise: how the ticket of a claim was bought: {order_id, payment_key, tenant, livemode, amount, currency, seats, reason, is_own}, for
-- an intake that has forgotten the order (reconcile_fix there). Null where no payment bought it, or it is not a ticket.
-- Second call: the same. Locks: none.
create function public.ticket_purchase(p_claim_id uuid) returns jsonb
language sql stable security definer set search_path = ''
set enable_seqscan = off as $$
  select jsonb_build_object(
    'order_id', t.order_id, 'payment_key', o.payment_key, 'tenant', o.fact -> 'tenant', 'livemode', o.fact -> 'livemode',
    'amount', o.fact -> 'amount', 'currency', o.fact -> 'currency', 'seats', jsonb_array_length(o.result -> 'claim_ids'),
    'reason', o.result -> 'reason', 'is_own', o.result -> 'is_own'
  )
  from public.confirmed_tickets t
  join public.payments p on p.order_id = t.order_id
  join public.claim_outbox o on o.id = 'settle:' || p.provider || '/' || p.object_id
  where t.claim_id = p_claim_id and o.result ->> 'decision' = 'funds'
  order by o.result -> 'claim_ids' ? p_claim_id::text desc, o.id
  limit 1;
$$;

-- Promise: p_limit payments after p_after in the order of their ids that the intake must have decided about: those that are settled
-- (funds, refund, void), since when the ledger knows the decision (settled_at), with the claims that they bought, and dead letters, with
-- their error. One that it has no decision for is unsettled (payment_unsettled: it was restored to an earlier moment, or could not be told; resettle_payments).
-- Second call: the same. Locks: none.
create function public.settled_payments(p_after text default null, p_limit int default 1000)
returns table (
  id text, payment_key text, order_id uuid, decision text, error text, settled_at timestamptz, claim_ids uuid[]
)
language plpgsql stable security definer set search_path = ''
set plan_cache_mode = force_custom_plan as $$
begin
  return query
  select o.id, o.payment_key, (o.fact ->> 'claim_id')::uuid, case when o.state = 'done' then o.result ->> 'decision' else o.state end,
    o.error, o.finished_at, array(select i::uuid from jsonb_array_elements_text(o.result -> 'claim_ids') i)
  from public.claim_outbox o
  where (p_after is null or o.id > p_after) and o.kind = 'settle'
    and (o.state = 'done' and o.result ->> 'decision' <> 'ignored' or o.state = 'dead_letter')
  order by o.id
  limit p_limit;
end
$$;

-- Promise: the intake is asked again about these settled payments and dead letters, each with an audit row; returns how many. It is
-- told what was decided before (was), void where the payment has gone back since: what went back, or is to, buys nothing again.
-- Second call: 0. Locks: the rows, by id.
create function public.resettle_payments(p_ids text[], p_actor text, p_reason text default null) returns int
language plpgsql security definer set search_path = '' as $$
declare
  v_again public.claim_outbox[];
begin
  with again as (
    update public.claim_outbox o
    set state = 'due', finished_at = null, token = null, next_attempt_at = now(), attempts = 0,
      fact = o.fact || case when o.kind = 'settle' then jsonb_strip_nulls(jsonb_build_object('was', case
        when exists (select from public.claim_outbox v where v.id = 'void:' || o.payment_key) then 'void'
        else o.result ->> 'decision'
      end)) else '{}' end
    where o.id in (
      select k.id from public.claim_outbox k
      where k.id = any (p_ids) and (k.kind = 'settle' and k.state = 'done' or k.state = 'dead_letter')
      order by k.id for update
    )
    returning o as errand
  )
  select coalesce(array_agg(a.errand), '{}') into v_again from again a;
  insert into audit.audit_logs (actor, action, subject, reason)
  select p_actor, 'payment_resettle', coalesce('payment ' || a.payment_key, 'outbox ' || a.id), p_reason from unnest(v_again) a;
  return cardinality(v_again);
end
$$;

alter table public.claim_outbox enable row level security;
alter table public.refunds_due enable row level security;
alter table public.ticket_uses enable row level security;

// What the controls of paid orders break, as SQL for one of the databases. Names are those of the model (test/model/order_controls.ts),
// where it has the same.

import { patch, script } from './patches.ts';

/** A session that was paid is not told to the ledger by the closer: only webhooks tell payments. */
export const NO_PULL = script(
  patch(
    'public.record_pulled(text, jsonb)',
    'begin\n  if v_type is null',
    `begin
  if v_type = 'checkout.session.completed' then
    return 'success';
  end if;
  if v_type is null`,
  ),
);

const GRACE = 'o.grace_until <= now() or not exists (';
const END_ORDERS = 'intake.end_orders(uuid[], uuid[], uuid[])';

/** While Stripe is silent seats stay held, however long. */
export const GRACE_UNBOUNDED = script(
  patch('intake.lock_due(text, int)', GRACE, 'false or not exists ('),
  patch(END_ORDERS, 'and o.grace_until > now()', ''),
);

/** Seats are on sale when the hold is over, whether or not the session still takes money. */
export const FREE_BEFORE_CLOSING = script(
  patch('intake.lock_due(text, int)', GRACE, 'true or not exists ('),
  patch(END_ORDERS, 'and o.grace_until > now()', 'and false'),
);

/** A void removes the ticket, and nothing says that it was one. */
export const PAID_NO_TOMBSTONE = script(
  'alter table public.confirmed_tickets disable trigger tickets_leave_a_tombstone;',
  patch(
    'webhook.end_tickets(public.claim_outbox, jsonb)',
    'delete from public.confirmed_tickets t where t.claim_id = any (v_claim_ids);',
    `delete from public.confirmed_tickets t where t.claim_id = any (v_claim_ids);
  delete from public.voided_tickets v where v.claim_id = any (v_claim_ids);`,
  ),
);

/** A second payment for an order buys more seats of it. */
export const SECOND_PAYMENT_FUNDS = script(
  'drop index public.one_payment_per_order;',
  patch(
    'intake.payment_refusal(jsonb, public.orders)',
    'when p_order.payment_key is not null then',
    'when false then',
  ),
  patch(
    'intake.buy_late(public.orders)',
    'if v_old.other_state is not null then',
    "if v_old.other_state = 'released' then",
  ),
  patch(
    'intake.buy_late(public.orders)',
    'from public.claims c where c.claim_id = any (intake.claims_of_orders(array[p_order.order_id]));',
    'from public.claims c where c.order_id = p_order.order_id and c.replaces is null;',
  ),
);

/** A request for several seats gets as many as there are. */
export const GROUP_IN_PART = script(
  patch(
    'intake.claim_group(intake.pool_gates, intake.claim_request, boolean)',
    'if cardinality(v_slots.slot_ids) < v_wanted then',
    'if cardinality(v_slots.slot_ids) = 0 then',
  ),
);

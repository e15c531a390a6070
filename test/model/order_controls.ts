// The controls of paid orders: each guard of the design, switched off in the SQL of a lane or in the wiring of its workers.

import type { Control } from './controls.ts';
import type { Lane, Side } from './lanes.ts';
import { playScenario } from './orders/directed.ts';
import { change } from './patch.ts';
import { ORDERS } from './subjects.ts';

const inIntake =
  (...changes: [name: string, from: string, to: string][]) =>
  async ({ db1 }: Lane): Promise<void> => {
    for (const one of changes) await change(db1, ...one);
  };
const inLedger =
  (...changes: [name: string, from: string, to: string][]) =>
  async ({ db2 }: Lane): Promise<void> => {
    for (const one of changes) await change(db2, ...one);
  };
/** Of the calls around the databases: orders/broken.ts and orders/stripe.ts know the names. */
const inWiring =
  (name: string) =>
  async ({ breaks }: Lane): Promise<void> =>
    void breaks.add(name);

const orders = (summary: string, apply: (lane: Lane) => Promise<void>): Control => ({
  ...{ summary, subject: ORDERS, apply },
});
/** Each has a scenario of its own name. */
const withScenarios = (controls: Record<string, Control>): Record<string, Control> =>
  Object.fromEntries(
    Object.entries(controls).map(([name, control]) => [
      name,
      { ...control, direct: (lane: Lane) => playScenario(lane, name) },
    ]),
  );

const KNOWN = 'if not exists (select from public.order_payments p where p.payment_key = v_key) then';
const LIVE_CHECKOUT = `select from public.checkouts k where k.order_id = o.order_id and k.state in ('creating', 'open')`;

/** The same claims live again, even if other buyers have their slots. */
const REVIVE = `
      update public.claims c set state = 'held', freed_at = null, end_reason = null where c.order_id = p_order.order_id;
      update public.inventory_slots s set status = 'RESERVED'
        from public.claims c where c.order_id = p_order.order_id and s.id = c.slot_id;
      perform intake.send_orders(array[p_order.order_id]);`;

async function dropTombstones(db2: Side): Promise<void> {
  await db2.run('alter table public.confirmed_tickets disable trigger tickets_leave_a_tombstone');
  await change(
    db2,
    'webhook.end_tickets',
    'delete from public.confirmed_tickets t where t.claim_id = any (v_claim_ids);',
    `delete from public.confirmed_tickets t where t.claim_id = any (v_claim_ids);
  delete from public.voided_tickets v where v.claim_id = any (v_claim_ids);`,
  );
}

export const ORDER_CONTROLS = withScenarios({
  'paid-no-tombstone': orders('a void removes the ticket and leaves no tombstone', ({ db2 }) =>
    dropTombstones(db2),
  ),
  'free-before-tombstone': orders(
    'the seat is on sale again before the ledger has the tombstone',
    inWiring('free-before-tombstone'),
  ),
  'void-frees-again': orders(
    'a repeated void frees the seat again, even if another buyer has it by then',
    inIntake(
      [
        'public.finish_void',
        `and coalesce(c.freed_at, 'infinity') = 'infinity' and c.state <> 'held'`,
        `and c.state <> 'held'`,
      ],
      [
        'public.finish_void',
        `where s.id = any (v_void.slot_ids) and s.status = 'CONSUMED'`,
        'where s.id = any (v_void.slot_ids)',
      ],
      [
        'intake.free_claims',
        `and coalesce(c.freed_at, 'infinity') = 'infinity'`,
        `and (c.freed_at is null or p_state = 'voided')`,
      ],
    ),
  ),
  'discard-frees-at-once': orders(
    'the dead letter of a paid claim is discarded as any other: no refund, and the claim ends as discarded',
    async ({ db1 }) => {
      await db1.run('alter table public.claims drop constraint freed_means_the_claim_has_ended');
      await change(db1, 'intake.paid_claim_of', 'and c.paid', 'and false');
    },
  ),
  'reconcile-revives': orders(
    'a repair lets a voided claim live again for a ticket that was read before',
    async ({ db1 }) => {
      await change(
        db1,
        'intake.fix_from_ticket',
        'v_claim.freed_at is not null',
        `(v_claim.freed_at is not null and v_claim.state <> 'voided')`,
      );
      await change(
        db1,
        'intake.fix_from_ticket',
        `set state = 'committed',`,
        `set state = 'committed', freed_at = null,`,
      );
      await change(db1, 'intake.fix_from_ticket', `<> 'committed' and c.freed_at is null`, `<> 'committed'`);
    },
  ),
  'decision-not-kept': orders('what was decided about a payment is not remembered', async ({ db1 }) => {
    await change(db1, 'public.settle_payments', 'intake.decisions_of(v_keys)', `intake.decisions_of('{}')`);
    await change(db1, 'public.settle_payment', KNOWN, 'if true then');
    await change(
      db1,
      'intake.keep_decisions',
      'select d.* from unnest(p_decided) d;',
      `select d.* from unnest(p_decided) d
  on conflict (payment_key) do update set decision = excluded.decision, reason = excluded.reason;`,
    );
  }),
  'second-payment-funds': orders('two payments may buy one order', async (lane) => {
    await lane.db1.run('drop index public.one_payment_per_order');
    await inIntake(
      ['intake.payment_refusal', 'when p_order.payment_key is not null then', 'when false then'],
      [
        'intake.buy_late',
        'from public.claims c where c.claim_id = any (intake.claims_of_orders(array[p_order.order_id]));',
        'from public.claims c where c.order_id = p_order.order_id and c.replaces is null;',
      ],
    )(lane);
  }),
  'void-not-kept': orders(
    'a refund that overtakes its payment is not remembered',
    inIntake([
      'public.void_targets',
      `      ${KNOWN}\n        perform intake.keep_decisions(`,
      '      if false then\n        perform intake.keep_decisions(',
    ]),
  ),
  'refund-voids-order': orders(
    'the refund of a payment that did not buy the tickets voids them',
    inIntake([
      'public.void_targets',
      `where p.payment_key = v_key and p.decision = 'funds'`,
      'where p.payment_key = v_key',
    ]),
  ),
  'marked-first': orders(
    'a row of the outbox is done when it is taken',
    inLedger(
      [
        'public.outbox_take',
        'set token = gen_random_uuid(),',
        `set state = 'done', finished_at = now(), token = gen_random_uuid(),`,
      ],
      ['public.outbox_finish_all', `and o.state = 'due' order by`, 'order by'],
    ),
  ),
  'no-pull': orders('a paid session is not pulled: only webhooks tell payments', inWiring('no-pull')),
  'free-before-closing': orders(
    'seats are free at the end of the hold, and the session is still open',
    inIntake(
      [
        'intake.lock_due',
        `(o.grace_until <= now() or not exists (\n            ${LIVE_CHECKOUT}\n          ))`,
        '(true)',
      ],
      ['intake.end_orders', 'and o.grace_until > now()', 'and false'],
    ),
  ),
  'checkout-unrecorded': orders(
    'Stripe is asked for a session before its row is written',
    inWiring('checkout-unrecorded'),
  ),
  'no-create-key': orders('sessions are made without an idempotency key', inWiring('no-create-key')),
  'complete-ignored': orders('a session that was paid is closed as expired', inWiring('complete-ignored')),
  'grace-unbounded': orders(
    'without Stripe a hold is never given up',
    inIntake(
      ['intake.lock_due', '(o.grace_until <= now() or not exists (', '(false or not exists ('],
      ['intake.end_orders', 'and o.grace_until > now()', ''],
    ),
  ),
  'revive-blindly': orders(
    'a late payment revives its claims without a look at their seats',
    async ({ db1 }) => {
      await db1.run('drop index public.one_live_claim_per_slot');
      await change(db1, 'intake.decide_payment', 'v_reason := intake.buy_late(p_order);', REVIVE);
    },
  ),
  'limit-forgotten': orders(
    'a late payment does not count what its buyer holds',
    inIntake([
      'intake.buy_late',
      'elsif v_refusal is not null then',
      `elsif v_refusal is not null and v_refusal <> 'limit' then`,
    ]),
  ),
  'endpoint-unchecked': orders(
    'any tenant, and test mode, may pay',
    inIntake([
      'public.settle_payment',
      `elsif v_order.tenant <> p_fact ->> 'tenant' or v_order.livemode <> (p_fact ->> 'livemode')::boolean then`,
      'elsif false then',
    ]),
  ),
  'amount-unchecked': orders(
    'any amount pays',
    inIntake([
      'intake.payment_refusal',
      `when (p_fact -> 'amount')::text is distinct from (p_order.seats * p_order.unit_price)::text then`,
      'when false then',
    ]),
  ),
  'own-refund-untold': orders(
    'what Stripe answers to our refund is not told to the ledger, only its webhook is',
    inLedger([
      'public.refund_sent',
      `perform public.record_pulled(split_part(v_key, '/', 1), p_refund);`,
      '',
    ]),
  ),
  'no-refund-key': orders('refunds carry no key and are not looked up', inWiring('no-refund-key')),
  'any-loss-voids': orders(
    'a dispute that was lost for a part takes the tickets back',
    inLedger(['webhook.tell_order', 'and p_new.captured - p_new.refunded + webhook.lost_of(p_new) <= 0', '']),
  ),
  'open-counts-as-lost': orders(
    'a dispute that is open takes the tickets back where an earlier one was lost for a part',
    inLedger([
      'webhook.lost_of',
      'from unnest(p_payment.lost_disputes) l (dispute_id)',
      'from (select s.dispute_id from webhook.dispute_sums(p_payment) s) l',
    ]),
  ),
  'back-not-owed': orders(
    'money that comes back after the tickets went is not owed',
    inLedger(['webhook.tell_order', 'elsif v_back > 0 and exists (', 'elsif false and exists (']),
  ),
  'back-for-a-ticket': orders(
    'money that comes back is owed for tickets that live, too',
    inLedger(['webhook.owe', `if p_id not like 'void:%' then`, `if p_id like 'settle:%' then`]),
  ),
  'skip-keeps-refunded': orders(
    'a refund that is skipped is kept whole, whatever went back before',
    inLedger([
      'webhook.forfeit',
      'least(p_amount, w.keepable - webhook.owed_elsewhere(p_payment, p_source))',
      'p_amount',
    ]),
  ),
  'kept-though-refunded': orders(
    'what is refunded elsewhere after a skip is still kept',
    inLedger([
      'webhook.tell_order',
      'if p_new.refunded > p_known.refunded or p_new.lost_disputes is not null then',
      'if false then',
    ]),
  ),
});

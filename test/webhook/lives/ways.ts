// The ways in which a payment of Stripe is paid, or is not.

import type { Life, Naming } from './life.ts';

const WAYS: Record<string, { namings: readonly Naming[]; pay(life: Life): void }> = {
  atOnce: {
    namings: ['everywhere', 'everywhere', 'late', 'nowhere'],
    pay(life) {
      // Charges without a payment intent are old, and still there.
      if (life.random.chance(0.2)) life.ids.intent = null;
      life.tellIntent('created', 'requires_payment_method');
      if (life.random.chance(0.3)) life.tellIntent('requires_action', 'requires_action');
      succeed(life);
    },
  },
  inParts: { namings: ['everywhere'], pay: hold },
  voided: {
    namings: ['everywhere'],
    pay(life) {
      life.tell('charge.succeeded', life.charge({ captured: false, amount_captured: 0 }));
      life.passTime();
      if (life.isOld) {
        const held = { captured: false, amount_captured: 0, amount_refunded: life.amount, refunded: true };
        life.tell('charge.refunded', life.charge(held));
        life.tell('refund.created', life.refund(life.idOf('re'), life.amount, 'succeeded'));
      } else life.tell('charge.expired', life.charge({ captured: false, amount_captured: 0 }));
      life.tellIntent('canceled', 'canceled');
    },
  },
  failed: {
    namings: ['everywhere'],
    pay(life) {
      life.tellIntent('created', 'requires_payment_method');
      life.tell('charge.failed', life.charge({ status: 'failed', paid: false, captured: false }));
      life.tellIntent('payment_failed', 'requires_payment_method');
    },
  },
  checkout: {
    namings: ['everywhere', 'session'],
    pay(life) {
      succeed(life);
      life.tell('checkout.session.completed', session(life, 'paid'));
    },
  },
  checkoutLater: {
    namings: ['everywhere', 'session'],
    pay(life) {
      life.tell('checkout.session.completed', session(life, 'unpaid'));
      life.tellIntent('processing', 'processing');
      life.tell('charge.pending', life.charge({ status: 'pending', paid: false, captured: false }));
      life.passTime();
      if (life.random.chance(0.3)) {
        life.tell('charge.failed', life.charge({ status: 'failed', paid: false, captured: false }));
        life.tellIntent('payment_failed', 'requires_payment_method');
        life.tell('checkout.session.async_payment_failed', session(life, 'unpaid'));
        return;
      }
      succeed(life);
      life.tell('checkout.session.async_payment_succeeded', session(life, 'paid'));
    },
  },
  invoiced: { namings: ['everywhere', 'invoice', 'invoice'], pay: payInvoice },
};

export function pay(life: Life): void {
  const way = life.random.pick(Object.values(WAYS));
  life.naming = life.random.pick(way.namings);
  way.pay(life);
  life.passTime();
}

/** One of the two events is enough to be credited: the other one is left out now and then. */
function succeed(life: Life): void {
  life.captured = life.amount;
  const tellers = [
    () => life.tellIntent('succeeded', 'succeeded'),
    () => life.tell('charge.succeeded', life.charge()),
  ];
  const isOne = life.ids.intent !== null && life.random.chance(0.2);
  for (const tell of isOne ? [life.random.pick(tellers)] : tellers) tell();
  if (life.naming !== 'late') return;
  // Its user is written on it afterwards.
  life.passTime();
  life.tell('charge.updated', life.charge({}, true));
}

/** A hold that is captured in one part, or since 2025-03-31 in several, and the rest of it let go. */
function hold(life: Life): void {
  const { random, amount } = life;
  life.tellIntent('created', 'requires_payment_method');
  life.tell('charge.succeeded', life.charge({ captured: false, amount_captured: 0 }));
  life.tellIntent('amount_capturable_updated', 'requires_capture');
  for (let parts = life.isOld || life.isMixed ? 1 : random.between(1, 3); parts > 0; parts--) {
    life.passTime();
    life.captured += random.between(1, Math.max(1, Math.floor((amount - life.captured) / 2)));
    if (life.isOld || life.isMixed) life.released = amount - life.captured;
    life.tell('charge.captured', life.charge());
  }
  // An event that only the old version has is rendered in it.
  if (life.isOld) life.tell('refund.created', life.refund(life.idOf('re'), life.released, 'succeeded'));
  if (life.isOld) life.tell('charge.refunded', life.charge());
  life.tellIntent('succeeded', 'succeeded');
}

function session(life: Life, status: string) {
  const { ids, amount, currency } = life;
  return {
    ...{ id: `cs_${life.name}`, object: 'checkout.session', mode: 'payment', payment_status: status },
    ...{ payment_intent: ids.intent, amount_total: amount, currency },
    ...life.metadata(true),
  };
}

/** By a subscription, which has the user, or without. */
function payInvoice(life: Life): void {
  const { ids, amount, currency, isOld, random } = life;
  succeed(life);
  const paid = { payment: { type: 'payment_intent', payment_intent: ids.intent } };
  const details = { subscription_details: life.metadata(true) };
  const invoice = {
    ...{
      id: `in_${life.name}`,
      object: 'invoice',
      amount_paid: amount,
      currency,
      status: 'paid',
      metadata: {},
    },
    ...(isOld
      ? { payment_intent: ids.intent, charge: ids.charge, ...details }
      : { parent: { type: 'subscription_details', ...details } }),
  };
  const included = isOld ? {} : { payments: { object: 'list', data: [{ amount_paid: amount, ...paid }] } };
  // Where only the invoice has the user, it has to name its payment.
  const isIncluded = life.naming === 'invoice' || random.chance(0.5);
  life.tell('invoice.paid', { ...invoice, ...(isIncluded && included) });
  if (random.chance(0.5)) life.tell('invoice.payment_succeeded', invoice);
  if (isOld) return;
  const more = { object: 'invoice_payment', invoice: invoice.id, amount_paid: amount, currency };
  life.tell('invoice_payment.paid', { id: `inpay_${life.name}`, status: 'paid', ...more, ...paid });
}

// The sessions of checkouts whose answers were lost are found together: one look through Stripe's list serves all that wait.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import type { CallFunction } from '#core/call_function.ts';
import { type CheckoutRow, Closer } from '#core/orders/closer.ts';
import type { Payments } from '#core/orders/ports.ts';
import { createPayments } from '#core/orders/stripe.ts';
import { openStripe } from '../../src/orders/stripe.ts';
import { StripeStandIn } from '../../src/stripe_stand_in/stand_in.ts';

const KEY = 'sk_live_owner_0123456789';
/** Two pages of Stripe's list. */
const SESSIONS = 150;
const LIST = '/v1/checkout/sessions';

const checkoutOf = (number: number): string => `order-${number}:1`;
const paramsOf = (number: number) => ({
  mode: 'payment',
  line_items: [
    { quantity: 1, price_data: { currency: 'eur', unit_amount: 700, product_data: { name: 'A seat' } } },
  ],
  metadata: { checkout: checkoutOf(number) },
  success_url: 'https://tickets.example.com',
});

const lostRow = (number: number): CheckoutRow => ({
  ...{ order_id: `order-${number}`, n: 1, tenant: 'stripe', livemode: true, session_id: null, url: null },
  // Another key with a time that is over: Stripe refuses, as it does where it is too late to make a session.
  ...{ idempotency_key: `late-${number}`, params: { ...paramsOf(number), expires_at: 1 } },
  ...{ state: 'creating', lease_token: 't', attempts: 1, created_at: new Date().toISOString() },
});

/** With both databases behind one function. */
function closerOf(call: CallFunction, payments: Payments): Closer {
  const silent = () => undefined;
  return new Closer({
    ...{ db1: call, db2: call, paymentsOf: async () => payments, now: Date.now },
    metrics: { count: silent, observe: silent, set: silent } as never,
    log: { debug: silent, info: silent, warn: silent, error: silent } as never,
  });
}

describe('sessions whose ids were lost', () => {
  let standIn: StripeStandIn;
  let payments: Payments;
  const ids: string[] = [];
  before(async () => {
    standIn = await StripeStandIn.start({ keys: { [KEY]: { rights: 'all' } } });
    payments = createPayments(await openStripe(KEY, { STRIPE_API_URL: standIn.url }));
    for (let number = 0; number < SESSIONS; number++)
      ids.push((await payments.createSession(paramsOf(number), `key-${number}`)).id);
  });
  after(() => standIn?.stop());

  const find = (checkout: string) => payments.findSession(checkout, Date.now() - 60_000);
  const pagesAsked = () =>
    standIn.server.requests.filter(({ method, url }) => method === 'GET' && url.pathname === LIST).length;

  it('are found by two looks, however many ask', async () => {
    const before = pagesAsked();
    const first = find(checkoutOf(0));
    const found = await Promise.all([first, ...ids.map((_, number) => find(checkoutOf(number)))]);
    assert.deepEqual(
      found.map((session) => session?.id),
      [ids[0], ...ids],
    );
    assert.ok(pagesAsked() - before <= 4, `${pagesAsked() - before} pages were asked for`);
  });

  it('are told apart from those that were never made', async () => {
    const found = await Promise.all(['order-0:2', checkoutOf(7), 'order-9999:1'].map(find));
    assert.deepEqual(
      found.map((session) => session?.id),
      [undefined, ids[7], undefined],
    );
  });

  it('are found where they were made during another look', async () => {
    const early = find('order-none:1');
    const made = await payments.createSession(paramsOf(SESSIONS), `key-${SESSIONS}`);
    assert.equal((await find(checkoutOf(SESSIONS)))?.id, made.id);
    assert.equal(await early, undefined);
  });

  it('are not said to be missing while Stripe is away, and are found afterwards', async () => {
    standIn.server.faults.push('gone');
    const answers = await Promise.allSettled([find(checkoutOf(1)), find(checkoutOf(2))]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal((await find(checkoutOf(1)))?.id, ids[1]);
  });

  it('are ended by a closer with a look for all of its rows, and not with one for each', async () => {
    const rows = ids.slice(0, 50).map((_, number) => lostRow(number));
    const closed: string[] = [];
    const call = (async (name: string, args: Record<string, unknown>) => {
      if (name === 'take_closing') return args.p_lost === true ? rows.splice(0, Number(args.p_limit)) : [];
      if (name === 'close_checkout') closed.push(`${args.p_order_id} ${args.p_state}`);
      return name === 'close_checkout' ? [{ close_checkout: true }] : [];
    }) as CallFunction;
    const closer = closerOf(call, payments);
    const before = pagesAsked();
    await closer.drain(new AbortController().signal);
    assert.deepEqual(
      closed.sort(),
      ids
        .slice(0, 50)
        .map((_, number) => `order-${number} expired`)
        .sort(),
    );
    assert.ok(pagesAsked() - before <= 8, `${pagesAsked() - before} pages were asked for`);
    assert.equal((await payments.showSession(ids[49] ?? '')).status, 'expired');
  });

  it('keep no other session waiting while they are looked for', { timeout: 10_000 }, async (t) => {
    const lost = Array.from({ length: 1_000 }, (_, number) => lostRow(number));
    const known = [{ ...lostRow(0), state: 'open', order_id: 'known', session_id: ids[0] ?? null }];
    const stopping = new AbortController();
    const events = new EventEmitter();
    const closed = once(events, 'closed');
    const found = once(events, 'found').then(() => undefined);
    const call = (async (name: string, { p_lost, p_limit, p_order_id }: Record<string, unknown>) => {
      if (name === 'take_closing') return (p_lost === false ? known : lost).splice(0, Number(p_limit));
      if (name === 'close_checkout') events.emit('closed', p_order_id);
      return name === 'close_checkout' ? [{ close_checkout: true }] : [];
    }) as CallFunction;
    const slow: Payments = { ...payments, findSession: () => found };
    const running = closerOf(call, slow).run(stopping.signal);
    t.after(async () => {
      stopping.abort();
      events.emit('found');
      await running;
    });
    assert.deepEqual(await closed, ['known']);
  });
});

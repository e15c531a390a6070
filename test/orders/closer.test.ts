// What the closer makes of Stripe's answers, where their order or their absence is what matters.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallFunction } from '#core/call_function.ts';
import { type CheckoutRow, Closer } from '#core/orders/closer.ts';
import { PaymentError, type PaymentStanding, type Payments, type Session } from '#core/orders/ports.ts';

const ROW: CheckoutRow = {
  order_id: 'o1',
  n: 1,
  tenant: 'stripe',
  livemode: true,
  idempotency_key: 'k',
  params: {},
  session_id: 'cs_1',
  url: null,
  state: 'open',
  lease_token: 't',
  attempts: 1,
  created_at: '2026-01-01T00:00:00Z',
};
const UNPAID: Session = {
  ...{ id: 'cs_1', status: 'complete', isPaid: false, paymentIntent: 'pi_1', url: null, object: {} },
};

type Call = { name: string; args: Record<string, unknown> };

/** One row is worked on; the answer is what both databases were told. `seen` gets what became of it, and what was logged. */
async function close(
  change: Partial<CheckoutRow>,
  stripe: Partial<Payments>,
  { pulled = 'success', seen = [] as string[] } = {},
): Promise<Call[]> {
  const rows = [{ ...ROW, ...change }];
  const calls: Call[] = [];
  const call = (async (name: string, args: Record<string, unknown>) => {
    if (name === 'take_closing') return rows.splice(0);
    calls.push({ name, args });
    if (name === 'record_pulled') return [{ record_pulled: pulled }];
    return name === 'close_checkout' ? [{ close_checkout: true }] : [];
  }) as CallFunction;
  const silent = () => undefined;
  const closer = new Closer({
    ...{ db1: call, db2: call, paymentsOf: async () => stripe as Payments, now: Date.now },
    metrics: { count: silent, observe: silent, set: silent } as never,
    log: { debug: silent, info: silent, warn: silent, error: (text: string) => seen.push(text) } as never,
  });
  const { outcomes } = await closer.drain(new AbortController().signal);
  seen.unshift(...Object.keys(outcomes));
  return calls;
}

const closedAs = async (standing: PaymentStanding): Promise<unknown> => {
  const [told] = await close({}, { expireSession: async () => UNPAID, standingOf: async () => standing });
  assert.equal(told?.name, 'close_checkout');
  return told.args.p_state;
};

/** Seconds until the row is looked at again. */
const pauseAfter = async (attempts: number, kind: 'outage' | 'key'): Promise<unknown> => {
  const expireSession = () => Promise.reject(new PaymentError(kind, 'no'));
  const [told] = await close({ attempts }, { expireSession });
  assert.equal(told?.name, 'checkout_later');
  return told.args.p_delay_sec;
};

describe('a session that is complete and not paid', () => {
  it('waits for its payment, or has expired where none will come', async () => {
    assert.deepEqual([await closedAs('pending'), await closedAs('over')], ['processing', 'expired']);
  });

  it('is complete where its payment was made between the two answers', async () => {
    assert.equal(await closedAs('paid'), 'complete');
  });
});

describe('a session that was paid', () => {
  const stripe = (session: Session): Partial<Payments> => ({
    showSession: async () => session,
    standingOf: async () => 'paid',
  });

  it('is told to the ledger', async () => {
    const calls = await close({ state: 'complete' }, stripe({ ...UNPAID, isPaid: true }));
    assert.deepEqual(
      calls.map(({ name }) => name),
      ['record_pulled', 'checkout_later'],
    );
  });

  it('and whose payment has no effect in the ledger is counted as such, and logged', async () => {
    const after = async (pulled: string) => {
      const seen: string[] = [];
      await close({ state: 'complete' }, stripe({ ...UNPAID, isPaid: true }), { pulled, seen });
      return seen;
    };
    assert.deepEqual(await after('success'), ['pulled']);
    for (const answer of ['skipped', 'typescript', 'failed', 'dead_letter', 'in_flight'])
      assert.deepEqual(await after(answer), [answer, 'a session is paid, and its payment has no effect yet']);
  });

  it('is not told before it says that it is paid: the ledger takes it once', async () => {
    const calls = await close({ state: 'complete' }, stripe(UNPAID));
    assert.deepEqual(
      calls.map(({ name, args }) => [name, args.p_delay_sec]),
      [['checkout_later', 1]],
    );
  });
});

describe('a session that could not be closed', () => {
  it('is tried again within 15 s where Stripe was away, however often it was', async () => {
    assert.deepEqual([await pauseAfter(1, 'outage'), await pauseAfter(9, 'outage')], [2, 15]);
  });

  it('is tried less and less often where the key is refused', async () => {
    assert.deepEqual([await pauseAfter(1, 'key'), await pauseAfter(9, 'key')], [2, 300]);
  });
});

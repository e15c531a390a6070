// Paid orders in which every promise was kept, made by hand: what the good history has beside its other claims.

import type { History } from '../../chaos/history.ts';
import type { PaidHistory } from '../../chaos/paid_history.ts';
import { claim, stored, told } from './good_history.ts';

const POOL = 'paid';
const PRICE = 1_000;
/** The run began at this moment; the orders of the good history are held until 20 s after it, and their grace is 5 s. */
export const STARTED_AT_MS = 1_770_000_000_000;
export const HOLD_UNTIL = STARTED_AT_MS + 20_000;
export const GRACE_UNTIL = HOLD_UNTIL + 5_000;
const TENANT = 'stripe:paid';

const order = (orderId: string, seats: number, payment: string | null) => ({
  ...{ orderId, poolId: POOL, userId: `buyer of ${orderId}`, seats, unitPrice: PRICE },
  ...{ holdUntil: payment === null ? HOLD_UNTIL : null, graceUntil: GRACE_UNTIL },
  paymentKey: payment === null ? null : `${TENANT}/${payment}`,
});

const seat = (claimId: string, orderId: string, state: string, freedAt: number | null = null) => ({
  ...{ claimId, orderId, slotId: `slot of ${claimId}`, state, live: freedAt === null, freedAt },
  replaces: null as string | null,
});

const bought = (
  orderId: string,
  claimIds: string[],
  paidAt: number | null,
): PaidHistory['orders'][number] => ({
  ...{ orderId, poolId: POOL, userId: `buyer of ${orderId}`, claimIds },
  ...{ sessionId: `cs_${orderId}`, paidAt, paidWith: paidAt === null ? null : 'card', isTurnedAway: false },
});

const payment = (id: string, orderId: string, amount: number): PaidHistory['books']['payments'][number] => ({
  ...{ id, orderId, amount, isPaid: true, isLost: false, hasSession: true, refunds: [], isUntold: false },
});

const credit = (id: string, kind: string, amount: number) => ({
  paymentKey: `${TENANT}/${id}`,
  kind,
  amount,
});
const decided = (id: string, orderId: string, decision: string) => ({
  ...{ paymentKey: `${TENANT}/${id}`, orderId, decision, reason: null },
});

/**
 * o1: two seats, bought by pi_1; pi_5 paid for it once more, which we gave back. o2: its session ended in time, nothing was paid.
 * o3: bought by pi_3, given back in Stripe's dashboard, voided. o4: its grace ran out, pi_4 came late and bought another seat.
 * o6: its buyer never asked to pay; an operator took it back when it had ended, which changed nothing.
 */
export function goodOrders(): PaidHistory {
  return {
    ...{ startedAtMs: STARTED_AT_MS, tenant: TENANT },
    voids: [{ claimIds: ['o6'], isRefund: true, reason: 'chaos o6', at: 40_000, answer: 'done' }],
    orders: [
      bought('o1', ['o1', 'o1b'], 15_000),
      bought('o2', ['o2'], null),
      bought('o3', ['o3'], 16_000),
      bought('o4', ['o4'], 26_000),
      { ...bought('o6', ['o6'], null), sessionId: null },
    ],
    final: {
      orders: [
        order('o1', 2, 'pi_1'),
        order('o2', 1, null),
        order('o3', 1, 'pi_3'),
        order('o4', 1, 'pi_4'),
        order('o6', 1, null),
      ],
      claims: [
        seat('o1', 'o1', 'committed'),
        seat('o1b', 'o1', 'committed'),
        seat('o2', 'o2', 'expired', HOLD_UNTIL + 900),
        seat('o3', 'o3', 'voided', HOLD_UNTIL + 9_000),
        seat('o4', 'o4', 'expired', GRACE_UNTIL + 700),
        { ...seat('o4late', 'o4', 'committed'), replaces: 'o4' },
        seat('o6', 'o6', 'expired', HOLD_UNTIL + 800),
      ],
      decisions: [
        decided('pi_1', 'o1', 'funds'),
        decided('pi_3', 'o3', 'funds'),
        decided('pi_4', 'o4', 'funds'),
        decided('pi_5', 'o1', 'refund'),
      ],
      checkouts: ['o1', 'o2', 'o3', 'o4'].map((orderId) => ({
        ...{ orderId, n: 1, sessionId: `cs_${orderId}`, state: orderId === 'o2' ? 'expired' : 'complete' },
      })),
      outbox: [{ id: 'settle:pi_1', kind: 'settle', state: 'done' }],
      refunds: [{ id: 'settle:pi_5', paymentKey: `${TENANT}/pi_5`, amount: 2 * PRICE, state: 'sent' }],
      events: [stored('row90', 'evt_1', 'success')],
      tombstones: [{ claimId: 'o3', orderId: 'o3', voidedAt: HOLD_UNTIL + 8_000 }],
      tickets: [
        { claimId: 'o1', orderId: 'o1' },
        { claimId: 'o1b', orderId: 'o1' },
        { claimId: 'o4late', orderId: 'o4' },
      ],
      credits: [
        ...[credit('pi_1', 'payment', 2 * PRICE), credit('pi_1', 'purchase', -2 * PRICE)],
        ...[credit('pi_3', 'payment', PRICE), credit('pi_3', 'purchase', -PRICE)],
        ...[credit('pi_3', 'refund', -PRICE), credit('pi_3', 'purchase_void', PRICE)],
        ...[credit('pi_4', 'payment', PRICE), credit('pi_4', 'purchase', -PRICE)],
        ...[credit('pi_5', 'payment', 2 * PRICE), credit('pi_5', 'refund', -2 * PRICE)],
      ],
      payments: ['pi_1', 'pi_3', 'pi_4', 'pi_5'].map((id) => ({
        ...{ paymentKey: `${TENANT}/${id}`, refunded: id === 'pi_3' ? PRICE : 0 },
      })),
    },
    books: {
      sessions: ['o1', 'o2', 'o3', 'o4'].map((orderId) => ({
        id: `cs_${orderId}`,
        orderId,
        status: orderId === 'o2' ? 'expired' : 'complete',
        paymentIntent: orderId === 'o2' ? null : orderId.replace('o', 'pi_'),
      })),
      payments: [
        payment('pi_1', 'o1', 2 * PRICE),
        { ...payment('pi_3', 'o3', PRICE), refunds: [{ amount: PRICE, isOurs: false }] },
        payment('pi_4', 'o4', PRICE),
        {
          ...payment('pi_5', 'o1', 2 * PRICE),
          hasSession: false,
          refunds: [{ amount: 2 * PRICE, isOurs: true }],
        },
      ],
    },
  };
}

/** The same history with these orders in it, in all places. */
export function addOrders(history: History): PaidHistory {
  const paid = goodOrders();
  const { pools, claims, lostLeases, final } = history;
  lostLeases.push({ worker: 'w1', kind: 'webhook', ids: ['evt_1'], at: 240 });
  const seats = paid.final.claims;
  pools.push({
    ...{ poolId: POOL, capacity: seats.length, commit: 'rpc', holdSec: 20 },
    payment: { unitPrice: PRICE, graceSec: 5 },
  });
  for (const { orderId, claimIds, userId } of paid.orders)
    claims.push({
      ...{ requestId: `request ${orderId}`, poolId: POOL, userId, quantity: claimIds.length },
      ...{ startedAt: 100, endedAt: 200, attempts: 1, answer: 'claimed' },
      told: [told(orderId, `slot of ${orderId}`)],
    });
  for (const { claimId, orderId, slotId, state, live } of seats) {
    const userId = `buyer of ${orderId}`;
    const requestId = claimId === orderId ? `request ${orderId}` : null;
    final.claims.push({ ...claim(claimId, requestId, POOL, slotId, userId), state, live, orderId });
    final.slots.push({ poolId: POOL, slotId, status: live ? 'CONSUMED' : 'AVAILABLE' });
    if (live) final.tickets.push({ slotId, claimId, poolId: POOL, userId });
  }
  for (const { claimIds, reason } of paid.voids)
    final.audit.push({ database: 'db2', action: 'ticket_void', actor: 'chaos', reason, ids: claimIds });
  history.paid = paid;
  return paid;
}

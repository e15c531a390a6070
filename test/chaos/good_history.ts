// A small history in which every promise was kept, with one of everything: made by hand, so that what a checker says
// about it can be read off.

import type { History } from '../../chaos/history.ts';

/**
 * Pool `rpc`: s1 a ticket, s2 waits in the dead letters as poison put there by hand, s3 free, s4 a ticket of a request
 * that never got an answer. Pool `hook`: h1 committed at its target, h2 refused by it and a dead letter.
 * Pool `small`: m1 released, m2 expired; both free. Pool `checked`: k1 refused by validation.
 */
export function goodHistory(): History {
  const call = { startedAt: 100, endedAt: 200, attempts: 1 };
  const ended = { live: false, endReason: 'made by hand' };
  return {
    seed: 1,
    minutes: 1,
    stormAt: 5_000,
    calmAt: 65_000,
    drainedAt: 66_500,
    pools: [
      { poolId: 'rpc', capacity: 4, commit: 'rpc' },
      { poolId: 'hook', capacity: 2, commit: 'webhook' },
      { poolId: 'small', capacity: 2, commit: 'rpc', holdSec: 5 },
      { poolId: 'checked', capacity: 1, commit: 'rpc' },
    ],
    claims: [
      { ...call, requestId: 'r1', poolId: 'rpc', userId: 'u1', answer: 'claimed', told: [told('c1', 's1')] },
      { ...call, requestId: 'r2', poolId: 'rpc', userId: 'u2', answer: 'unknown', told: [] },
      { ...call, requestId: 'r3', poolId: 'hook', userId: 'u3', answer: 'claimed', told: [told('c3', 'h1')] },
      { ...call, requestId: 'r4', poolId: 'hook', userId: 'u4', answer: 'claimed', told: [told('c4', 'h2')] },
      {
        ...call,
        requestId: 'r5',
        poolId: 'small',
        userId: 'u5',
        answer: 'claimed',
        told: [told('c5', 'm1')],
      },
      {
        ...call,
        requestId: 'r6',
        poolId: 'small',
        userId: 'u6',
        answer: 'claimed',
        told: [told(null, 'm2')],
      },
      { ...call, requestId: 'r7', poolId: 'small', userId: 'u7', answer: 'sold_out', told: [] },
      {
        ...call,
        requestId: 'r8',
        poolId: 'checked',
        userId: 'u8',
        answer: 'claimed',
        told: [told('c8', 'k1')],
      },
    ],
    releases: [{ claimId: 'c5', at: 300, answer: 'released' }],
    events: [
      event('e1', 'pay1', 'paid', 10),
      // Another event that tells the same fact, and the refund of it.
      event('e2', 'pay1', 'paid', 10),
      event('e3', 'pay1', 'refunded', 4),
      { ...event('e4', 'pay2', 'paid', 7), acknowledgedAt: null },
      event('bad', 'pay3', 'paid', 5),
    ],
    callEvents: [
      { siteId: 'site', signatureHash: 'aa', deliveries: 3, stored: 1, noop: 2, acknowledgedAt: 400 },
      { siteId: 'site', signatureHash: 'bb', deliveries: 1, stored: 0, noop: 0 },
    ],
    operatorActions: [
      {
        action: 'dead_letter_discard',
        ids: ['91', '99'],
        reason: 'chaos 1',
        at: 500,
        answer: 'done',
        results: [
          { id: '91', result: 'discarded' },
          { id: '99', result: 'not_found' },
        ],
      },
      { action: 'webhook_replay', ids: ['row5'], reason: 'chaos 2', at: 600, answer: 'unknown', results: [] },
    ],
    healthy: [],
    poison: ['s2', 'p1', 'bad'],
    targetCalls: [
      { kind: 'commit', key: 'c3', at: 250, status: 500, poolId: 'hook' },
      { kind: 'commit', key: 'c3', at: 260, status: 200, poolId: 'hook' },
      { kind: 'commit', key: 'c4', at: 270, status: 422, poolId: 'hook' },
      { kind: 'validate', key: 'c8', at: 280, status: 422, poolId: 'checked' },
    ],
    faults: [
      { name: 'kill-worker', target: 'worker 1', startedAt: 10_000, healedAt: 11_000, recoveredAt: 11_250 },
      { name: 'cut', target: 'server→db1', startedAt: 20_000, healedAt: 22_000, recoveredAt: 22_100 },
    ],
    lostLeases: [
      { worker: 'w1', kind: 'bridge', ids: ['c1'], at: 240 },
      { worker: 'w1', kind: 'webhook', ids: ['e1'], at: 240 },
    ],
    finishes: [
      { worker: 'w1', msgId: '1', claimId: 'c1', readCt: 1, outcome: 'lost_lease', at: 240 },
      { worker: 'w2', msgId: '1', claimId: 'c1', readCt: 2, outcome: 'committed', at: 230 },
    ],
    eventFinishes: [
      { worker: 'w1', eventId: 'e1', attempts: 1, takeovers: 0, result: 'lost_lease', at: 240 },
      { worker: 'w2', eventId: 'e1', attempts: 1, takeovers: 1, result: 'success', at: 230 },
    ],
    final: {
      slots: [
        { poolId: 'rpc', slotId: 's1', status: 'CONSUMED' },
        { poolId: 'rpc', slotId: 's2', status: 'RESERVED' },
        { poolId: 'rpc', slotId: 's3', status: 'AVAILABLE' },
        { poolId: 'rpc', slotId: 's4', status: 'CONSUMED' },
        { poolId: 'hook', slotId: 'h1', status: 'CONSUMED' },
        { poolId: 'hook', slotId: 'h2', status: 'RESERVED' },
        { poolId: 'small', slotId: 'm1', status: 'AVAILABLE' },
        { poolId: 'small', slotId: 'm2', status: 'AVAILABLE' },
        { poolId: 'checked', slotId: 'k1', status: 'AVAILABLE' },
      ],
      claims: [
        { ...claim('c1', 'r1', 'rpc', 's1', 'u1'), state: 'committed' },
        { ...claim('c2', 'r2', 'rpc', 's4', 'u2'), state: 'committed' },
        { ...claim('c3', 'r3', 'hook', 'h1', 'u3'), state: 'committed' },
        { ...claim('c4', 'r4', 'hook', 'h2', 'u4'), state: 'dead_letter' },
        { ...claim('c5', 'r5', 'small', 'm1', 'u5'), state: 'released', ...ended },
        { ...claim('c6', 'r6', 'small', 'm2', 'u6'), state: 'expired', ...ended },
        { ...claim('c8', 'r8', 'checked', 'k1', 'u8'), state: 'refused', ...ended },
      ],
      queued: [],
      deadLetters: [
        { msgId: '90', claimId: null, poolId: 'rpc', identity: 's2', reason: 'unknown_pool' },
        { msgId: '92', claimId: 'c4', poolId: 'hook', identity: 'c4', reason: 'max_retries: status 422' },
      ],
      archivedLetters: [{ msgId: '91', claimId: null, poolId: null, identity: 'p1', reason: 'malformed' }],
      tickets: [
        { slotId: 's1', claimId: 'c1', poolId: 'rpc', userId: 'u1' },
        { slotId: 's4', claimId: 'c2', poolId: 'rpc', userId: 'u2' },
      ],
      events: [
        { ...stored('row1', 'e1', 'success'), takeovers: 1 },
        stored('row2', 'e2', 'skipped'),
        stored('row3', 'e3', 'success'),
        stored('row5', 'bad', 'dead_letter'),
      ],
      credits: [
        { provider: 'stripe', eventId: 'e1', userId: 'payer', amount: 10, currency: 'eur' },
        { provider: 'stripe', eventId: 'e3', userId: 'payer', amount: -4, currency: 'eur' },
      ],
      payments: [
        {
          ...{ provider: 'stripe', object: 'pay1', userId: 'payer', state: 'partially_refunded' },
          ...{ amount: 10, refunded: 4, currency: 'eur' },
        },
      ],
      calls: [{ siteId: 'site', signatureHash: 'aa' }],
      audit: [
        { database: 'db2', action: 'webhook_endpoint_add', actor: 'setup', reason: null, ids: ['inline'] },
        { database: 'db1', action: 'dead_letter_discard', actor: 'operator', reason: 'chaos 1', ids: ['91'] },
      ],
    },
  };
}

export const told = (claimId: string | null, slotId: string) => ({ claimId, slotId });

export const claim = (
  claimId: string,
  requestId: string | null,
  poolId: string,
  slotId: string,
  userId: string,
) => ({ claimId, requestId, poolId, slotId, userId, state: 'queued', live: true, endReason: null });

export const event = (eventId: string, object: string, kind: 'paid' | 'refunded', amount: number) => ({
  provider: 'stripe',
  endpoint: 'inline',
  eventId,
  fact: { object, kind, userId: 'payer', amount, currency: 'eur' },
  deliveries: 1,
  acknowledgedAt: 300 as number | null,
});

export const stored = (id: string, eventId: string, status: string) => ({
  id,
  provider: 'stripe',
  endpoint: 'inline',
  eventId,
  status,
  attempts: 1,
  takeovers: 0,
  error: null,
  skippedBy: null as string | null,
});

// Each promise's checker accepts a good end of a history and rejects a bad one made by hand.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PROMISES, type Rest } from './claims/promises.ts';
import type { PromiseName } from './violation.ts';

const claim = (number: number, state: string, msgId: number | null = null) => ({
  id: `c${number}`,
  slot: `s${number}`,
  pool: 'a',
  user: `u${number}`,
  request: null,
  state,
  msgId,
  hold: 'none',
  isFreed: state === 'released',
  endAs: null,
});
const ticket = (number: number) => ({
  slot: `s${number}`,
  claim: `c${number}`,
  user: `u${number}`,
  pool: 'a',
});
const letter = { id: 7, claim: 'c2', slot: 's2', reason: 'max_retries', readCt: 3, msgId: 5 };

/** A ticket, a dead letter and a claim that was released. */
const good = (): Rest => ({
  intake: {
    slots: [
      { id: 's1', status: 'CONSUMED' },
      { id: 's2', status: 'RESERVED' },
      { id: 's3', status: 'AVAILABLE' },
    ],
    totals: [{ pool: 'a', slots: 3 }],
    claims: [claim(1, 'committed'), claim(2, 'dead_letter', 7), claim(3, 'released')],
    messages: [],
    letters: [letter],
    audit: ['dead_letter_replay'],
  },
  tickets: [ticket(1)],
  told: [{ claimId: 'c1', slotId: 's1', user: 'u1' }],
  released: new Set(['c3']),
  failures: new Map([[5, 1]]),
  actions: ['dead_letter_replay'],
  pools: [{ id: 'a', capacity: 3, maxRetries: 2 }],
});

const BAD: [PromiseName, string, (rest: Rest) => Partial<Rest>][] = [
  [
    'I1',
    'an acknowledged claim that is gone',
    ({ told }) => ({ told: [...told, { claimId: 'c9', slotId: 's1', user: 'u' }] }),
  ],
  [
    'I1',
    'an acknowledged claim with another slot',
    () => ({ told: [{ claimId: 'c1', slotId: 's2', user: 'u1' }] }),
  ],
  [
    'I2',
    'two live claims on one slot',
    ({ intake }) => ({ intake: { ...intake, claims: [claim(1, 'queued'), claim(1, 'queued')] } }),
  ],
  ['I2', 'two tickets for one slot', () => ({ tickets: [ticket(1), ticket(1)] })],
  ['I3', 'a ticket of another user', () => ({ tickets: [{ ...ticket(1), user: 'thief' }] })],
  ['I3', 'a committed claim without a ticket', () => ({ tickets: [] })],
  ['I4', 'more held than there is', () => ({ pools: [{ id: 'a', capacity: 1, maxRetries: 2 }] })],
  ['I5', 'a slot that is missing', ({ intake }) => ({ intake: { ...intake, slots: intake.slots.slice(1) } })],
  [
    'I5',
    'a sold slot on sale',
    ({ intake }) => ({
      intake: { ...intake, slots: intake.slots.map((slot) => ({ ...slot, status: 'AVAILABLE' })) },
    }),
  ],
  ['I5', 'a wrong capacity', ({ intake }) => ({ intake: { ...intake, totals: [] } })],
  ['I6', 'a claim that ended twice', () => ({ tickets: [ticket(1), ticket(3)] })],
  ['I6', 'a claim that was released and is sold', () => ({ released: new Set(['c1']) })],
  ['I6', 'a claim that did not end', ({ intake }) => ({ intake: { ...intake, letters: [] } })],
  [
    'I10',
    'a message that is still there',
    ({ intake }) => ({
      intake: {
        ...intake,
        messages: [
          { id: 1, claim: 'c1', slot: 's1', readCt: 0, seen: 0, tried: 0, state: 'queued', isVisible: true },
        ],
      },
    }),
  ],
  [
    'I11',
    'an action without an audit row',
    ({ actions }) => ({ actions: [...actions, 'dead_letter_discard'] }),
  ],
  ['I11', 'an audit row without an action', () => ({ actions: [] })],
  ['I12', 'a message that died of outages', () => ({ failures: new Map() })],
];

describe('the promises about claims', () => {
  test('accept a good end', () => {
    for (const [name, check] of Object.entries(PROMISES)) assert.deepEqual(check(good()), [], name);
  });

  for (const [name, what, spoil] of BAD) {
    test(`${name} rejects ${what}`, () => {
      const rest = good();
      assert.notDeepEqual(PROMISES[name]?.({ ...rest, ...spoil(rest) }), []);
    });
  }

  test('each have a bad end here', () => {
    assert.deepEqual(Object.keys(PROMISES), [...new Set(BAD.map(([name]) => name))]);
  });
});

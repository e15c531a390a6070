import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brokenPromises, type History } from '../support/history.ts';

/** Two slots, one sold to r1, one free; nothing is wrong with it. */
function goodHistory(): History {
  return {
    capacity: 2,
    told: [{ requestId: 'r1', slotId: 's1', startedByThen: 1 }],
    claims: [{ claimId: 'c1', requestId: 'r1', slotId: 's1', live: true }],
    slots: [
      { slotId: 's1', status: 'RESERVED' },
      { slotId: 's2', status: 'AVAILABLE' },
    ],
    queued: ['c1'],
  };
}

const sold = { slotId: 's2', status: 'RESERVED' } as const;

describe('the checkers of a history', () => {
  test('find nothing wrong with a good history', () => {
    assert.deepEqual(brokenPromises(goodHistory()), {});
  });

  test('allow "sold out" once as many other requests were started as there are slots', () => {
    const history = goodHistory();
    history.told.push({ requestId: 'r3', slotId: null, startedByThen: 3 });
    assert.deepEqual(brokenPromises(history), {});
  });

  const bad: Record<string, { promise: string; spoil(history: History): void }> = {
    'an acknowledged claim that is gone': {
      promise: 'acknowledgedClaimsAreKept',
      spoil: (history) => {
        history.told.push({ requestId: 'r2', slotId: 's2', startedByThen: 2 });
      },
    },
    'a retry that took a second slot': {
      promise: 'acknowledgedClaimsAreKept',
      spoil: (history) => {
        history.claims.push({ claimId: 'c2', requestId: 'r1', slotId: 's2', live: true });
        history.slots[1] = sold;
        history.queued.push('c2');
      },
    },
    'a claim with another slot than the buyer was told': {
      promise: 'acknowledgedClaimsAreKept',
      spoil: (history) => {
        history.told[0] = { requestId: 'r1', slotId: 's2', startedByThen: 1 };
      },
    },
    'a slot with two live claims': {
      promise: 'noSlotIsSoldTwice',
      spoil: (history) => {
        history.claims.push({ claimId: 'c2', requestId: 'r2', slotId: 's1', live: true });
        history.queued.push('c2');
      },
    },
    'a slot promised to two buyers': {
      promise: 'noSlotIsSoldTwice',
      spoil: (history) => {
        history.told.push({ requestId: 'r2', slotId: 's1', startedByThen: 2 });
        history.claims.push({ claimId: 'c2', requestId: 'r2', slotId: 's1', live: false });
      },
    },
    '"sold out" while a slot was left': {
      promise: 'soldOutIsNeverALie',
      spoil: (history) => {
        history.told.push({ requestId: 'r2', slotId: null, startedByThen: 2 });
      },
    },
    'a slot that vanished': {
      promise: 'slotsAreConserved',
      spoil: (history) => {
        history.slots.pop();
      },
    },
    'a sold slot that is for sale again': {
      promise: 'slotsAreConserved',
      spoil: (history) => {
        history.slots[0] = { slotId: 's1', status: 'AVAILABLE' };
      },
    },
    'a slot that is reserved for nobody': {
      promise: 'slotsAreConserved',
      spoil: (history) => {
        history.slots[1] = sold;
      },
    },
    'a live claim without a message': {
      promise: 'oneMessagePerLiveClaim',
      spoil: (history) => {
        history.queued = [];
      },
    },
    'a claim that is on the queue twice': {
      promise: 'oneMessagePerLiveClaim',
      spoil: (history) => {
        history.queued.push('c1');
      },
    },
    'a message about a claim that is not there': {
      promise: 'oneMessagePerLiveClaim',
      spoil: (history) => {
        history.queued.push('c9');
      },
    },
  };

  for (const [what, { promise, spoil }] of Object.entries(bad)) {
    test(`reject ${what}`, () => {
      const history = goodHistory();
      spoil(history);
      assert(Object.keys(brokenPromises(history)).includes(promise), JSON.stringify(brokenPromises(history)));
    });
  }
});

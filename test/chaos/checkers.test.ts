import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { History } from '../../chaos/history.ts';
import { judge, PROMISES, type PromiseName } from '../../chaos/judge.ts';
import { BAD_HISTORIES } from './bad_histories.ts';
import { goodHistory } from './good_history.ts';
import { addOrders } from './good_orders.ts';

const brokenBy = (history: History): PromiseName[] => [
  ...new Set(judge(history).violations.map((violation) => violation.promise)),
];

describe('the checkers', () => {
  test('find nothing wrong with a good history', () => {
    assert.deepEqual(judge(goodHistory()).violations, []);
  });

  test('find nothing wrong with orders that were bought, refunded, voided and bought late', () => {
    const history = goodHistory();
    addOrders(history);
    assert.deepEqual(judge(history).violations, []);
  });

  test('allow a void without an answer that happened, and one that did not', () => {
    const history = goodHistory();
    const { voids } = addOrders(history);
    for (const call of voids) call.answer = 'unknown';
    assert.deepEqual(judge(history).violations, []);
    history.final.audit = history.final.audit.filter(({ action }) => action !== 'ticket_void');
    assert.deepEqual(judge(history).violations, []);
  });

  test('allow a dead letter of a pool whose target refuses all, also when the target was never reached', () => {
    const history = goodHistory();
    history.pools.push({ poolId: 'picky', capacity: 1, commit: 'webhook', neverCommits: true });
    history.final.archivedLetters.push({
      msgId: '95',
      claimId: null,
      poolId: 'picky',
      identity: 'x',
      reason: 'y',
    });
    history.final.slots.push({ poolId: 'picky', slotId: 'p1', status: 'AVAILABLE' });
    assert.deepEqual(judge(history).violations, []);
  });

  for (const { promise, name, also, spoil } of BAD_HISTORIES) {
    test(`${promise} rejects ${name}`, () => {
      const history = goodHistory();
      spoil(history);
      const broken = brokenBy(history);
      assert(broken.includes(promise), `${broken} of ${JSON.stringify(judge(history).violations)}`);
      // What else such a history breaks is known, so that a checker that cries wolf is seen.
      assert.deepEqual(broken.filter((other) => other !== promise).sort(), [...also].sort());
    });
  }

  test('each have a bad history that no other checker rejects', () => {
    const alone = new Set(
      BAD_HISTORIES.filter(({ also }) => also.length === 0).map(({ promise }) => promise),
    );
    assert.deepEqual(
      Object.keys(PROMISES).filter((promise) => !alone.has(promise as PromiseName)),
      [],
    );
  });
});

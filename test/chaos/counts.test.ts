import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { acknowledgements, countsOf, recoveryOf, spreadOf, throughput } from '../../chaos/counts.ts';
import type { History } from '../../chaos/history.ts';
import { claim, event, goodHistory, stored, told } from './good_history.ts';

const call = { startedAt: 1, endedAt: 2, attempts: 1, poolId: 'rpc', userId: 'u' };
const SAME = { lost: 0, duplicated: 0, unexpected: 0, recovered: 0 };

function claimsAfter(spoil: (history: History) => void) {
  const history = goodHistory();
  spoil(history);
  return countsOf(history).claims;
}

describe('the four counts', () => {
  test('of a good history are zero, but for what came through without an answer', () => {
    const { claims, events, calls, operatorActions } = countsOf(goodHistory());
    assert.deepEqual(claims, { attempted: 8, acknowledged: 6, ...SAME, recovered: 1 });
    assert.deepEqual(events, { attempted: 5, acknowledged: 4, ...SAME });
    assert.deepEqual(calls, { attempted: 2, acknowledged: 1, ...SAME });
    assert.equal(operatorActions, 1);
  });

  test('count an acknowledged claim that is gone as lost', () => {
    const counts = claimsAfter(({ claims }) => {
      claims.push({ ...call, requestId: 'r9', answer: 'claimed', told: [told('c9', 's3')] });
    });
    assert.equal(counts.lost, 1);
  });

  test('count a request with two claims as duplicated, once', () => {
    const counts = claimsAfter(({ final }) => {
      final.claims.push(claim('c9', 'r1', 'rpc', 's3', 'u1'), claim('c10', 'r1', 'rpc', 's3', 'u1'));
    });
    assert.equal(counts.duplicated, 1);
  });

  test('count a claim of a request that no buyer made as unexpected', () => {
    const counts = claimsAfter(({ final }) => {
      final.claims.push(claim('c9', 'r9', 'rpc', 's3', 'u1'));
    });
    assert.equal(counts.unexpected, 1);
  });

  test('count an event that was never acknowledged and is there as recovered, and one that is gone as lost', () => {
    const history = goodHistory();
    history.final.events.push(stored('row4', 'e4', 'success'));
    history.events.push(event('e9', 'pay9', 'paid', 3));
    assert.deepEqual(countsOf(history).events, {
      attempted: 6,
      acknowledged: 5,
      ...SAME,
      recovered: 1,
      lost: 1,
    });
  });

  test('count a fact that took effect twice as duplicated', () => {
    const history = goodHistory();
    history.final.credits.push({
      provider: 'stripe',
      eventId: 'e2',
      userId: 'payer',
      amount: 10,
      currency: 'eur',
    });
    assert.equal(countsOf(history).events.duplicated, 1);
  });
});

describe('recovery', () => {
  test('is measured from the heal of each fault, by kind, and the drain from the end of the storm', () => {
    const { toFirstAck, neverRecovered, drainMs, byFault } = recoveryOf(goodHistory());
    assert.deepEqual(toFirstAck, { n: 2, p50: 100, p99: 250, max: 250 });
    assert.equal(neverRecovered, 0);
    assert.equal(drainMs, 1_500);
    assert.deepEqual(byFault.cut, { count: 1, toFirstAck: { n: 1, p50: 100, p99: 100, max: 100 } });
  });

  test('that never came is counted and not averaged away', () => {
    const history = goodHistory();
    history.faults[0] = { name: 'cut', target: 'x', startedAt: 1, healedAt: 2, recoveredAt: null };
    history.drainedAt = null;
    const { toFirstAck, neverRecovered, drainMs } = recoveryOf(history);
    assert.deepEqual([toFirstAck?.n, neverRecovered, drainMs], [1, 1, null]);
  });

  test('to half the throughput ends when the acknowledgements come as fast as half of before', () => {
    const history = goodHistory();
    const at = (ms: number, index: number) => ({
      ...call,
      requestId: `${ms} ${index}`,
      endedAt: ms,
      answer: 'sold_out' as const,
      told: [],
    });
    // Ten a second before the storm, one a second after the fault, ten again from 31 s on.
    const steady = (from: number, to: number, gapMs: number) =>
      Array.from({ length: Math.floor((to - from) / gapMs) }, (_, index) => at(from + index * gapMs, index));
    history.claims = [
      ...steady(0, 10_000, 100),
      ...steady(22_500, 31_000, 1_000),
      ...steady(31_000, 40_000, 100),
    ];
    history.events = [];
    history.callEvents = [];
    history.operatorActions = [];
    history.faults = [{ name: 'cut', target: 'x', startedAt: 20_000, healedAt: 22_000, recoveredAt: 22_500 }];
    const { toHalfThroughput } = recoveryOf(history);
    assert.ok(toHalfThroughput && toHalfThroughput.max >= 8_000 && toHalfThroughput.max <= 9_000);
  });
});

describe('figures', () => {
  test('a spread of nothing is nothing, and p99 of few is the largest', () => {
    assert.equal(spreadOf([]), null);
    assert.deepEqual(spreadOf([3, 1, 2]), { n: 3, p50: 2, p99: 3, max: 3 });
    assert.deepEqual(spreadOf(Array.from({ length: 200 }, (_, index) => index + 1)), {
      n: 200,
      p50: 100,
      p99: 198,
      max: 200,
    });
  });

  test('every acknowledgement is in the throughput, once, and nothing without an answer is', () => {
    const history = goodHistory();
    const total = throughput(history, 100).reduce((sum, count) => sum + count, 0);
    assert.equal(total, acknowledgements(history).length);
    // 7 claims with an answer, 4 events, 1 call, 1 operator action.
    assert.equal(total, 13);
  });
});

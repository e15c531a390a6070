import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BridgeWorkerPorts, bridgeWorkerRoute } from '#core/edge/bridge_worker.ts';

const GUARD_MS = 50_000;
const REQUEST = {
  ...{ method: 'POST', path: '/bridge-worker', headers: {}, body: new Uint8Array(), requestId: 'r1' },
};

test('after 50 s the bridge worker takes nothing more and answers what it has done', async (t) => {
  const guard = new AbortController();
  const asked: number[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    asked.push(ms);
    return ms === GUARD_MS ? guard.signal : new AbortController().signal;
  });
  const signals: AbortSignal[] = [];
  let takes = 0;
  const none = async () => 0;
  const ports = {
    authorize: () => 'service_role',
    ends: { expire: none, take: async () => [], voidTickets: async () => new Map(), finish: none },
    // The time runs out while orders are carried.
    orders: () => [
      {
        drain: async (signal: AbortSignal) => {
          assert.equal(signal.aborted, false);
          guard.abort();
          signals.push(signal);
          return { total: 0 };
        },
      },
    ],
    inbox: () => ({
      drain: async (signal: AbortSignal) => {
        signals.push(signal);
        return { outcomes: {} };
      },
    }),
    copyDoors: async () => undefined,
    intake: {
      lanes: async () => [],
      take: async () => {
        takes++;
        return [];
      },
      takeSuspect: async () => [],
    },
    log: { debugEnabled: false, debug: none, info: none, warn: none, error: none },
    metrics: { count: none, observe: none },
    now: Date.now,
    random: Math.random,
  } as unknown as BridgeWorkerPorts;

  const answer = await bridgeWorkerRoute('/bridge-worker', ports).handle(REQUEST, '');

  assert.ok(asked.includes(GUARD_MS), `${asked.join(', ')} ms were asked for`);
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, true],
  );
  assert.equal(takes, 0);
  assert.equal(answer.status, 200);
  assert.deepEqual(JSON.parse(String(answer.body)), { status: 'idle', processed: 0, dlq: 0, total: 0 });
});

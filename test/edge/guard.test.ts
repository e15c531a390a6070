// What one call of the bridge worker does in its time: all kinds of work side by side, so that none waits for another.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallFunction } from '#core/call_function.ts';
import { type BridgeWorkerPorts, bridgeWorkerRoute } from '#core/edge/bridge_worker.ts';
import { createHandler } from '#core/edge/handler.ts';
import { RpcError } from '#core/edge/rpc.ts';
import { SQLSTATE } from '#core/failure.ts';
import { type CheckoutRow, Closer } from '#core/orders/closer.ts';
import { Courier } from '#core/orders/courier.ts';
import { oneCell, PaymentError, type Payments } from '#core/orders/ports.ts';
import { NO_METRICS } from '#core/ports.ts';

const GUARD_MS = 50_000;
/** Of the event loop: many more than any of this takes. */
const TURNS = 1_000;
const IDLE = { status: 'idle', processed: 0, dlq: 0, total: 0 };
const SESSION: CheckoutRow = {
  ...{ order_id: 'o1', n: 1, tenant: 'stripe', livemode: true, idempotency_key: 'k', params: {}, url: null },
  ...{ session_id: 'cs_1', state: 'open', lease_token: 't', attempts: 1, created_at: '2026-01-01T00:00:00Z' },
};

const none = async () => 0;
const silent = () => undefined;
const log = { debugEnabled: false, debug: silent, info: silent, warn: silent, error: silent };

/** Nothing is due; `asked` hears what is looked for. */
function portsWith(asked: (what: string) => void, more: Partial<BridgeWorkerPorts>): BridgeWorkerPorts {
  const ports = {
    authorize: () => 'service_role',
    ends: { expire: none, take: async () => [], voidTickets: async () => new Map(), finish: none, log },
    orders: () => [],
    inbox: () => ({
      drain: async () => {
        asked('inbox');
        return { outcomes: {} };
      },
    }),
    copyDoors: async () => asked('doors'),
    intake: {
      lanes: async () => {
        asked('queue');
        return [];
      },
      take: async () => [],
      takeSuspect: async () => [],
    },
    log,
    metrics: NO_METRICS,
    now: Date.now,
    random: Math.random,
    ...more,
  };
  return ports as unknown as BridgeWorkerPorts;
}

const call = (ports: BridgeWorkerPorts): Promise<Response> =>
  createHandler(
    [bridgeWorkerRoute('/bridge-worker', ports)],
    log,
  )(new Request('http://functions/bridge-worker', { method: 'POST' }));

test('after 50 s the bridge worker takes nothing more and answers what it has done', async (t) => {
  const guard = new AbortController();
  const asked: number[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    asked.push(ms);
    return ms === GUARD_MS ? guard.signal : new AbortController().signal;
  });
  const looks: string[] = [];
  // The time runs out while orders are carried.
  const lane = {
    async drain(signal: AbortSignal) {
      await new Promise(setImmediate);
      assert.equal(signal.aborted, false);
      guard.abort();
      assert.equal(signal.aborted, true);
      looks.length = 0;
      return { total: 1, outcomes: {}, pausedUntilMs: 0 };
    },
  };
  const answer = await call(portsWith((what) => looks.push(what), { orders: () => [lane] }));

  assert.ok(asked.includes(GUARD_MS), `${asked.join(', ')} ms were asked for`);
  assert.deepEqual(looks, [], 'what was paid for is left to the next call');
  assert.deepEqual([answer.status, await answer.json()], [200, IDLE]);
});

test('while Stripe hangs the bridge worker carries all else: payments, sessions to find, the queue, the inbox', async () => {
  const asked = new Set<string>();
  const tell = (what: string) => void asked.add(what);
  const db = (async (name: string, args: Record<string, unknown>) => {
    if (name !== 'take_closing') {
      if (name === 'outbox_take') tell(name);
      return [];
    }
    if (args.p_lost) tell('take_closing lost');
    return args.p_lost || asked.has('expireSession') ? [] : [SESSION];
  }) as CallFunction;
  let hangUp: () => void = silent;
  const hangs = new Promise<never>((_, reject) => {
    hangUp = () => reject(new PaymentError('outage', 'it hung'));
  });
  const stripe: Partial<Payments> = {
    expireSession: () => {
      tell('expireSession');
      return hangs;
    },
  };
  const shared = { metrics: NO_METRICS, log, now: Date.now };
  const answering = call(
    portsWith(tell, {
      orders: () => [
        new Closer({ ...shared, db1: db, db2: db, paymentsOf: async () => stripe as Payments }),
        new Courier({ ...shared, db2: db, cells: oneCell(db) }),
      ],
    }),
  );
  // Nothing here waits for a clock or a socket.
  for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
  const whileItHung = [...asked].sort();
  hangUp();
  assert.deepEqual(
    whileItHung.join(', '),
    'doors, expireSession, inbox, outbox_take, queue, take_closing lost',
  );
  assert.equal((await answering).status, 200);
});

test('a kind of work that fails stops no other; of what this database does alone the caller is told', async () => {
  const lost = new RpcError('gone', SQLSTATE.noConnection);
  const asked: string[] = [];
  const warned: unknown[] = [];
  const warn = (_: string, fields?: Readonly<Record<string, unknown>>) => warned.push(fields?.part);
  const fail = () => Promise.reject(lost);
  const ends = { expire: fail, take: fail, voidTickets: async () => new Map(), finish: none, log };
  const lane = { drain: fail };
  const more = { log: { ...log, warn }, orders: () => [lane] };
  const answer = await call(portsWith((what) => asked.push(what), { ...more, ends }));
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
  assert.deepEqual(new Set(asked), new Set(['queue', 'inbox', 'doors']));
  assert.deepEqual(warned.slice(0, 3).sort(), ['ends', 'holds', 'orders']);

  const quiet = await call(portsWith(silent, more));
  assert.deepEqual([quiet.status, await quiet.json()], [200, IDLE], 'orders wait for DB2 at each request');
});

test('what one kind of work leaves for the next is carried by the same call', async () => {
  const asked: string[] = [];
  let pulled = 1;
  const lane = (name: string) => ({
    drain: async () => {
      asked.push(name);
      const total = name === 'closer' ? pulled-- : 0;
      // The others have looked before it is done.
      await new Promise(setImmediate);
      return { total, outcomes: {}, pausedUntilMs: 0 };
    },
  });
  await call(portsWith((what) => asked.push(what), { orders: () => ['closer', 'courier'].map(lane) }));
  assert.equal(asked.filter((name) => name === 'closer').length, 1);
  assert.equal(asked.filter((name) => name === 'courier').length, 2);
  assert.ok(asked.lastIndexOf('queue') > asked.lastIndexOf('courier'), asked.join());
});

// What the bridge does on real databases, whatever runtime carries it: the same cases run on Node over Postgres
// (test/bridge/conformance.test.ts) and on Deno over PostgREST (bridge.test.ts beside this file).

import { Bridge } from '../_shared/bridge/bridge.ts';
import type { Hook, Intake, Payload, TakenMessage } from '../_shared/bridge/ports.ts';
import { createIntake, createLedger } from '../_shared/bridge/store.ts';
import type { CallFunction } from '../_shared/call_function.ts';
import { NO_METRICS } from '../_shared/ports.ts';

export interface Asked {
  readonly path: string;
  readonly key: string | null;
  readonly claimId: string | null;
  readonly body: Record<string, unknown>;
}

/** What a runtime brings: its ways to both databases, its hook caller, and a web server for the other end. */
export interface World {
  readonly db1: CallFunction;
  readonly db2: CallFunction;
  readonly hook: Hook;
  makePool(slots: number, config?: Record<string, unknown>): Promise<string>;
  statusOf(slotId: string): Promise<string | undefined>;
  ticketsOf(poolId: string): Promise<{ resource_id: string; user_id: string }[]>;
  /** Changes the owner's list of hosts; left out where none but the owner's own connection can, and 127.0.0.1 is on it. */
  allowHost?(host: string, isAllowed: boolean): Promise<void>;
  /** Answers each request with the status that `answer` gives, for as long as `during` takes. */
  serve(answer: (asked: Asked) => number, during: (url: string) => Promise<void>): Promise<void>;
}

export interface Case {
  readonly name: string;
  run(world: World): Promise<void>;
}

const LEASE_SEC = 30;
const PATIENCE_MS = 10_000;
const neverAborted = new AbortController().signal;
const silent = () => undefined;
const log = { debugEnabled: false, debug: silent, info: silent, warn: silent, error: silent };

const unreachable: CallFunction = () =>
  Promise.reject(Object.assign(new Error('connection refused'), { code: '08006' }));

function bridgeOf(world: World, ledger: CallFunction = world.db2): Bridge {
  return new Bridge(
    {
      intake: createIntake(world.db1),
      ledger: () => createLedger(ledger),
      hook: world.hook,
      log,
      metrics: NO_METRICS,
      now: Date.now,
      random: Math.random,
    },
    { batchSize: 100, leaseSec: LEASE_SEC },
  );
}

const step = async (world: World, ledger?: CallFunction): Promise<Readonly<Record<string, number>>> =>
  (await bridgeOf(world, ledger).step(neverAborted)).outcomes;

/** Steps until this many deliveries have ended; what waits for its next attempt comes back within a second. */
async function stepsUntil(
  deliveries: number,
  world: World,
  ledger?: CallFunction,
): Promise<Record<string, number>> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  const sums: Record<string, number> = {};
  for (let ended = 0; ended < deliveries; ) {
    if (Date.now() > deadlineMs) throw new Error(`only ${ended} of ${deliveries} came back to the queue`);
    for (const [outcome, count] of Object.entries(await step(world, ledger))) {
      sums[outcome] = (sums[outcome] ?? 0) + count;
      ended += count;
    }
  }
  return sums;
}

/** As a worker that dies with what it took: under leases of one second. */
async function takeAll(intake: Intake): Promise<TakenMessage[]> {
  const lanes = new Set((await intake.lanes()).map(({ lane }) => lane));
  return intake.take(
    [...lanes].map((lane) => ({ lane, wanted: 100 })),
    1,
  );
}

/** Nothing that others have left on the queue may be counted as ours. */
async function drain(world: World): Promise<void> {
  const bridge = bridgeOf(world);
  while ((await bridge.step(neverAborted)).total > 0);
}

async function claim(world: World, poolId: string, userId: string): Promise<string> {
  const [row] = await world.db1<{ claim_resource_and_queue: string }>('claim_resource_and_queue', {
    p_pool_id: poolId,
    p_user_id: userId,
  });
  if (row === undefined) throw new Error('a claim has no answer');
  return row.claim_resource_and_queue;
}

const send = (world: World, payload: unknown) => world.db1('intake_queue_send', { p_payload: payload });

async function reasonsOf(world: World, poolId: string): Promise<string[]> {
  const letters = await world.db1<{ reason: string }>('list_dead_letters', { p_pool_id: poolId });
  return letters.map(({ reason }) => reason);
}

function equal(actual: unknown, expected: unknown): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${left} is not ${right}`);
}

export const cases: readonly Case[] = [
  {
    name: 'a claim becomes a ticket and its slot is CONSUMED',
    async run(world) {
      const poolId = await world.makePool(1);
      const slotId = await claim(world, poolId, 'ann');
      equal(await step(world), { committed: 1 });
      equal(await world.ticketsOf(poolId), [{ resource_id: slotId, user_id: 'ann' }]);
      equal(await world.statusOf(slotId), 'CONSUMED');
      equal(await step(world), {});
    },
  },
  {
    name: 'one poison among 99 good is one dead letter and 99 tickets, in one step',
    async run(world) {
      const poolId = await world.makePool(99);
      for (let user = 1; user <= 99; user++) await claim(world, poolId, `user ${user}`);
      await send(world, { pool_id: poolId, resource_id: 'no uuid', user_id: 'eve' });
      equal(await step(world), { committed: 99, dead_letter: 1 });
      equal((await world.ticketsOf(poolId)).length, 99);
      equal(await reasonsOf(world, poolId), ['malformed: resource_id']);
    },
  },
  {
    name: 'a message put on the queue by hand is carried once, and again changes nothing',
    async run(world) {
      const poolId = await world.makePool(0);
      const slotId = crypto.randomUUID();
      const payload = { pool_id: poolId, resource_id: slotId, user_id: 'ann', state: 'queued' };
      await send(world, payload);
      await send(world, payload);
      await drain(world);
      equal(await world.ticketsOf(poolId), [{ resource_id: slotId, user_id: 'ann' }]);
    },
  },
  {
    name: 'another claim on a slot with a ticket is a dead letter, and the ticket stays whose it was',
    async run(world) {
      const poolId = await world.makePool(0);
      const slotId = crypto.randomUUID();
      for (const user_id of ['ann', 'bob'])
        await send(world, { pool_id: poolId, resource_id: slotId, user_id });
      equal(await step(world), { committed: 1, dead_letter: 1 });
      equal(await reasonsOf(world, poolId), ['ticket_conflict']);
      equal(await world.ticketsOf(poolId), [{ resource_id: slotId, user_id: 'ann' }]);
    },
  },
  {
    name: 'a message of an unknown pool is a dead letter with that reason',
    async run(world) {
      const poolId = `nowhere_${crypto.randomUUID()}`;
      await send(world, { pool_id: poolId, resource_id: crypto.randomUUID(), user_id: 'ann' });
      equal(await step(world), { dead_letter: 1 });
      equal(await reasonsOf(world, poolId), ['unknown_pool']);
    },
  },
  {
    name: 'a worker that comes late finishes nothing',
    async run(world) {
      const poolId = await world.makePool(1, { visibility_timeout_sec: 1 });
      const slotId = await claim(world, poolId, 'ann');
      const intake = createIntake(world.db1);
      const [late] = (await takeAll(intake)) as [TakenMessage];
      equal(await stepsUntil(1, world), { committed: 1 });
      const verdict = { verdict: 'dead_letter', reason: 'too late', delay_ms: 0 } as const;
      const became = await intake.finish([{ msg_id: late.msg_id, read_ct: late.read_ct, ...verdict }]);
      equal([...became.values()], ['lost_lease']);
      equal(await world.statusOf(slotId), 'CONSUMED');
      equal(await reasonsOf(world, poolId), []);
    },
  },
  {
    name: 'while the ledger cannot be reached nothing is counted, and afterwards everything drains',
    async run(world) {
      const poolId = await world.makePool(2, { max_retries: 2 });
      for (const user of ['ann', 'bob']) await claim(world, poolId, user);
      equal(await stepsUntil(6, world, unreachable), { outage: 6 });
      equal(await stepsUntil(2, world), { committed: 2 });
      equal(await reasonsOf(world, poolId), []);
    },
  },
  {
    name: 'a worker that dies after the ledger committed leaves a ticket, even if the message has no attempt left',
    async run(world) {
      const poolId = await world.makePool(2, { max_retries: 1, visibility_timeout_sec: 1 });
      const slotIds = [await claim(world, poolId, 'ann'), await claim(world, poolId, 'bob')];
      const taken = await takeAll(createIntake(world.db1));
      await createLedger(world.db2).finalizeBatch([taken[0]?.message as Payload]);
      equal(await stepsUntil(2, world), { committed: 1, dead_letter: 1 });
      equal(await Promise.all(slotIds.map(world.statusOf)), ['CONSUMED', 'RESERVED']);
      equal(await reasonsOf(world, poolId), ['max_retries']);
    },
  },
  {
    name: 'a refused validation ends the claim and puts its slot back on sale',
    run: (world) =>
      world.serve(
        () => 422,
        async (url) => {
          const poolId = await world.makePool(1, { validation_webhook_url: `${url}/validate` });
          const slotId = await claim(world, poolId, 'ann');
          equal(await step(world), { refused: 1 });
          equal(await world.statusOf(slotId), 'AVAILABLE');
          equal(await world.ticketsOf(poolId), []);
        },
      ),
  },
  {
    name: 'a validation that succeeded is not asked for again, and both hooks get the same key',
    async run(world) {
      const asked: Asked[] = [];
      let commits = 0;
      const answer = (request: Asked): number => {
        asked.push(request);
        return request.path === '/commit' && ++commits === 1 ? 500 : 204;
      };
      await world.serve(answer, async (url) => {
        const hooks = { validation_webhook_url: `${url}/validate`, commit_webhook_url: `${url}/commit` };
        const poolId = await world.makePool(1, hooks);
        const slotId = await claim(world, poolId, 'ann');
        equal(await step(world), { retry: 1 });
        equal(await stepsUntil(1, world), { committed: 1 });
        equal(
          asked.map(({ path }) => path),
          ['/validate', '/commit', '/commit'],
        );
        for (const { key, claimId, body } of asked)
          equal([key, claimId, body.resource_id], [slotId, body.claim_id, slotId]);
        equal(
          asked.map(({ body }) => body.state),
          ['queued', 'validated', 'validated'],
        );
        equal(await world.statusOf(slotId), 'CONSUMED');
        equal(await world.ticketsOf(poolId), []);
      });
    },
  },
  {
    name: 'a slot that is sold again has another key, the same at every try, also for the worker that takes over',
    async run(world) {
      const asked: Asked[] = [];
      const answers = [422, 500, 204];
      const answer = (request: Asked): number => asked.push(request) && (answers.shift() ?? 204);
      await world.serve(answer, async (url) => {
        const rules = { validation_webhook_url: `${url}/validate`, visibility_timeout_sec: 1 };
        const poolId = await world.makePool(1, rules);
        const slotId = await claim(world, poolId, 'ann');
        equal(await step(world), { refused: 1 });
        equal(await claim(world, poolId, 'bob'), slotId);
        await takeAll(createIntake(world.db1));
        equal(await stepsUntil(2, world), { retry: 1, committed: 1 });
        const [ann, bob, again] = asked;
        equal([ann?.key, ann?.claimId], [slotId, ann?.body.claim_id]);
        equal([bob?.key, bob?.claimId], [`${slotId}:${bob?.body.claim_id}`, bob?.body.claim_id]);
        equal([again?.key, again?.body.claim_id, asked.length], [bob?.key, bob?.body.claim_id, 3]);
      });
    },
  },
  {
    name: 'a host that the owner no longer allows is not called any more',
    async run(world) {
      const { allowHost } = world;
      if (allowHost === undefined) return;
      const asked: Asked[] = [];
      const answer = (request: Asked): number => asked.push(request) && 204;
      await world.serve(answer, async (url) => {
        const poolId = await world.makePool(1, { commit_webhook_url: `${url}/commit` });
        await claim(world, poolId, 'ann');
        await allowHost(new URL(url).host, false);
        const outcomes = await step(world);
        equal([outcomes.committed, asked.length], [undefined, 0]);
        await allowHost(new URL(url).host, true);
        equal(await stepsUntil(1, world), { committed: 1 });
        equal(asked.length, 1);
      });
    },
  },
];

/** Runs a case on a queue that is empty before and after, with loopback's hooks allowed by name. */
export async function run({ run: runCase }: Case, world: World): Promise<void> {
  await drain(world);
  await runCase({
    ...world,
    serve: (answer, during) =>
      world.serve(answer, async (url) => {
        const { host } = new URL(url);
        await world.allowHost?.(host, true);
        try {
          await during(url);
        } finally {
          await world.allowHost?.(host, false);
        }
      }),
  });
  await drain(world);
}

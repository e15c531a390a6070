// graphile-worker: a job a message.

import type { Payload } from '#core/bridge/ports.ts';
import { createLedger } from '#core/bridge/store.ts';
import type { Database } from '../../src/db/database.ts';
import { drainJobs, loadJobs, localQueue } from '../graphile_worker.ts';
import { connect, type Drained } from '../stopwatch.ts';
import type { World } from '../world.ts';
import { type Drain, endClaims, takeMessages, type Way } from './way.ts';

type Handler = (payload: Payload) => Promise<unknown>;

const queue: Pick<Way, 'schema' | 'endsClaims' | 'load'> = {
  schema: 'graphile_worker',
  endsClaims: false,
  load: async (world) => loadJobs(world.db1Url, await takeMessages(world)),
};

export const graphileWorker: Way = {
  ...queue,
  settings: ({ clients }) => settings(clients, `${clients} connections to the ledger, one insert a job`),
  run: (world, drain) =>
    drainInto(
      world,
      drain,
      drain.clients,
      (ledger) => (payload) => ledger.call('public.finalize_transaction', { p_payload: payload }),
    ),
};

/** Its handlers see one job each; those that run at the same time are gathered into one call. */
export const graphileWorkerBatch: Way = {
  ...queue,
  settings: ({ clients }) => settings(clients, 'handlers gather into one finalize_batch at a time'),
  run: (world, drain) => drainInto(world, drain, 1, gatherInto),
};

/** With the same outcome as the bridge: one more statement for what was gathered ends the claims and slots. */
export const graphileWorkerBatchClaims: Way = {
  ...queue,
  endsClaims: true,
  settings: ({ clients }) =>
    settings(
      clients,
      'handlers gather into one finalize_batch at a time, which ends claims and slots after it',
    ),
  async run(world, drain) {
    // The claims of one call end while the next one is under way.
    const db1 = await connect(world.db1Url, 2);
    try {
      return await drainInto(world, drain, 1, (ledger) =>
        gatherInto(ledger, (payloads) => endClaims(db1, payloads)),
      );
    } finally {
      await db1.end();
    }
  },
};

function settings(clients: number, handler: string): string {
  return `concurrentJobs ${clients}, localQueue ${localQueue(clients)}, completeJobBatchDelay 0; ${handler}`;
}

async function drainInto(
  world: World,
  { clients, messages }: Drain,
  connections: number,
  createHandler: (ledger: Database) => Handler,
): Promise<Drained> {
  const ledger = await connect(world.db2Url, connections);
  const handler = createHandler(ledger);
  try {
    return await drainJobs({
      ...{ url: world.db1Url, session: world.db1, clients, jobs: messages },
      handle: (payload) => handler(payload as Payload),
    });
  } finally {
    await ledger.end();
  }
}

function gatherInto(
  database: Database,
  endThem: (payloads: Payload[]) => Promise<void> = async () => undefined,
): Handler {
  const ledger = createLedger((functionName, args) => database.call(`public.${functionName}`, args));
  let waiting: Payload[] = [];
  let next: Promise<unknown> | undefined;
  let current: Promise<unknown> = Promise.resolve();
  return (payload) => {
    waiting.push(payload);
    // The first to arrive starts the next call as soon as the one under way has returned.
    next ??= current.then(() => {
      const batch = waiting;
      waiting = [];
      next = undefined;
      const committed = ledger.finalizeBatch(batch);
      current = committed;
      return committed.then(() => endThem(batch));
    });
    return next;
  };
}

// The bridge itself, as `sluice work` runs it: loops side by side in one process.

import { Bridge } from '#core/bridge/bridge.ts';
import type { BridgePorts } from '#core/bridge/ports.ts';
import { createIntake, createLedger } from '#core/bridge/store.ts';
import type { CallFunction } from '#core/call_function.ts';
import { NO_METRICS } from '#core/ports.ts';
import type { Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { connect, type Drained, runLoops, Stopwatch } from '../stopwatch.ts';
import type { World } from '../world.ts';
import type { Drain, Way } from './way.ts';

const LEASE_SEC = 45;

export const bridge: Way = {
  schema: 'pgmq',
  endsClaims: true,
  settings: ({ clients }) => `${clients} loop${clients === 1 ? '' : 's'} in one process`,
  run: drainByBridge,
};

async function drainByBridge(world: World, { clients, batch }: Drain): Promise<Drained> {
  const db1 = await connect(world.db1Url, clients);
  const db2 = await connect(world.db2Url, clients);
  const ports = createPorts(db1, db2);
  const { signal } = new AbortController();
  const watch = new Stopwatch();
  const createWork = (): (() => Promise<number>) => {
    const one = new Bridge(ports, { batchSize: batch, leaseSec: LEASE_SEC });
    return async () => {
      const { total, outcomes } = await one.step(signal);
      if (total !== (outcomes.committed ?? 0))
        throw new Error(`not all were committed: ${JSON.stringify(outcomes)}`);
      return total;
    };
  };
  try {
    await runLoops(clients, watch, createWork);
  } finally {
    await Promise.all([db1.end(), db2.end()]);
  }
  return watch.read();
}

function createPorts(db1: Database, db2: Database): BridgePorts {
  const on =
    (database: Database): CallFunction =>
    (functionName, args) =>
      database.call(`public.${functionName}`, args);
  const ledger = createLedger(on(db2));
  return {
    intake: createIntake(on(db1)),
    ledger: () => ledger,
    hook: { post: () => Promise.reject(new Error('the bench has no webhooks')) },
    log: createLog('warn'),
    metrics: NO_METRICS,
    now: Date.now,
    random: Math.random,
  };
}

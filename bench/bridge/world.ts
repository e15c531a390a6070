// On DB1 the other systems' queues stand beside ours.

import { setTimeout as sleep } from 'node:timers/promises';
import { installGraphileWorker } from '../graphile_worker.ts';
import { openWorld, settle, sql, type World } from '../world.ts';
import { installPgBoss } from './pg_boss.ts';

export type BridgeWorld = World & {
  /** Fresh claims with their messages, an empty ledger, clean tables, a checkpoint. */
  fill(messages: number, load: () => Promise<void>): Promise<void>;
  /** Returns when all connections but our own have ended: a session tells its last statistics when it ends. */
  quiet(): Promise<void>;
};

const QUIET_POLL_MS = 10;
const OTHER_SESSIONS = `
  select count(*)::int from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;

export async function createWorld(): Promise<BridgeWorld> {
  const world = await openWorld({}, async ({ db1, db1Url }) => {
    await installGraphileWorker(db1Url);
    await installPgBoss(db1Url);
    for (const file of ['baseline.sql', 'claims.sql', 'bridge.sql']) await db1.run(sql(file));
  });
  const { db1, db2 } = world;
  return {
    ...world,
    async fill(messages, load) {
      await db1.rows('bench.fill_messages', { p_messages: messages });
      await db2.run('truncate public.confirmed_tickets');
      await load();
      await Promise.all([settle(db1), settle(db2)]);
      // What this session tells late would count as the drain's.
      await db1.run('select pg_stat_force_next_flush()');
    },
    async quiet() {
      while ((await db1.ask<number>(OTHER_SESSIONS)) > 0) await sleep(QUIET_POLL_MS);
    },
  };
}

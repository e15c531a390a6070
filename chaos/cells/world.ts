// A cell for the intake, a cell for the ledger, a server and a worker on them, and clients.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withClient } from '../../src/migrate/sql.ts';
import { LOOPBACK } from '../../src/stack/ports.ts';
import { addSites, SECRETS as CALL_SECRETS } from '../../test/calls/support.ts';
import { ADMIN_KEY, JWT_SECRET, putOnSale } from '../../test/server/support.ts';
import { cleanUpOnExit } from '../../test/support/databases.ts';
import { addEndpoint, SECRETS as WEBHOOK_SECRETS } from '../../test/webhook/world.ts';
import { Process, SERVER_READY, WORKER_READY } from '../process.ts';
import { Cell } from './cell.ts';
import { CLAIM_POOL, EVENT_ENDPOINT, Load } from './load.ts';

/** So few that bringing them back after a failover costs little, and enough for a round. */
const SLOTS = 50_000;
const CLIENTS = { claim: 4, event: 2, call: 2 };
/** A worker that a failover cut off gives its messages back soon. */
export const LEASE_SEC = 10;

export interface CellWorld {
  readonly cells: Readonly<Record<'db1' | 'db2', Cell>>;
  readonly load: Load;
  /** What processes did without being told to. */
  readonly surprises: readonly string[];
  stop(): Promise<void>;
}

export async function startCellWorld(run: string, seed: number): Promise<CellWorld> {
  const ends: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const attempts = await Promise.allSettled((['db1', 'db2'] as const).map((side) => Cell.start({ side })));
    for (const attempt of attempts)
      if (attempt.status === 'fulfilled') ends.push(() => attempt.value.remove());
    const [db1, db2] = attempts.map((attempt) => {
      if (attempt.status === 'rejected') throw attempt.reason;
      return attempt.value;
    }) as [Cell, Cell];
    await withClient(db1.url, (client) => putOnSale(client, CLAIM_POOL, SLOTS));
    await withClient(db2.url, async (client) => {
      await addEndpoint(client, EVENT_ENDPOINT, 'stripe', 'queued', {
        lease_sec: LEASE_SEC,
        backoff_cap_sec: LEASE_SEC,
      });
      await addSites(client);
    });
    const surprises: string[] = [];
    const server = await startProcesses({ DB1_URL: db1.url, DB2_URL: db2.url }, surprises, ends);
    const load = new Load({ port: () => server.port, clients: CLIENTS, run, seed });
    ends.push(() => load.stop());
    return { cells: { db1, db2 }, load, surprises, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A server and a worker on the databases that `places` names. */
export async function startProcesses(
  places: Readonly<Record<string, string>>,
  surprises: string[],
  ends: (() => unknown)[],
): Promise<Process> {
  const logDir = mkdtempSync(join(tmpdir(), 'sluice-cells-log-'));
  const env = {
    ...places,
    SLUICE_ADMIN_KEY: ADMIN_KEY,
    SLUICE_JWT_SECRET: JWT_SECRET,
    SLUICE_LOG: 'info',
    ...WEBHOOK_SECRETS,
    ...CALL_SECRETS,
  };
  const onFault = (what: string) => surprises.push(what);
  const server = new Process({
    name: 'server',
    args: ['serve'],
    env: { ...env, SLUICE_PORT: '0', SLUICE_HOST: LOOPBACK },
    ready: SERVER_READY,
    logDir,
    onFault,
  });
  const worker = new Process({
    name: 'worker',
    args: ['work', '--lease', String(LEASE_SEC)],
    env,
    ready: WORKER_READY,
    logDir,
    onFault,
  });
  const forget = cleanUpOnExit(() => {
    for (const one of [server, worker]) one.killNow();
    rmSync(logDir, { recursive: true, force: true });
  });
  ends.push(async () => {
    await Promise.all([server.stop(), worker.stop()]);
    rmSync(logDir, { recursive: true, force: true });
    forget();
  });
  await Promise.all([server.start(), worker.start()]);
  return server;
}

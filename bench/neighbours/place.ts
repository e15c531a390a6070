// The product as it is deployed: two Postgres servers, `sluice serve` and `sluice work` as processes, of this checkout or of
// another.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { Process, SERVER_READY, WORKER_READY } from '../../chaos/process.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { cleanUpOnExit } from '../../test/support/databases.ts';
import { Forked } from '../forked.ts';
import { commit } from '../provenance.ts';
import { KEYS } from '../servers.ts';
import { openWorld } from '../world.ts';
import { HEALTHY, HEALTHY_ENV, type HealthyOrder, type HealthyReport } from './healthy.ts';
import { addPool, HOSTILE_ENV, type Neighbour, type Place } from './neighbour.ts';

const SHORT_COMMIT = 7;
const CLIENT = fileURLToPath(new URL('./healthy_client.ts', import.meta.url));

/** What is measured: this checkout, or the one it is compared with. */
export type Version = { name: string; root: string };

export const THIS: Version = { name: 'this', root: PROJECT_ROOT };

export function versionsOf(against: string | undefined): Version[] {
  if (against === undefined) return [THIS];
  const name = commit(against);
  return [
    THIS,
    { name: /^[0-9a-f]{40}/.test(name) ? name.slice(0, SHORT_COMMIT) : basename(against), root: against },
  ];
}

export type OpenPlace = Omit<Product, 'end'> & {
  /** `kind` is the healthy one's where it is left out. */
  measure(
    order: Omit<HealthyOrder, 'kind' | 'port' | 'db2Url'> & Partial<HealthyOrder>,
  ): Promise<HealthyReport>;
};

/** Two fresh databases with `serve` and `work` beside them. */
export type Product = Place & { server: Process; worker: Process; end(): Promise<void> };

/** `settings` are of Postgres; `processes` how many the server and the worker have each. */
export type Deployment = { settings?: Record<string, string>; processes?: number };

/** Made ready by `prepare` before the processes start; nothing keeps running where that fails. */
export async function openProduct(
  version: Version,
  prepare: (place: Place) => Promise<unknown>,
  { settings = {}, processes: count = 1 }: Deployment = {},
): Promise<Product> {
  const logDir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const world = await openWorld(settings, async () => undefined, version.root);
  const opened: pg.Client[] = [];
  const processes: Process[] = [];
  const forget = cleanUpOnExit(() => {
    for (const one of processes) one.killNow();
  });
  const end = async (): Promise<void> => {
    // Killed, not stopped: what the hostile one left is not worth waiting for.
    await Promise.all(processes.map((one) => one.kill()));
    forget();
    await Promise.allSettled(opened.map((client) => client.end()));
    await world.stop();
    rmSync(logDir, { recursive: true });
  };
  try {
    const connect = async (side: 'db1' | 'db2'): Promise<pg.Client> => {
      const client = new pg.Client({ connectionString: side === 'db1' ? world.db1Url : world.db2Url });
      opened.push(client);
      await client.connect();
      return client;
    };
    const place: Place = { ...world, port: 0, adminKey: KEYS.adminKey, connect };
    await prepare(place);
    const several = count > 1 ? ['--processes', String(count)] : [];
    const server = startProcess(version, place, ['serve', ...several], SERVER_READY, logDir);
    const worker = startProcess(version, place, ['work', ...several], WORKER_READY, logDir);
    processes.push(server, worker);
    await Promise.all([server.start(), worker.start()]);
    return { ...place, port: server.port, server, worker, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** `slots` are what the healthy one can sell in all its measurements. */
export async function withPlace<T>(
  version: Version,
  { healthy, prepare }: Pick<Neighbour, 'healthy' | 'prepare'>,
  slots: number,
  use: (place: OpenPlace) => Promise<T>,
): Promise<T> {
  const product = await openProduct(version, async (place) => {
    await addPool(place, HEALTHY, slots);
    await place.db2.value('webhook.add_endpoint', {
      p_name: HEALTHY,
      p_provider: 'stripe',
      p_secret_names: Object.keys(HEALTHY_ENV),
      p_actor: 'bench',
    });
    await prepare(place);
  });
  try {
    const client = new Forked(CLIENT);
    const measure: OpenPlace['measure'] = (order) =>
      client.ask({ kind: healthy, ...order, port: product.port, db2Url: product.db2Url });
    try {
      return await use({ ...product, measure });
    } finally {
      client.tell('end');
      await client.end();
    }
  } finally {
    await product.end();
  }
}

function startProcess(
  version: Version,
  { db1Url, db2Url }: Place,
  args: string[],
  ready: RegExp,
  logDir: string,
): Process {
  return new Process({
    name: `${args[0]} of ${version.name}`,
    program: join(version.root, 'bin', 'sluice.js'),
    args,
    env: {
      DB1_URL: db1Url,
      DB2_URL: db2Url,
      SLUICE_PORT: '0',
      SLUICE_HOST: '127.0.0.1',
      SLUICE_ADMIN_KEY: KEYS.adminKey,
      SLUICE_JWT_SECRET: KEYS.jwtSecret,
      ...HEALTHY_ENV,
      ...HOSTILE_ENV,
    },
    ready,
    logDir,
    // The healthy one's requests show what that costs.
    onFault: (what) => process.stderr.write(`${what}\n`),
  });
}

// The table's place on Node: a real `sluice serve` on two real databases. Its Redis is down, so every row also shows that the
// call-event door goes on without one.

import { ADMIN_KEY, ask, JWT_SECRET, openClient, token } from '../server/support.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../support/databases.ts';
import { furnish } from './furnish.ts';
import type { Place } from './place.ts';
import { SECRETS, type ServeProcess, startServeProcess } from './serve_process.ts';

const LONG_AGO_SEC = 1_700_000_000;
/** Nothing listens on the first port of a machine. */
const NO_REDIS = 'redis://127.0.0.1:1';

export interface NodePlace extends Place {
  readonly serve: ServeProcess;
  readonly databases: TestDatabases;
  stopDatabases(): Promise<void>;
  /** On their old data; their ports may be others then. */
  startDatabases(): Promise<void>;
  /** Resolves with the exit code of the server. */
  stop(): Promise<number | null>;
}

export async function startNodePlace(env: Record<string, string> = {}): Promise<NodePlace> {
  const databases = await startDatabases();
  let sides: TestDatabase[] = [databases.db1, databases.db2];
  const urls = (): [string, string] => [sides[0]?.url ?? '', sides[1]?.url ?? ''];
  const [db1Url, db2Url] = urls();
  const serve = await startServeProcess({ db1Url, db2Url }, { SLUICE_REDIS_URL: NO_REDIS, ...env });
  const clients = await Promise.all(urls().map(openClient));
  const [db1, db2] = clients;
  if (db1 === undefined || db2 === undefined) throw new Error('two databases were to be had');
  const things = await furnish(db1, db2, `${serve.url}/webhooks`);
  await Promise.all(clients.map((client) => client.end()));
  return {
    runtime: 'node',
    url: serve.url,
    operatorKey: ADMIN_KEY,
    otherTokens: [
      await token({ role: 'authenticated', sub: 'stranger' }),
      await token({ role: 'service_role', sub: 'stranger' }),
      await token({ role: 'authenticated', sub: 'stranger', exp: LONG_AGO_SEC }),
    ],
    secrets: SECRETS,
    hidden: [ADMIN_KEY, JWT_SECRET, ...Object.values(SECRETS), db1Url, db2Url],
    things,
    databaseUrls: urls,
    isAlive: async () => serve.isRunning() && (await ask(`${serve.url}/healthz`)).status === 200,
    logs: serve.output,
    serve,
    databases,
    async stopDatabases() {
      await Promise.all(sides.map((side) => side.stop('fast')));
    },
    async startDatabases() {
      sides = await Promise.all(sides.map((side) => side.restart()));
    },
    async stop() {
      const code = await serve.stop();
      await databases.stop();
      return code;
    },
  };
}

// The admin routes with a guard that lets everyone through, and the ports that they need.

import type { CallFunction } from '#core/call_function.ts';
import { type Route, Router } from '#core/router.ts';
import { LiveView } from '../../src/console/live.ts';
import { createDatabase } from '../../src/db/database.ts';
import { Fleet } from '../../src/fleet/fleet.ts';
import { adminRoutes } from '../../src/server/admin.ts';
import { HttpServer } from '../../src/server/http.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { memoryLog } from '../core/support.ts';
import { ADMIN_KEY } from '../server/support.ts';
import type { TestDatabases } from '../support/databases.ts';

export const unasked: CallFunction = () => Promise.reject(new Error('not asked'));

export function portsOf(db1: CallFunction, db2: CallFunction, webhook = db2, calls = db2, audit = db1) {
  const secrets = { faultOf: async () => undefined };
  const fleet = new Fleet([{ name: 'main', watch: db1, call: db1 }], memoryLog());
  const databases = { fleet, db1, db2, webhook, calls, audit, operators: db1 };
  return { ...databases, secrets, live: new LiveView(), now: Date.now, log: memoryLog() };
}

/** The same routes with a guard that lets every request through. */
class NoGuard extends OperatorAuth {
  override guard(routes: readonly Route[]): Route[] {
    const operator = { name: 'eve', role: 'admin' } as const;
    return routes.map((route) => ({
      ...route,
      handle: (request, parameter) => route.handle({ ...request, operator }, parameter),
    }));
  }
}

export async function openHouse(databases: TestDatabases): Promise<{ url: string; stop(): Promise<void> }> {
  const log = memoryLog();
  const open = (url: string) => createDatabase({ url, max: 1, applicationName: 'no-guard', log });
  const db1 = open(databases.db1.url);
  const db2 = open(databases.db2.url);
  const of =
    (db: typeof db1, schema: string): CallFunction =>
    (name, args) =>
      db.call(`${schema}.${name}`, args);
  const ports = portsOf(
    of(db1, 'public'),
    of(db2, 'public'),
    of(db2, 'webhook'),
    of(db2, 'calls'),
    of(db1, 'audit'),
  );
  const http = new HttpServer(new Router(adminRoutes(new NoGuard(ADMIN_KEY, Date.now), ports), log), log);
  const port = await http.listen(0, '127.0.0.1');
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await http.close();
      await Promise.all([db1.end(), db2.end()]);
    },
  };
}

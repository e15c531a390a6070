// /metrics, /healthz and /readyz for a process that has no other door: the workers.

import type { CallFunction } from '#core/call_function.ts';
import { healthRoutes } from '#core/health.ts';
import type { Log } from '#core/ports.ts';
import { Router } from '#core/router.ts';
import { createDatabase } from '../db/database.ts';
import { cellsOf, type FleetOptions } from '../fleet/addresses.ts';
import { findOperatorsCell } from '../fleet/operate.ts';
import type { CollectedMetrics } from '../metrics.ts';
import type { Member } from '../processes/member.ts';
import { AddressLimits } from './address_limits.ts';
import { createBacklog } from './backlog.ts';
import { HttpServer } from './http.ts';
import { createIntakeLevels } from './intake_levels.ts';
import { KnownOperators } from './known_operators.ts';
import { metricsRoute, ownPages } from './metrics_route.ts';
import { OperatorAuth } from './operator_auth.ts';
import { createOrderLevels } from './order_levels.ts';
import { checkIntake, checkLedger } from './ready.ts';
import { type ScrapeSettings, scrapeGuard } from './scrape_access.ts';
import { createVacuumLevels } from './vacuum_levels.ts';

export interface MetricsServerOptions extends ScrapeSettings, FleetOptions {
  /** 0 takes a free one. */
  port: number;
  db2Url: string;
  /** A client with it may read /metrics, as at the server. */
  adminKey?: string;
  metrics: CollectedMetrics;
  log: Log;
  /** Where the command has several processes. */
  member?: Member | undefined;
}

export interface MetricsServer {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { metrics, log } = options;
  const open = (url: string) => createDatabase({ url, max: 1, applicationName: 'sluice-metrics', log });
  const cells = cellsOf(options).map(({ name, url }) => {
    const db = open(url);
    return { name, end: () => db.end(), call: ((fn, args) => db.call(`public.${fn}`, args)) as CallFunction };
  });
  const operatorsCell = findOperatorsCell(cells);
  const callOperators: CallFunction = async (name, args) => (await operatorsCell()).call(name, args);
  const db2 = open(options.db2Url);
  const callLedger: CallFunction = (name, args) => db2.call(`public.${name}`, args);
  const endDatabases = () => Promise.all([...cells, db2].map((part) => part.end()));
  const health = healthRoutes({
    // One cell that answers is enough to have work.
    checkDatabases: async () => {
      await Promise.all([
        Promise.any(cells.map(({ call }) => checkIntake(call))).catch(firstReason),
        checkLedger(db2),
      ]);
      return undefined;
    },
    isDraining: () => http.isDraining,
  });
  const proxy = { trustedProxies: 0 };
  const { signIns } = new AddressLimits(
    { claims: false, deliveries: false },
    { proxy, metrics, log, counts: options.member },
  );
  const auth =
    options.adminKey === undefined
      ? undefined
      : new OperatorAuth(options.adminKey, Date.now, {
          wrongKeys: signIns,
          known: new KnownOperators(options.adminKey, Date.now, callOperators, log),
        });
  const page = metricsRoute(
    [
      ...ownPages([metrics], options.member),
      createIntakeLevels(cells, log),
      createBacklog((name, args) => db2.call(`webhook.${name}`, args), options.adminKey, log),
      createOrderLevels(callLedger, log),
      createVacuumLevels(cells, callLedger, log),
    ],
    scrapeGuard(options, auth && ((request) => auth.authorize(request, 'viewer'))),
  );
  const http = new HttpServer(new Router([page, ...health], log), log);
  try {
    const port = await http.listen(options.port);
    return {
      port,
      async stop() {
        await http.close();
        await endDatabases();
      },
    };
  } catch (error) {
    await endDatabases();
    throw error;
  }
}

function firstReason(error: unknown): never {
  throw error instanceof AggregateError ? error.errors[0] : error;
}

// /metrics and /healthz for a process that has no other door: the workers.

import { Door } from '#core/door.ts';
import { healthRoutes } from '#core/health.ts';
import type { Log } from '#core/ports.ts';
import { createDatabase } from '../db/database.ts';
import type { CollectedMetrics } from '../metrics.ts';
import { HttpServer } from './http.ts';
import { metricsRoute } from './metrics_route.ts';

export interface MetricsServerOptions {
  /** 0 takes a free one. */
  port: number;
  db2Url: string;
  metrics: CollectedMetrics;
  log: Log;
}

export interface MetricsServer {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { db2Url, metrics, log } = options;
  const db2 = createDatabase({ url: db2Url, max: 1, applicationName: 'sluice-metrics', log });
  const health = healthRoutes({
    checkDatabases: async () => {
      await db2.call('public.ledger_ready', {});
    },
    isDraining: () => http.isDraining,
  });
  const page = metricsRoute(metrics, (name, args) => db2.call(`webhook.${name}`, args), log);
  const http = new HttpServer(new Door([page, ...health], log), log);
  try {
    const port = await http.listen(options.port);
    return {
      port,
      async stop() {
        await http.close();
        await db2.end();
      },
    };
  } catch (error) {
    await db2.end();
    throw error;
  }
}

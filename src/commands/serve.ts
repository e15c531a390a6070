// `sluice serve`: the HTTP server against two databases that already run.

import { parseArgs } from 'node:util';
import { createLog } from '../log.ts';
import { startServer } from '../server/server.ts';
import { openTracing } from '../tracing/tracing.ts';
import { loadHandlers } from '../webhook/handlers.ts';
import type { Command } from './command.ts';

const DEFAULT_PORT = 4000;
const REQUIRED = ['DB1_URL', 'DB2_URL', 'SLUICE_ADMIN_KEY', 'SLUICE_JWT_SECRET'] as const;

const usage = `sluice serve

Starts the HTTP server against two databases that are already there (see: sluice migrate).
The secrets of webhook endpoints and call sites are read from the environment too, by the names that those give.

Environment:
  DB1_URL, DB2_URL     Postgres addresses of the intake and the ledger
  SLUICE_ADMIN_KEY     the operator's key
  SLUICE_JWT_SECRET    the project's JWT secret (HS256)
  SLUICE_JWKS_URL      the project's published keys (RS256, ES256); optional
  SLUICE_HANDLERS      a module with webhook handlers, for endpoints in inline mode; optional
  SLUICE_REDIS_URL     where servers share what they remember of call events; optional
  OTEL_EXPORTER_OTLP_ENDPOINT
                       a collector of traces (docs/observe.md); optional
  SLUICE_PORT          default ${DEFAULT_PORT}
  SLUICE_LOG           debug, info (default), warn, error or silent

Example:
  DB1_URL=postgres://… DB2_URL=postgres://… SLUICE_ADMIN_KEY=… SLUICE_JWT_SECRET=… sluice serve`;

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}

function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
}

async function run(args: string[]): Promise<number> {
  parseArgs({ args, options: {} });
  const { env } = process;
  const missing = REQUIRED.filter((name) => !env[name]);
  if (missing.length > 0) return fail(`Set ${missing.join(', ')}. See: sluice serve --help`);
  const wanted = env.SLUICE_PORT ?? String(DEFAULT_PORT);
  const port = Number(wanted);
  if (!/^[0-9]{1,5}$/.test(wanted) || port > 65_535)
    return fail(`SLUICE_PORT is "${wanted}"; it must be a port number.`);

  const handlers = await loadHandlers(env.SLUICE_HANDLERS);
  const tracing = await openTracing('sluice-serve', env, createLog());
  const stopSignal = nextSignal();
  let server: Awaited<ReturnType<typeof startServer>>;
  try {
    server = await startServer({
      port,
      db1Url: env.DB1_URL ?? '',
      db2Url: env.DB2_URL ?? '',
      adminKey: env.SLUICE_ADMIN_KEY ?? '',
      jwtSecret: env.SLUICE_JWT_SECRET ?? '',
      handlers,
      tracer: tracing.tracer,
      ...(env.SLUICE_REDIS_URL ? { redisUrl: env.SLUICE_REDIS_URL } : {}),
      ...(env.SLUICE_JWKS_URL ? { jwksUrl: env.SLUICE_JWKS_URL } : {}),
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return fail(`Port ${port} is taken. Stop what listens there, or set SLUICE_PORT to another port.`);
  }
  process.stdout.write(`Sluice listens on ${server.url}\n`);
  await stopSignal;
  await server.stop();
  await tracing.stop();
  return 0;
}

export const serve: Command = {
  summary: 'start the HTTP server against DB1_URL and DB2_URL',
  usage,
  run,
};

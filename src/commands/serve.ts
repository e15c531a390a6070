// `sluice serve`: the HTTP server against two databases that already run.

import type { Log } from '#core/ports.ts';
import { ACK_VARIABLE } from '../db/ack.ts';
import { POOLER_VARIABLES } from '../db/pooler.ts';
import { CELL_VARIABLES, readCells } from '../fleet/addresses.ts';
import { ALERT_VARIABLES, readAlertSettings } from '../issues/settings.ts';
import { createLog } from '../log.ts';
import { refuseEditedWhereSeen } from '../migrate/edited.ts';
import type { Member, StopOrder } from '../processes/member.ts';
import { join } from '../processes/part.ts';
import type { LimitSettings } from '../server/address_limits.ts';
import { DEFAULT_MAX_REQUESTS } from '../server/admission.ts';
import { BUYER_VARIABLES, readBuyerSettings } from '../server/buyer_settings.ts';
import { LIMIT_VARIABLES, readLimitSettings } from '../server/limit_settings.ts';
import { explainedListen } from '../server/listen_fault.ts';
import { readScrapeSettings, SCRAPE_VARIABLES } from '../server/scrape_access.ts';
import type { RunningServer, ServerOptions } from '../server/server.ts';
import { readServiceUrls } from '../server/service_urls.ts';
import { JWT, MIN_JWT_SECRET_CHARS } from '../server/tokens.ts';
import { onStopSignal } from '../stop_signal.ts';
import { readTicketSecrets, TICKET_VARIABLES } from '../tickets/secrets.ts';
import { openTracing } from '../tracing/tracing.ts';
import { loadHandlers } from '../webhook/handlers.ts';
import { SECRETS_FILE } from '../webhook/secret_source.ts';
import { action, type Values } from './grammar.ts';
import { ordersOf, PROCESSES_ABOUT, PROCESSES_OPTION } from './processes.ts';

const DEFAULT_PORT = 4000;
const REQUIRED = ['DB2_URL', 'SLUICE_ADMIN_KEY', 'SLUICE_JWT_SECRET'] as const;

/** What a guesser needs ages for, also where the characters are words. */
const MIN_KEY_CHARS = 16;
const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;

/** In a restart the others take new connections: a client that is at work sends its next request within this time, and is told to leave. */
const RESTART_REST_MS = 1_000;

const OPTIONS = { processes: PROCESSES_OPTION } as const;

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return 1;
}

function nextSignal(): Promise<StopOrder> {
  return new Promise((resolve) => {
    const forget = onStopSignal(['SIGINT', 'SIGTERM'], () => {
      // The next one ends the process at once.
      forget();
      resolve({ isRestart: false });
    });
  });
}

async function run({ processes }: Values<typeof OPTIONS>): Promise<number> {
  const member = await join();
  try {
    return await serve(processes, member);
  } finally {
    await member?.leave();
  }
}

async function serve(processes: number, member: Member | undefined): Promise<number> {
  const { env } = process;
  const cells = readCells(env);
  const [first] = cells;
  const missing = [...(first ? [] : ['DB1_URL']), ...REQUIRED.filter((name) => !env[name])];
  if (missing.length > 0) return fail(`Set ${missing.join(', ')}. See: sluice serve --help`);
  const wanted = env.SLUICE_PORT || String(DEFAULT_PORT);
  const port = Number(wanted);
  if (!/^[0-9]{1,5}$/.test(wanted) || port > 65_535)
    return fail(`SLUICE_PORT is "${wanted}"; it must be a port number.`);

  const most = env.SLUICE_MAX_REQUESTS || String(DEFAULT_MAX_REQUESTS);
  const maxRequests = Number(most);
  if (!/^[1-9][0-9]{0,6}$/.test(most))
    return fail(`SLUICE_MAX_REQUESTS is "${most}"; it must be a whole number from 1 to 9999999.`);

  const front = readFront(env);
  if (typeof front === 'string') return fail(front);
  const scrape = readScrapeSettings(env);
  if (typeof scrape === 'string') return fail(scrape);
  const limits = readLimitSettings(env);
  if (typeof limits === 'string') return fail(limits);
  const alerts = readAlertSettings(env);
  const ticketSecrets = readTicketSecrets(env.SLUICE_TICKET_SECRET);
  const services = readServiceUrls(env);
  const log = createLog();
  if (processes > 1 && member === undefined) return superviseServers(processes, limits, log);
  const buyers = await readBuyerSettings(env);
  for (const { url } of cells) await refuseEditedWhereSeen({ db1: url, db2: env.DB2_URL ?? '' }, log);
  const handlers = await loadHandlers(env.SLUICE_HANDLERS, log);
  const tracing = await openTracing('sluice-serve', env, log);
  const stopOrder = member?.stopped ?? nextSignal();
  // Here and not above: the help page does not wait for all that a server is made of.
  const { startServer } = await import('../server/server.ts');
  let server: RunningServer;
  try {
    server = await startServer({
      port,
      db1Url: first?.url ?? '',
      cells,
      db2Url: env.DB2_URL ?? '',
      adminKey: env.SLUICE_ADMIN_KEY ?? '',
      jwtSecret: env.SLUICE_JWT_SECRET ?? '',
      handlers,
      tracer: tracing.tracer,
      maxRequests,
      limits,
      member,
      ...front,
      ...scrape,
      ...buyers,
      ...(ticketSecrets && { ticketSecrets }),
      ...(alerts && { alerts }),
      ...services,
    });
  } catch (error) {
    await tracing.stop();
    throw explainedListen(error, { port, portName: 'SLUICE_PORT', host: front.host });
  }
  if (member === undefined) sayWhere(server.url);
  else void member.tellListening(server, server.ready);
  const { isRestart } = await stopOrder;
  await server.stop(isRestart ? RESTART_REST_MS : 0);
  await tracing.stop();
  return 0;
}

function sayWhere(url: string): void {
  process.stdout.write(`Sluice listens on ${url}\n`);
}

async function superviseServers(processes: number, limits: LimitSettings, log: Log): Promise<number> {
  const { runProcesses } = await import('../processes/run.ts');
  return runProcesses({
    orders: ordersOf('server', processes),
    limits,
    log,
    onUp: (url) => sayWhere(url ?? ''),
  });
}

/** What stands in front of the server, as options for it; or what is wrong with the settings. */
function readFront(env: NodeJS.ProcessEnv): Pick<ServerOptions, 'host' | 'proxy'> | string {
  const { SLUICE_HOST: host, SLUICE_PUBLIC_URL: address } = env;
  if ((env.SLUICE_JWT_SECRET ?? '').length < MIN_JWT_SECRET_CHARS)
    return `SLUICE_JWT_SECRET has less than ${MIN_JWT_SECRET_CHARS} characters, which can be guessed; HS256 needs 32 bytes.\nhint: make one with: openssl rand -base64 48`;
  const proxies = env.SLUICE_TRUSTED_PROXIES || '0';
  if (!/^\d$/.test(proxies))
    return `SLUICE_TRUSTED_PROXIES is "${proxies}"; it must be a number from 0 to 9.`;
  // A proxy on this machine brings strangers to a loopback address.
  const isForThisMachine = LOOPBACK.test(host ?? '') && proxies === '0' && !address;
  if ((env.SLUICE_ADMIN_KEY ?? '').length < MIN_KEY_CHARS && !isForThisMachine)
    return `SLUICE_ADMIN_KEY has less than ${MIN_KEY_CHARS} characters, which can be guessed.\nhint: make one with: openssl rand -base64 32 (or set SLUICE_HOST=127.0.0.1 to be heard on this machine only)`;
  if (JWT.test(env.SLUICE_ADMIN_KEY ?? ''))
    return 'SLUICE_ADMIN_KEY has the form of a JWT, and would be taken for one.\nhint: make one with: openssl rand -base64 32';
  if (address && !(URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)))
    return `SLUICE_PUBLIC_URL is "${address}"; it must be an address such as https://tickets.example.com.`;
  return {
    ...(host && { host }),
    proxy: { trustedProxies: Number(proxies), ...(address && { publicUrl: new URL(address) }) },
  };
}

export const command = action({
  about: `Start the HTTP server against two databases that are already there (see: sluice migrate)

${PROCESSES_ABOUT}

The server also reads the secrets of webhook endpoints and call sites, by the names that those give: from DB2's Vault where it
has one, then from SLUICE_SECRETS_FILE, then from the environment.`,
  options: OPTIONS,
  environment: {
    'DB1_URL, DB2_URL':
      'Postgres addresses of the intake and the ledger; with several hosts (postgres://…@a:5432,b:5432/name) the server follows the primary',
    ...CELL_VARIABLES,
    ...ACK_VARIABLE,
    ...POOLER_VARIABLES,
    SLUICE_ADMIN_KEY: "the operator's key",
    SLUICE_JWT_SECRET: "the project's JWT secret (HS256); at least 32 characters",
    SLUICE_JWKS_URL: "the project's published keys (RS256, ES256); optional",
    SLUICE_HANDLERS: 'a module with webhook handlers, for endpoints in inline mode; optional',
    ...SECRETS_FILE,
    SLUICE_REDIS_URL: 'where servers share what they remember of call events; optional',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'a collector of traces (docs/observe.md); optional',
    SLUICE_PORT: `default ${DEFAULT_PORT}`,
    SLUICE_HOST:
      'the interface to listen on, such as 127.0.0.1 behind a proxy on the same machine; default all',
    SLUICE_PUBLIC_URL:
      'the address browsers have, where a proxy changes the name (docs/secure.md); pools that are paid for need it, others do not',
    'STRIPE_API_KEY, STRIPE_API_URL':
      'for pools that are paid for: a key that may write Checkout Sessions, and the API (default https://api.stripe.com)',
    SLUICE_TRUSTED_PROXIES:
      'how many proxies in front add to X-Forwarded-For; default 0: the server does not believe the header',
    SLUICE_MAX_REQUESTS: `claims under way at once; webhooks, calls and pages have half of it each, /admin and /metrics a twentieth; more are answered 429; default ${DEFAULT_MAX_REQUESTS}`,
    ...LIMIT_VARIABLES,
    ...BUYER_VARIABLES,
    ...TICKET_VARIABLES,
    ...SCRAPE_VARIABLES,
    ...ALERT_VARIABLES,
    SLUICE_RELEASE: 'what marks in the history call this release; default the version and the build',
    SLUICE_LOG: 'debug, info (default), warn, error or silent',
  },
  exits: ['when it was stopped', 'when it could not start'],
  examples: [
    'DB1_URL=postgres://… DB2_URL=postgres://… SLUICE_ADMIN_KEY=… SLUICE_JWT_SECRET=… sluice serve',
    'sluice serve --processes 4',
  ],
  run,
});

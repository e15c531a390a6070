// The Node server: databases, doors and HTTP put together, and taken apart again in an order that answers everybody.

import { createHash } from 'node:crypto';
import type { CallFunction } from '#core/call_function.ts';
import { ClaimRoutes } from '#core/claim.ts';
import { healthRoutes } from '#core/health.ts';
import { PoolRoutes } from '#core/pool.ts';
import type { Tracer } from '#core/ports.ts';
import type { Route } from '#core/router.ts';
import { ASIDE_CONNECTIONS } from '#core/side_lane.ts';
import { createFindSecret, type SecretSource, Secrets } from '#core/webhook/secrets.ts';
import { openCallRoutes } from '../calls/calls.ts';
import { loadPages, pageRoutes } from '../console/assets.ts';
import { notFoundPage } from '../console/not_found.ts';
import { PoolLive } from '../console/pool_live.ts';
import {
  createDatabase,
  type DatabaseOptions,
  LANE_LOCK_TIMEOUT_MS,
  REBUILD_TIMEOUT_MS,
} from '../db/database.ts';
import { createLog } from '../log.ts';
import { type CollectedMetrics, createMetrics } from '../metrics.ts';
import type { Handlers } from '../webhook/handlers.ts';
import { createSecretSource } from '../webhook/secret_source.ts';
import { AddressLimits, type LimitSettings } from './address_limits.ts';
import { addressOf } from './addresses.ts';
import { adminRoutes } from './admin.ts';
import { Admission } from './admission.ts';
import { createBacklog } from './backlog.ts';
import type { BuyerSettings } from './buyer_settings.ts';
import { proofOfWork } from './challenge.ts';
import { createChallenges } from './challenge_route.ts';
import { EndedSessions } from './ended_sessions.ts';
import { HttpServer } from './http.ts';
import { createIntakeLevels } from './intake_levels.ts';
import { KnownOperators } from './known_operators.ts';
import { loginRoute } from './login_route.ts';
import { MeteredRouter } from './metered_router.ts';
import { metricsRoute, processPage } from './metrics_route.ts';
import { openApiRoute } from './openapi_route.ts';
import { OperatorAuth } from './operator_auth.ts';
import { startOperatorCopy } from './operator_copy.ts';
import { createDatabasePorts } from './ports.ts';
import { isHttps, type ProxySettings } from './proxy.ts';
import { type ScrapeSettings, scrapeGuard } from './scrape_access.ts';
import { Streams } from './streams.ts';
import { createTokenPorts } from './tokens.ts';
import { wakeWorkers } from './wake.ts';
import { openWebhookRoutes } from './webhooks.ts';

export interface ServerOptions extends ScrapeSettings, BuyerSettings {
  /** 0 takes a free one. */
  port: number;
  /** All interfaces where left out. */
  host?: string;
  db1Url: string;
  db2Url: string;
  adminKey: string;
  jwtSecret: string;
  jwksUrl?: string;
  /** Workers in this process: told of new claims directly, where others are told by Postgres. */
  onClaimed?: () => void;
  /** The same for new events of queued endpoints. */
  onRecorded?: () => void;
  /** Shared by servers to recognise replays of call events; each process remembers its own where left out. */
  redisUrl?: string;
  /** Secrets of webhook endpoints and call sites by name; those of the secrets file and the environment where left out. */
  secretOf?: SecretSource;
  /** Handlers of inline endpoints; none where left out. */
  handlers?: Handlers;
  /** Shared with workers in this process; its own where left out. */
  metrics?: CollectedMetrics;
  /** Nobody traces where left out. */
  tracer?: Tracer;
  /** Claims under way at once, and a part of it for each other group; more are answered 429. DEFAULT_MAX_REQUESTS where left out. */
  maxRequests?: number;
  /** What is in front of the server; nothing where left out. */
  proxy?: ProxySettings;
  /** What one address may do. DEFAULT_LIMITS where left out; loopback is not limited then. */
  limits?: LimitSettings;
}

export interface RunningServer {
  url: string;
  port: number;
  stop(): Promise<void>;
}

/** A second claiming connection gained nothing on two cores: the batches only get smaller. */
const LANE_CONNECTIONS = 1;
const DB1_CONNECTIONS = 4;
const DB2_CONNECTIONS = 2;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const log = createLog();
  const open = (url: string, max: number, applicationName: string, timeouts: Partial<DatabaseOptions> = {}) =>
    createDatabase({ url, max, applicationName, ...timeouts, log });
  const lane = open(options.db1Url, LANE_CONNECTIONS, 'sluice-claims', {
    lockTimeoutMs: LANE_LOCK_TIMEOUT_MS,
  });
  const aside = open(options.db1Url, ASIDE_CONNECTIONS, 'sluice-claims-aside', {
    lockTimeoutMs: LANE_LOCK_TIMEOUT_MS,
    callTimeoutMs: REBUILD_TIMEOUT_MS,
  });
  const db1 = open(options.db1Url, DB1_CONNECTIONS, 'sluice-server');
  const db2 = open(options.db2Url, DB2_CONNECTIONS, 'sluice-server');
  const webhook: CallFunction = (name, args) => db2.call(`webhook.${name}`, args);
  const metrics = options.metrics ?? createMetrics();
  const proxy = options.proxy ?? { trustedProxies: 0 };
  const limits = new AddressLimits(options.limits ?? {}, { proxy, metrics, log });
  const unsigned = limits.deliveries;
  const secretOf = options.secretOf ?? createSecretSource(process.env);
  const webhooks = openWebhookRoutes({ ...options, secretOf, unsigned }, metrics, log);
  const calls = openCallRoutes({ ...options, secretOf, unsigned }, metrics, log);
  const endDatabases = (): Promise<unknown> =>
    Promise.all([lane.end(), aside.end(), db1.end(), db2.end(), webhooks.end(), calls.end()]);

  const callIntake: CallFunction = (name, args) => db1.call(`public.${name}`, args);
  const callLedger: CallFunction = (name, args) => db2.call(`public.${name}`, args);
  const auth = new OperatorAuth(options.adminKey, Date.now, {
    proxy,
    wrongKeys: limits.signIns,
    endedSessions: new EndedSessions(Date.now, callIntake, log),
    known: new KnownOperators(options.adminKey, Date.now, callIntake, log),
  });
  const ports = createDatabasePorts(lane, aside, db1);
  const wake = wakeWorkers(db1, 'public.bridge_wake', log, options.onClaimed);
  const claims = new ClaimRoutes({
    ...ports,
    ...createTokenPorts(options, auth),
    admit: limits.admitClaim,
    metrics,
    log,
    ...(options.tracer && { tracer: options.tracer }),
    now: Date.now,
    verifyChallenge: (...given) => challenges.verify(...given),
    hash: sha256,
    addressOf: (request) => addressOf(request, proxy),
    claimBatch: async (requests, isAside) => {
      const outcomes = await ports.claimBatch(requests, isAside);
      if (outcomes.some(({ outcome }) => outcome === 'claimed')) wake();
      return outcomes;
    },
  });
  const pools = new PoolRoutes({ ...ports, now: Date.now });
  const challenges = createChallenges({
    verifier: options.challengeVerifier ?? proofOfWork(options.jwtSecret, Date.now),
    difficultyOf: async (poolId) => (await pools.status(poolId))?.challenge_difficulty,
  });
  const health = healthRoutes({
    checkDatabases: async () => {
      await Promise.all([db1.call('public.intake_ready', {}), db2.call('public.ledger_ready', {})]);
    },
    isDraining: () => http.isDraining,
  });
  const poolLive = new PoolLive({ status: (poolId) => pools.status(poolId), now: Date.now });
  const admin = adminRoutes(auth, {
    db1: callIntake,
    db2: callLedger,
    webhook,
    secrets: new Secrets({ findSecret: createFindSecret(webhook), secretOf, now: Date.now }),
    calls: (name, args) => db2.call(`calls.${name}`, args),
    now: Date.now,
    ...(calls.pingRedis && { pingRedis: calls.pingRedis }),
    log,
  });
  const copying = startOperatorCopy(callIntake, callLedger, log);
  const levels = [createIntakeLevels(callIntake, log), createBacklog(webhook, options.adminKey, log)];
  const scrape = metricsRoute(
    [metrics, calls, ...levels, processPage()],
    scrapeGuard(options, (request) => auth.authorize(request, 'viewer')),
  );
  // What a crowd asks for comes first: places are looked through in their order.
  const burst = [claims, pools, webhooks, calls, poolLive, challenges].flatMap((group): Route[] =>
    group.routes(),
  );
  const programs = [...burst, ...health, loginRoute(options.loginUrl), scrape, ...admin];
  const pages = loadPages();
  const pagesOnly = pageRoutes(pages, log, (request) => isHttps(request, proxy));
  const http = new HttpServer(
    new MeteredRouter(
      [...programs, openApiRoute(programs), ...pagesOnly],
      log,
      metrics,
      notFoundPage(pagesOnly, log),
    ),
    log,
    undefined,
    new Admission(options.maxRequests),
    new Streams(limits.streams),
  );

  let port: number;
  try {
    port = await http.listen(options.port, options.host);
  } catch (error) {
    await copying.stop();
    await Promise.allSettled([endDatabases(), pages]);
    throw error;
  }
  const host = options.host ?? '127.0.0.1';
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  log.info('server listens', { url });

  return {
    url,
    port,
    async stop() {
      // New connections are refused and open ones told to close, while what was accepted is answered.
      const closed = http.close();
      await Promise.all([claims.drain(), webhooks.drain(), calls.drain()]);
      await closed;
      await Promise.all([wake.stop(), copying.stop()]);
      await endDatabases();
      await Promise.allSettled([pages]);
      log.info('server stopped', { url });
    },
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

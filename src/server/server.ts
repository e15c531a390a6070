// The Node server: databases, doors and HTTP put together. On shutdown it answers accepted requests, then closes connections.

import { createHash } from 'node:crypto';
import type { CallFunction } from '#core/call_function.ts';
import { ClaimRoutes } from '#core/claim.ts';
import { MAX_WAITING } from '#core/coalescer.ts';
import type { LiveSample } from '#core/console/sample.ts';
import { healthRoutes } from '#core/health.ts';
import { PoolRoutes } from '#core/pool.ts';
import type { Clock, Tracer } from '#core/ports.ts';
import type { HttpRequest, Route } from '#core/router.ts';
import { MAX_EXPORTS } from '#core/search/exports.ts';
import { TicketTokens } from '#core/tickets/token.ts';
import type { ApiUrls } from '#core/webhook/backfill/sources.ts';
import { createFindSecret, type SecretSource, Secrets } from '#core/webhook/secrets.ts';
import { openCallRoutes } from '../calls/calls.ts';
import { loadPages, pageRoutes } from '../console/assets.ts';
import { LiveView } from '../console/live.ts';
import { notFoundPage } from '../console/not_found.ts';
import { PoolLive } from '../console/pool_live.ts';
import { createDatabase } from '../db/database.ts';
import { cellsOf, type FleetOptions } from '../fleet/addresses.ts';
import { cellAway } from '../fleet/away.ts';
import { openServerCell, type ServerCell } from '../fleet/cells.ts';
import { Fleet } from '../fleet/fleet.ts';
import { oneIntake } from '../fleet/one_intake.ts';
import { findOperatorsCell } from '../fleet/operate.ts';
import { createDatabasePorts } from '../fleet/ports.ts';
import { openInbox } from '../inbox/door.ts';
import { startAlerts } from '../issues/alerts.ts';
import type { AlertSettings } from '../issues/settings.ts';
import { startIssueWatch } from '../issues/watch.ts';
import { createLog } from '../log.ts';
import type { Loop } from '../loop.ts';
import { type CollectedMetrics, createMetrics } from '../metrics.ts';
import { openCheckout, withRefunds } from '../orders/door.ts';
import type { Member } from '../processes/member.ts';
import { doesChores, shareOf, WHOLE } from '../processes/part.ts';
import { openSampler } from '../samples/open.ts';
import { startSampling } from '../samples/sampler.ts';
import { ticketLink, ticketRoutes } from '../tickets/tickets.ts';
import { endOfTurn } from '../turn.ts';
import type { Handlers } from '../webhook/handlers.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { createSecretSource } from '../webhook/secret_source.ts';
import { startEndpointSeries } from '../webhook/series.ts';
import { AddressLimits, type LimitSettings } from './address_limits.ts';
import { addressOf } from './addresses.ts';
import { adminRoutes } from './admin.ts';
import { Admission } from './admission.ts';
import { createBacklog } from './backlog.ts';
import type { BuyerSettings } from './buyer_settings.ts';
import { proofOfWork } from './challenge.ts';
import { createChallenges } from './challenge_route.ts';
import { EndedSessions, type Session } from './ended_sessions.ts';
import { HttpServer } from './http.ts';
import { createIntakeLevels } from './intake_levels.ts';
import { KnownOperators } from './known_operators.ts';
import { LargeBodies, ROOM_BYTES } from './large_bodies.ts';
import { loginRoute } from './login_route.ts';
import { MeteredRouter } from './metered_router.ts';
import { metricsRoute, ownPages } from './metrics_route.ts';
import { openApiRoute } from './openapi_route.ts';
import { OperatorAuth } from './operator_auth.ts';
import { startOperatorCopy } from './operator_copy.ts';
import { createOrderLevels } from './order_levels.ts';
import { isHttps, type ProxySettings } from './proxy.ts';
import { checkIntake, checkLedger } from './ready.ts';
import { type ScrapeSettings, scrapeGuard } from './scrape_access.ts';
import { Streams } from './streams.ts';
import { createTokenPorts } from './tokens.ts';
import { createVacuumLevels } from './vacuum_levels.ts';
import { openWebhookRoutes } from './webhooks.ts';

export interface ServerOptions extends ScrapeSettings, BuyerSettings, FleetOptions {
  /** 0 takes a free one. */
  port: number;
  /** All interfaces where left out. */
  host?: string;
  db2Url: string;
  adminKey: string;
  jwtSecret: string;
  jwksUrl?: string;
  /** The first signs the links of tickets, all verify them; tickets have none where left out. */
  ticketSecrets?: readonly string[];
  /** Workers in this process: told of new claims directly, where others are told by Postgres. */
  onClaimed?: () => void;
  /** The same for new events of queued endpoints. */
  onRecorded?: () => void;
  /** Shared by servers to recognise replays of call events; each process remembers its own where left out. */
  redisUrl?: string;
  /** Secrets of webhook endpoints and call sites by name; those of the secrets file and the environment where left out. */
  secretOf?: SecretSource;
  /** Where Stripe is; what the environment says where left out. */
  apiUrls?: ApiUrls;
  /** Handlers of inline endpoints; none where left out. */
  handlers?: Handlers;
  /** Shared with workers in this process; its own where left out. */
  metrics?: CollectedMetrics;
  /** Nothing is traced if this is left out. */
  tracer?: Tracer;
  /** Claims under way at once, and a part of it for each other group; more are answered 429. DEFAULT_MAX_REQUESTS where left out. */
  maxRequests?: number;
  /** What is in front of the server; nothing where left out. */
  proxy?: ProxySettings;
  /** Where alerts go; nowhere where left out. */
  alerts?: AlertSettings;
  /** For tests: samples are taken and shown by this clock. */
  sampleClock?: Clock;
  /** What one address may do. DEFAULT_LIMITS where left out; loopback is not limited then. */
  limits?: LimitSettings;
  /** Where the command has several processes: what this one shares with the others. */
  member?: Member | undefined;
}

export interface RunningServer {
  url: string;
  port: number;
  /** Rejects while a database that is needed does not answer. */
  ready(): Promise<unknown>;
  /** `restMs`: idle connections are left open for so long, and what comes on them meanwhile is answered. */
  stop(restMs?: number): Promise<void>;
}

const DB2_CONNECTIONS = 2;
/** A server that only this machine reaches sends buyers back to its own address. */
const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;

/** What ends with the server, and with one that could not start: left open, it would keep the process alive. */
interface Opened {
  end(): Promise<unknown>;
}
type Keep = <Part extends Opened>(part: Part) => Part;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const opened: Opened[] = [];
  const keep: Keep = (part) => {
    opened.push(part);
    return part;
  };
  const end = async (): Promise<void> => {
    await Promise.all(opened.map((part) => part.end()));
  };
  try {
    return await start(options, keep, end);
  } catch (error) {
    await Promise.allSettled([end()]);
    throw error;
  }
}

async function start(options: ServerOptions, keep: Keep, end: () => Promise<void>): Promise<RunningServer> {
  const log = createLog();
  const addresses = cellsOf(options);
  const fleet = new Fleet(
    addresses.map((address) => openServerCell(address, addresses.length === 1, options.onClaimed, log)),
    log,
  );
  keep({
    async end() {
      await fleet.stop();
      await Promise.all(fleet.cells.map((cell) => cell.end()));
    },
  });
  const db2 = keep(
    createDatabase({ url: options.db2Url, max: DB2_CONNECTIONS, applicationName: 'sluice-server', log }),
  );
  const webhook: CallFunction = (name, args) => db2.call(`webhook.${name}`, args);
  const metrics = options.metrics ?? createMetrics();
  const proxy = options.proxy ?? { trustedProxies: 0 };
  const { member } = options;
  const part = member?.part ?? WHOLE;
  const limits = new AddressLimits(options.limits ?? {}, { proxy, metrics, log, counts: member });
  const unsigned = limits.deliveries;
  const secretOf = options.secretOf ?? createSecretSource(process.env);
  const openedInbox = keep(openInbox(addresses, options.db2Url, metrics, log, doesChores(part)));
  const doors = { ...options, secretOf, unsigned, part, inbox: openedInbox.inbox };
  const webhooks = keep(openWebhookRoutes(doors, metrics, log));
  const calls = keep(openCallRoutes(doors, metrics, log));

  const callIntake = oneIntake(fleet);
  const operatorsCell = findOperatorsCell(fleet.cells);
  const callOperators: CallFunction = async (name, args) => (await operatorsCell()).call(name, args);
  const callLedger: CallFunction = (name, args) => db2.call(`public.${name}`, args);
  const endedSessions = new EndedSessions(Date.now, callIntake, log, {
    tell: (session) => member?.tell('session_ended', session),
  });
  member?.onNews<Session>('session_ended', (session) => endedSessions.hear(session));
  const auth = new OperatorAuth(options.adminKey, Date.now, {
    proxy,
    wrongKeys: limits.signIns,
    endedSessions,
    known: new KnownOperators(options.adminKey, Date.now, callOperators, log),
  });
  const ports = withRefunds(createDatabasePorts(fleet), callLedger, log);
  const tokens = options.ticketSecrets && new TicketTokens(options.ticketSecrets, nodeHmac);
  const publicUrl = (): string | undefined =>
    proxy.publicUrl?.href ?? (LOOPBACK.test(options.host ?? '') ? url : undefined);
  const claims = new ClaimRoutes(
    {
      ...ports,
      ...createTokenPorts(options, auth),
      ...(tokens && {
        ticketUrl: async (claimId) => ticketLink(await tokens.tokenOf(claimId), publicUrl()),
      }),
      admit: limits.admitClaim,
      metrics,
      log,
      ...(options.tracer && { tracer: options.tracer }),
      now: Date.now,
      turn: endOfTurn,
      verifyChallenge: (...given) => challenges.verify(...given),
      hash: sha256,
      addressOf: (request) => addressOf(request, proxy),
    },
    // Claims that wait for a silent cell leave the other cells their share of the queue.
    shareOf(Math.ceil(MAX_WAITING / fleet.cells.length), part),
  );
  const checkout = openCheckout({
    own: (request, claimId) => claims.own(request, claimId),
    fleet,
    webhook,
    secretOf,
    urls: options.apiUrls ?? process.env,
    publicUrl,
    metrics,
    log,
  });
  const pools = new PoolRoutes({ ...ports, now: Date.now });
  const challenges = createChallenges({
    verifier: options.challengeVerifier ?? proofOfWork(options.jwtSecret, Date.now),
    difficultyOf: async (poolId) => (await pools.status(poolId))?.challenge_difficulty,
  });
  const ready = async () => (await Promise.all([readyCells(fleet), checkLedger(db2)]))[0];
  const health = healthRoutes({ checkDatabases: ready, isDraining: () => http.isDraining });
  const poolLive = new PoolLive({ status: (poolId) => pools.status(poolId), now: Date.now });
  const live = new LiveView();
  const { sampleClock } = options;
  const secrets = new Secrets({ findSecret: createFindSecret(webhook), secretOf, now: Date.now });
  const admin = adminRoutes(auth, {
    live,
    ...(sampleClock && { sampleClock }),
    fleet,
    db1: callIntake,
    db2: callLedger,
    webhook,
    secrets,
    calls: (name, args) => db2.call(`calls.${name}`, args),
    operators: callOperators,
    audit: async (name, args) => (await operatorsCell()).rest.call(`audit.${name}`, args),
    now: Date.now,
    ...(calls.pingRedis && { pingRedis: calls.pingRedis }),
    maxExports: shareOf(MAX_EXPORTS, part),
    log,
  });
  const levels = [
    createIntakeLevels(fleet.cells, log),
    createBacklog(webhook, options.adminKey, log),
    createOrderLevels(callLedger, log),
    createVacuumLevels(fleet.cells, callLedger, log),
  ];
  const scrape = metricsRoute(
    [...ownPages([metrics, calls], member), ...levels],
    scrapeGuard(options, (request) => auth.authorize(request, 'viewer')),
  );
  // What a crowd asks for comes first: places are looked through in their order.
  const burst = [claims, pools, webhooks, calls, poolLive, challenges].flatMap((group): Route[] =>
    group.routes(),
  );
  const pages = loadPages();
  keep({ end: () => Promise.allSettled([pages]) });
  const overHttps = (request: HttpRequest) => isHttps(request, proxy);
  const tickets = ticketRoutes({
    tokens,
    fleet,
    ledger: callLedger,
    pages,
    publicUrl,
    isHttps: overHttps,
    now: Date.now,
    log,
  });
  const forOperators = [...admin, ...auth.guard(tickets.check)];
  const programs = [...burst, checkout, ...health, loginRoute(options.loginUrl), scrape, ...forOperators];
  const pagesOnly = [tickets.page, ...pageRoutes(pages, log, overHttps)];
  const http = new HttpServer(
    new MeteredRouter(
      [...programs, openApiRoute(programs), ...pagesOnly],
      log,
      metrics,
      notFoundPage(pagesOnly, log),
    ),
    log,
    undefined,
    new Admission(options.maxRequests, {}, new LargeBodies({ roomBytes: shareOf(ROOM_BYTES, part) }), part),
    new Streams(limits.streams),
  );

  let url = '';
  await fleet.start();
  const port = await http.listen(options.port, options.host);
  const host = options.host ?? '127.0.0.1';
  url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  log.info('server listens', { url });
  // Samples are taken once and shown by all processes.
  member?.onNews<LiveSample>('sample', (sample) => live.publish(sample));
  const publish = (sample: LiveSample): void => {
    live.publish(sample);
    member?.tell('sample', sample);
  };
  const databases = [
    ...fleet.cells.map(({ name, call }) => ({ name: fleet.isOne ? 'DB1' : name, call })),
    { name: 'DB2', call: callLedger },
  ];
  const startChores = (): Loop[] => [
    startSampling(openSampler({ fleet, callIntake, callLedger, sampleClock, log }, publish)),
    startOperatorCopy(callOperators, callLedger, log),
    startEndpointSeries(webhook, metrics, log),
    startIssueWatch({ databases, db2: callLedger, webhook, secrets, log }),
    ...(options.alerts
      ? [startAlerts(options.alerts, { databases, callFirst: fleet.only.call, consoleUrl: publicUrl, log })]
      : []),
  ];
  const loops = doesChores(part) ? startChores() : [];

  return {
    url,
    port,
    ready,
    async stop(restMs = 0) {
      // New connections are refused and open ones told to close, while what was accepted is answered.
      const closed = http.close(restMs);
      if (restMs > 0) await closed;
      await Promise.all([claims.drain(), webhooks.drain(), calls.drain()]);
      await closed;
      await Promise.all(loops.map((loop) => loop.stop()));
      await end();
      log.info('server stopped', { url });
    },
  };
}

/** One cell must answer; where there are several, which do is said. */
async function readyCells(fleet: Fleet<ServerCell>): Promise<{ cells: Record<string, string> } | undefined> {
  if (fleet.isOne) return void (await checkIntake(fleet.only.call));
  const { away } = await fleet.all(({ call }) => checkIntake(call));
  if (away.length === fleet.cells.length) throw cellAway(away);
  const cells = fleet.cells.map(({ name }) => [name, away.includes(name) ? 'away' : 'ready']);
  return { cells: Object.fromEntries(cells) };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

// `sluice work`: carries claims from the intake's queue to the ledger and lets webhook events take effect, until told to
// stop.

import type { Log } from '#core/ports.ts';
import { DEFAULT_BATCH_SIZE, DEFAULT_LEASE_SEC, DEFAULT_WORKERS } from '../bridge/crew.ts';
import { readSign } from '../bridge/sign.ts';
import { ACK_VARIABLE } from '../db/ack.ts';
import { POOLER_VARIABLES } from '../db/pooler.ts';
import { StackError } from '../failure.ts';
import { cellsOf } from '../fleet/addresses.ts';
import { drainCells, type FleetCrewOptions, startCellCrews } from '../fleet/crews.ts';
import { createLog } from '../log.ts';
import { type CollectedMetrics, createMetrics } from '../metrics.ts';
import { refuseEditedWhereSeen } from '../migrate/edited.ts';
import { carryOrdersOnce, type OrderCrewOptions, startOrderCrew } from '../orders/crew.ts';
import type { Member } from '../processes/member.ts';
import { doesChores, join, shareOf, WHOLE } from '../processes/part.ts';
import { BreakerMarks, startBreakerMarks } from '../samples/breakers.ts';
import { startRetention } from '../scheduler/retention.ts';
import { startSealing } from '../scheduler/sealing.ts';
import { explainedListen } from '../server/listen_fault.ts';
import { ownPages } from '../server/metrics_route.ts';
import {
  type MetricsServer,
  type MetricsServerOptions,
  startMetricsServer,
} from '../server/metrics_server.ts';
import { readScrapeSettings, SCRAPE_VARIABLES } from '../server/scrape_access.ts';
import { onStopSignal } from '../stop_signal.ts';
import { openTracing } from '../tracing/tracing.ts';
import { API_VARIABLES } from '../webhook/backfill.ts';
import {
  DEFAULT_WEBHOOK_BATCH,
  DEFAULT_WEBHOOK_WORKERS,
  processOnce,
  startWebhookCrew,
  type WebhookCrewOptions,
} from '../webhook/crew.ts';
import { loadHandlers } from '../webhook/handlers.ts';
import { createSecretSource, SECRETS_FILE } from '../webhook/secret_source.ts';
import { action, readWhole, UsageError, type Values } from './grammar.ts';
import { readDatabaseUrls, readHookSecret, VARIABLES } from './operator.ts';
import { ordersOf, PROCESSES_ABOUT, PROCESSES_OPTION } from './processes.ts';

const MAX_WORKERS = 64;
const MAX_BATCH_SIZE = 10_000;
/** As long as a pool's visibility timeout can be. */
const MAX_LEASE_SEC = 43_200;
const MAX_PORT = 65_535;
const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];

const OPTIONS = {
  workers: {
    range: [1, MAX_WORKERS],
    default: DEFAULT_WORKERS,
    about: 'batches on their way to the ledger at once, in all processes; each has at least one',
  },
  batch: {
    range: [1, MAX_BATCH_SIZE],
    default: DEFAULT_BATCH_SIZE,
    about: 'messages of one batch',
  },
  lease: {
    range: [1, MAX_LEASE_SEC],
    default: DEFAULT_LEASE_SEC,
    about:
      "seconds after which other workers take what a dead worker held; a pool's visibility_timeout_sec counts where it is longer",
  },
  processes: PROCESSES_OPTION,
  once: { about: 'work until nothing is ready, print what was done, and end' },
  json: { about: 'with --once: print JSON, for machines' },
} as const;

async function run(values: Values<typeof OPTIONS>): Promise<number> {
  if (values.once && values.processes > 1) throw new UsageError('--once works in one process');
  const member = await join();
  try {
    return await work(values, member);
  } finally {
    await member?.leave();
  }
}

async function work(
  { workers, batch, lease, processes, once, json }: Values<typeof OPTIONS>,
  member: Member | undefined,
): Promise<number> {
  const { cells, db1Url, db2Url } = readDatabaseUrls(process.env);
  if (!db1Url || !db2Url) {
    throw new StackError(
      'DB1_URL (or SLUICE_CELLS) and DB2_URL must both be set, and no stack runs here',
      'see `sluice work --help`, or start one with `npm start`',
    );
  }
  const sign = readSign(readHookSecret(process.env));
  const log = createLog();
  if (processes > 1 && member === undefined) {
    const { runProcesses } = await import('../processes/run.ts');
    return runProcesses({ orders: ordersOf('worker', processes), limits: {}, log });
  }
  const part = member?.part ?? WHOLE;
  for (const { url } of cells) await refuseEditedWhereSeen({ db1: url, db2: db2Url }, log);
  const handlers = await loadHandlers(process.env.SLUICE_HANDLERS, log);
  const tracing = await openTracing('sluice-work', process.env, log);
  const shared = { db2Url, metrics: createMetrics(), tracer: tracing.tracer, log };
  const crew = {
    ...shared,
    db1Url,
    cells,
    part,
    workers: shareOf(workers, part),
    batchSize: batch,
    leaseSec: lease,
    sign,
  };
  const secretOf = createSecretSource(process.env);
  const orders = { ...shared, db1Url, cells, secretOf, urls: process.env };
  const webhooks = {
    ...shared,
    part,
    workers: shareOf(DEFAULT_WEBHOOK_WORKERS, part),
    batchSize: DEFAULT_WEBHOOK_BATCH,
    handlers,
    compare: { secretOf, urls: process.env },
  };
  try {
    return await (once
      ? workOnce(crew, webhooks, orders, json)
      : workUntilStopped(crew, webhooks, orders, member));
  } finally {
    await tracing.stop();
  }
}

async function workUntilStopped(
  options: FleetCrewOptions,
  webhookOptions: WebhookCrewOptions & { metrics: CollectedMetrics },
  orderOptions: OrderCrewOptions,
  member: Member | undefined,
): Promise<number> {
  const { log, db1Url, cells, part = WHOLE } = options;
  const stopped = member === undefined ? firstSignal(log) : member.stopped.then(() => 'SIGTERM');
  if (member !== undefined) ownPages([webhookOptions.metrics], member);
  const page = await openMetricsServer({ ...webhookOptions, db1Url, ...(cells && { cells }), member });
  const breakers = new BreakerMarks();
  const metrics = breakers.watching(webhookOptions.metrics);
  // Two in all, however many processes there are: an SQL handler has one set under way in each.
  const webhooks =
    part.index < DEFAULT_WEBHOOK_WORKERS ? startWebhookCrew({ ...webhookOptions, metrics }) : undefined;
  const crews = startCellCrews({
    ...options,
    metrics,
    onOutage: breakers.explain,
    ...(webhooks && { onRecorded: webhooks.wake }),
  });
  const urls = [...cellsOf(options).map(({ url }) => url), options.db2Url];
  const chores = doesChores(part)
    ? [
        startOrderCrew({ ...orderOptions, metrics, onFunded: crews.wake }),
        startSealing(urls, log),
        startRetention(urls, log),
      ]
    : [];
  const marks = startBreakerMarks(breakers, urls, log);
  log.info('workers started', { workers: options.workers, batch: options.batchSize });
  void member?.tellListening({});
  log.info('workers stopping', { signal: await stopped });
  await Promise.all([crews, webhooks, marks, page, ...chores].map((each) => each?.stop()));
  log.info('workers stopped');
  return 0;
}

/** Undefined where none is wanted. */
async function openMetricsServer(
  options: Pick<MetricsServerOptions, 'db1Url' | 'cells' | 'db2Url' | 'metrics' | 'log' | 'member'>,
): Promise<MetricsServer | undefined> {
  const { SLUICE_METRICS_PORT: port, SLUICE_ADMIN_KEY: adminKey } = process.env;
  if (!port) return undefined;
  const scrape = readScrapeSettings(process.env);
  if (typeof scrape === 'string') throw new StackError(scrape, 'see `sluice work --help`');
  if (!adminKey && !scrape.metricsOpen && !scrape.metricsToken)
    throw new StackError(
      'SLUICE_METRICS_PORT is set, but no key or token is, so no client could read /metrics there',
      'set SLUICE_METRICS_TOKEN for the scraper, or SLUICE_METRICS_OPEN=1 where the network keeps strangers out',
    );
  const place = {
    port: readWhole('SLUICE_METRICS_PORT', port, [1, MAX_PORT]),
    portName: 'SLUICE_METRICS_PORT',
  };
  return startMetricsServer({
    ...options,
    ...scrape,
    ...(adminKey && { adminKey }),
    port: place.port,
  }).catch((error: unknown) => {
    throw explainedListen(error, place);
  });
}

async function workOnce(
  options: FleetCrewOptions,
  webhookOptions: WebhookCrewOptions,
  orderOptions: OrderCrewOptions,
  asJson: boolean,
): Promise<number> {
  const stopping = new AbortController();
  void firstSignal(options.log).then(() => stopping.abort());
  const { signal } = stopping;
  const claims = await drainCells(options, signal);
  const events = await processOnce(webhookOptions, signal);
  const orders = await carryOrdersOnce(orderOptions, signal);
  const totals: Record<string, number> = { ...claims.totals };
  const add = (kind: string, some: Readonly<Record<string, number>>): void => {
    for (const [outcome, count] of Object.entries(some))
      totals[`${kind}${outcome}`] = (totals[`${kind}${outcome}`] ?? 0) + count;
  };
  add('webhook_', events.totals);
  add('order_', orders.totals);
  // Claims whose payment was just accepted can be carried now.
  if (orders.totals.funds) add('', (await drainCells(options, signal)).totals);
  const isPaused = claims.isPaused || events.isPaused || orders.isPaused || claims.away.length > 0;
  const total = Object.values(totals).reduce((sum, count) => sum + count, 0);
  const status = isPaused ? 'paused' : stopping.signal.aborted ? 'stopped' : 'drained';
  const { away } = claims;
  if (asJson) console.log(JSON.stringify({ status, total, ...totals, ...(away.length > 0 && { away }) }));
  else {
    const parts = Object.entries(totals).map(([outcome, count]) => `${count} ${outcome}`);
    console.log(`${status}: ${total} deliveries${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`);
    if (away.length > 0) console.log(`cells that did not answer: ${away.join(', ')}`);
  }
  return isPaused ? 1 : 0;
}

/** The second one ends the process: the leases are the safety net, and the messages come back by themselves. */
function firstSignal(log: Log): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false;
    onStopSignal(STOP_SIGNALS, (signal) => {
      if (isStopping) {
        log.warn('left in a hurry; what was held comes back when its leases run out', { signal });
        process.exit(1);
      }
      isStopping = true;
      resolve(signal);
    });
  });
}

export const command = action({
  about: `Carry claims to the ledger and process webhook events

Carries every claim from DB1's queue to DB2, or to the dead letters, once. Processes every recorded webhook event, once. Carries
payments and voids between the databases, closes Stripe sessions whose holds are over, and sends refunds that are due. Records
events and calls that servers accepted into the inbox while DB2 was down.

Runs until SIGTERM or Ctrl-C; then it finishes or hands back what it holds. A second signal ends it at once, and other workers take
what it held when the leases run out.

Without pg_cron it also runs the cron jobs of DB1. It removes data that is older than \`sluice retention list\` says. With several
cells it serves all of them. Once an hour it asks each provider with a key what it sent in the last day, and records what is
missing. You may run any number of these commands, on any machine.

${PROCESSES_ABOUT}`,
  options: OPTIONS,
  environment: {
    ...VARIABLES.databases,
    ...ACK_VARIABLE,
    ...POOLER_VARIABLES,
    SLUICE_HOOK_SECRET:
      'whsec_…, what hooks are signed with, or several separated by spaces (docs/hooks.md); unsigned by default',
    SLUICE_HANDLERS: 'a module with webhook handlers of your own (docs/extend_webhooks.md)',
    ...API_VARIABLES,
    ...SECRETS_FILE,
    SLUICE_METRICS_PORT: 'where /metrics, /healthz and /readyz of these workers are; nowhere by default',
    SLUICE_ADMIN_KEY: "the operator's key, which may read /metrics too; optional",
    ...SCRAPE_VARIABLES,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'a collector of traces (docs/observe.md); none by default',
    SLUICE_LOG: 'debug, info (default), warn, error or silent',
  },
  exits: ['when it was stopped or, with --once, drained the queue', 'when a target was down'],
  examples: [
    'DB1_URL=postgres://… DB2_URL=postgres://… sluice work --workers 4',
    'sluice work --processes 2',
    'sluice work --once --json',
  ],
  run,
});

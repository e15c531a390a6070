// `sluice work`: carries claims from the intake's queue to the ledger and lets webhook events take effect, until told to
// stop.

import { parseArgs } from 'node:util';
import { readAllowedHosts } from '#core/bridge/address.ts';
import type { Log } from '#core/ports.ts';
import {
  type CrewOptions,
  DEFAULT_BATCH_SIZE,
  DEFAULT_LEASE_SEC,
  DEFAULT_WORKERS,
  drainOnce,
  startCrew,
} from '../bridge/crew.ts';
import { StackError } from '../failure.ts';
import { createLog } from '../log.ts';
import { type CollectedMetrics, createMetrics } from '../metrics.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import { startMetricsServer } from '../server/metrics_server.ts';
import { openTracing } from '../tracing/tracing.ts';
import {
  DEFAULT_WEBHOOK_BATCH,
  DEFAULT_WEBHOOK_WORKERS,
  processOnce,
  startWebhookCrew,
  type WebhookCrewOptions,
} from '../webhook/crew.ts';
import { loadHandlers } from '../webhook/handlers.ts';
import type { Command } from './command.ts';
import { readDatabaseUrls } from './operator.ts';
import { UsageError } from './usage_error.ts';

const usage = `sluice work [--workers N] [--batch N] [--lease N] [--once [--json]]

Carries every claim from DB1's queue to DB2, or to the dead letters, once, and lets every recorded webhook event take
effect, once. Runs until SIGTERM or Ctrl-C: then it finishes or hands back what it holds; a second signal leaves at once,
and what it held comes back when its leases run out.
Where pg_cron is absent it also runs the cron jobs of DB1; any number of them may run at the same time.

Options:
  --workers N   workers side by side (default ${DEFAULT_WORKERS})
  --batch N     messages a worker takes at a time (default ${DEFAULT_BATCH_SIZE})
  --lease N     seconds after which others take what a worker that died held (default ${DEFAULT_LEASE_SEC}); a pool's
                visibility_timeout_sec counts where it is longer
  --once        work until nothing is ready, say what was done, and end: 0 when drained, 1 when a target was down
  --json        with --once: say it as JSON

Environment:
  DB1_URL, DB2_URL               Postgres addresses of the intake and the ledger (default: those of the stack in .sluice)
  SLUICE_WEBHOOK_ALLOWED_HOSTS   hosts, with commas between, that webhooks may have although they are private
  SLUICE_HANDLERS                a module with webhook handlers of your own (docs/extend_webhooks.md)
  SLUICE_METRICS_PORT            where /metrics, /healthz and /readyz of these workers are; nowhere by default
  OTEL_EXPORTER_OTLP_ENDPOINT    a collector of traces (docs/observe.md); none by default
  SLUICE_LOG                     debug, info (default), warn, error or silent

Examples:
  DB1_URL=postgres://… DB2_URL=postgres://… sluice work --workers 4
  sluice work --once --json
`;

const MAX_WORKERS = 64;
const MAX_BATCH_SIZE = 10_000;
/** As long as a pool's visibility timeout can be. */
const MAX_LEASE_SEC = 43_200;
const MAX_PORT = 65_535;
const STOP_SIGNALS: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];

async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      workers: { type: 'string', default: String(DEFAULT_WORKERS) },
      batch: { type: 'string', default: String(DEFAULT_BATCH_SIZE) },
      lease: { type: 'string', default: String(DEFAULT_LEASE_SEC) },
      once: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const { db1Url, db2Url } = readDatabaseUrls(process.env);
  const { SLUICE_WEBHOOK_ALLOWED_HOSTS: allowedHosts } = process.env;
  const workers = readCount('--workers', values.workers, MAX_WORKERS);
  const batchSize = readCount('--batch', values.batch, MAX_BATCH_SIZE);
  const leaseSec = readCount('--lease', values.lease, MAX_LEASE_SEC);
  if (!db1Url || !db2Url) {
    throw new StackError(
      'DB1_URL and DB2_URL must both be set, and no stack runs here',
      'see `sluice work --help`, or start one with `npm start`',
    );
  }
  const log = createLog();
  const handlers = await loadHandlers(process.env.SLUICE_HANDLERS);
  const tracing = await openTracing('sluice-work', process.env, log);
  const shared = { db2Url, metrics: createMetrics(), tracer: tracing.tracer, log };
  const crew = {
    ...shared,
    db1Url,
    workers,
    batchSize,
    leaseSec,
    allowedHosts: readAllowedHosts(allowedHosts),
  };
  const webhooks = {
    ...shared,
    workers: DEFAULT_WEBHOOK_WORKERS,
    batchSize: DEFAULT_WEBHOOK_BATCH,
    handlers,
  };
  try {
    return await (values.once ? workOnce(crew, webhooks, values.json) : workUntilStopped(crew, webhooks));
  } finally {
    await tracing.stop();
  }
}

async function workUntilStopped(
  options: CrewOptions,
  webhookOptions: WebhookCrewOptions & { metrics: CollectedMetrics },
): Promise<number> {
  const stopped = firstSignal(options.log);
  const port = process.env.SLUICE_METRICS_PORT;
  const page = port
    ? await startMetricsServer({
        ...webhookOptions,
        db1Url: options.db1Url,
        port: readCount('SLUICE_METRICS_PORT', port, MAX_PORT),
      })
    : undefined;
  const crew = startCrew(options);
  const webhooks = startWebhookCrew(webhookOptions);
  const scheduler = startScheduler({ db1Url: options.db1Url, log: options.log });
  options.log.info('workers started', { workers: options.workers, batch: options.batchSize });
  options.log.info('workers stopping', { signal: await stopped });
  await Promise.all([crew.stop(), webhooks.stop(), scheduler.stop(), page?.stop()]);
  options.log.info('workers stopped');
  return 0;
}

async function workOnce(
  options: CrewOptions,
  webhookOptions: WebhookCrewOptions,
  asJson: boolean,
): Promise<number> {
  const stopping = new AbortController();
  void firstSignal(options.log).then(() => stopping.abort());
  const claims = await drainOnce(options, stopping.signal);
  const events = await processOnce(webhookOptions, stopping.signal);
  const totals = { ...claims.totals };
  for (const [outcome, count] of Object.entries(events.totals)) totals[`webhook_${outcome}`] = count;
  const isPaused = claims.isPaused || events.isPaused;
  const total = Object.values(totals).reduce((sum, count) => sum + count, 0);
  const status = isPaused ? 'paused' : stopping.signal.aborted ? 'stopped' : 'drained';
  if (asJson) console.log(JSON.stringify({ status, total, ...totals }));
  else {
    const parts = Object.entries(totals).map(([outcome, count]) => `${count} ${outcome}`);
    console.log(`${status}: ${total} deliveries${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`);
  }
  return isPaused ? 1 : 0;
}

/** The second one ends the process: the leases are the safety net, and the messages come back by themselves. */
function firstSignal(log: Log): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isStopping) {
        log.warn('left in a hurry; what was held comes back when its leases run out', { signal });
        process.exit(1);
      }
      isStopping = true;
      resolve(signal);
    };
    for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  });
}

function readCount(name: string, text: string, max: number): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= max) return count;
  throw new UsageError(`${name} is "${text}"; it must be a number from 1 to ${max}`);
}

export const work: Command = { summary: 'carry claims to the ledger, process webhook events', usage, run };

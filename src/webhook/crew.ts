// Workers that let queued events take effect, side by side, woken together.

import { isUnavailable } from '#core/failure.ts';
import { type Log, type Metrics, NO_TRACER, type Tracer } from '#core/ports.ts';
import { EVENTS_PER_HANDLER, Processor } from '#core/webhook/processor.ts';
import { createDatabase } from '../db/database.ts';
import { startListener } from '../db/listener.ts';
import { type Loop, startLoop } from '../loop.ts';
import { doesChores, type Part, restOf, WHOLE } from '../processes/part.ts';
import { type ComparisonOptions, compareWithProviders } from './comparison.ts';
import { HandlerDatabases, openWebhookStore } from './databases.ts';
import {
  createFaultTeller,
  type Handlers,
  registerHandlers,
  startRegistering,
  warnOfMissingHandlers,
} from './handlers.ts';
import { type EndpointSeries, startEndpointSeries } from './series.ts';
import { THIN_HANDLER, thinHandler } from './thin.ts';

type Comparing = Pick<ComparisonOptions, 'secretOf' | 'urls'> & {
  /** For tests: how often a worker looks whether an hour is over. COMPARE_MS where left out. */
  readonly everyMs?: number;
};

export interface WebhookCrewOptions {
  db2Url: string;
  workers: number;
  batchSize: number;
  handlers: Handlers;
  metrics: Metrics;
  log: Log;
  /** Nothing is traced if this is left out. */
  tracer?: Tracer;
  /** How providers are asked, once an hour what they sent, and for what thin events point at; not at all where left out. */
  compare?: Comparing;
  /** Which of several processes of the command this is; the only one where left out. */
  part?: Part;
}

/** The console, `status` and `doctor` count the workers by this name: no other connection may use it. */
const WORKER_NAME = 'sluice-webhook-worker';
export const DEFAULT_WEBHOOK_WORKERS = 2;
/** One batch is one transaction for SQL handlers: a larger one only holds its locks for longer. */
export const DEFAULT_WEBHOOK_BATCH = 100;
/** One for takes and finishes, one for heartbeats. Effects run on connections of their handlers. */
const PLAIN_CONNECTIONS = 2;
/** An SQL handler has a set under way, and perhaps a suspect beside it. */
const SQL_HANDLER_CONNECTIONS = 2;
const HANDLERS_NAME = 'sluice-webhook-handlers';
/** What webhook.wake_workers notifies. */
const WAKE_CHANNEL = 'sluice_webhooks';
/** How often a worker looks whether an hour is over. For so long an endpoint has its series before it is compared. */
const COMPARE_MS = 60 * 1_000;

export interface WebhookCrew {
  /** There is something to do. */
  wake(): void;
  /** Finishes or hands back what its workers hold. */
  stop(): Promise<void>;
}

/** Runs until stopped. New events wake it; without a word it looks by itself. */
export function startWebhookCrew(options: WebhookCrewOptions): WebhookCrew {
  const { db2Url, log } = options;
  const stopping = new AbortController();
  const members = Array.from({ length: options.workers }, (_, at) => {
    const { processor, end } = openProcessor({ ...options, at });
    return { processor, running: processor.run(stopping.signal), end };
  });
  const wake = () => {
    for (const { processor } of members) processor.wake();
  };
  const listener = startListener({ url: db2Url, channel: WAKE_CHANNEL, onNotice: wake, log });
  const loops = doesChores(options.part ?? WHOLE) ? startChores(options) : [];
  return {
    wake,
    async stop() {
      await Promise.all([listener.stop(), ...loops.map((loop) => loop.stop())]);
      stopping.abort();
      await Promise.all(members.map(({ running }) => running));
      await Promise.all(members.map(({ end }) => end()));
    },
  };
}

function startChores(options: WebhookCrewOptions): Loop[] {
  const { db2Url, handlers, metrics, log } = options;
  const chores = createDatabase({ url: db2Url, max: 1, applicationName: 'sluice-webhook-chores', log });
  const isThinServed = options.compare !== undefined;
  const has = (name: string) => handlers.has(name) || (isThinServed && name === THIN_HANDLER);
  const registering = startRegistering(chores, handlers, log, () =>
    warnOfMissingHandlers(chores, { has }, log),
  );
  const series = startEndpointSeries((name, args) => chores.call(`webhook.${name}`, args), metrics, log);
  const stop = async (): Promise<void> => {
    await Promise.all([registering.stop(), series.stop()]);
    await chores.end();
  };
  return [
    { stop },
    ...(options.compare === undefined ? [] : [startComparing({ ...options, ...options.compare }, series)]),
  ];
}

/** On a connection of its own: a comparison of a busy day takes minutes. */
function startComparing(options: WebhookCrewOptions & Comparing, series: EndpointSeries): Loop {
  const { db2Url, everyMs = COMPARE_MS, log } = options;
  const db2 = createDatabase({ url: db2Url, max: 1, applicationName: 'sluice-webhook-comparison', log });
  const isShown = (webhookId: string) => series.areShown(webhookId, everyMs);
  const loop = startLoop('comparing with providers', everyMs, log, (signal) =>
    compareWithProviders({ ...options, db2, isShown }, signal),
  );
  return {
    async stop() {
      await loop.stop();
      await db2.end();
    },
  };
}

export interface ProcessedOnce {
  /** Events by what became of them. */
  totals: Readonly<Record<string, number>>;
  /** True when DB2 was down, so that events wait for it. */
  isPaused: boolean;
}

/** Works until no event is due any more. */
export async function processOnce(options: WebhookCrewOptions, signal: AbortSignal): Promise<ProcessedOnce> {
  const totals: Record<string, number> = {};
  const { processor, database, end } = openProcessor(options);
  const count = (outcome: string) => {
    totals[outcome] = (totals[outcome] ?? 0) + 1;
  };
  try {
    createFaultTeller(options.log)(await registerHandlers(database, options.handlers));
    await processor.drain(signal, count);
    return { totals, isPaused: false };
  } catch (error) {
    // What ended before the outage has ended.
    if (!isUnavailable(error)) throw error;
    return { totals, isPaused: true };
  } finally {
    await end();
  }
}

/** `at` is its place in a crew, from 0: only the first looks often for what becomes due without a notice. */
export function openProcessor(
  options: WebhookCrewOptions & { readonly eventsPerHandler?: number; readonly at?: number },
  applicationName = WORKER_NAME,
) {
  const { db2Url, batchSize, compare, metrics, tracer = NO_TRACER, log, part = WHOLE } = options;
  const { eventsPerHandler = EVENTS_PER_HANDLER, at } = options;
  // One of yours comes first. Ours is registered by the migrations, so that its events wait where no worker may ask.
  const handlers: Handlers =
    compare === undefined
      ? options.handlers
      : new Map([
          [THIN_HANDLER, thinHandler({ ...compare, db2: () => ofHandlers.of(THIN_HANDLER), log })],
          ...options.handlers,
        ]);
  const database = createDatabase({ url: db2Url, max: PLAIN_CONNECTIONS, applicationName, log });
  const ofHandlers: HandlerDatabases<string> = new HandlerDatabases((handler) => {
    const max = handlers.has(handler) ? eventsPerHandler : SQL_HANDLER_CONNECTIONS;
    return createDatabase({ url: db2Url, max, applicationName: HANDLERS_NAME, log });
  });
  const processor = new Processor(
    {
      store: openWebhookStore(database),
      connectionsOf(handler) {
        const own = ofHandlers.of(handler);
        return { process: openWebhookStore(own).process, transact: own.transact };
      },
      handlers,
      log,
      metrics,
      tracer,
      now: Date.now,
      ...restOf(part, at),
    },
    batchSize,
  );
  return {
    processor,
    database,
    async end() {
      await Promise.all([database.end(), ofHandlers.end()]);
    },
  };
}

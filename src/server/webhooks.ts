// The webhook door on Node: connections to DB2 that recording, lookups and each handler's effects do not share, the fast
// HMAC, and a word to the workers.

import type { Inbox } from '#core/inbox/inbox.ts';
import { type Log, type Metrics, NO_TRACER, type Tracer } from '#core/ports.ts';
import { DELIVERY_MS } from '#core/router.ts';
import { ASIDE_CONNECTIONS } from '#core/side_lane.ts';
import type { UnsignedLimit } from '#core/unsigned.ts';
import { SQL_EVENTS_PER_HANDLER } from '#core/webhook/inline.ts';
import { EVENTS_PER_HANDLER } from '#core/webhook/processor.ts';
import { WebhookRoutes } from '#core/webhook/routes.ts';
import { createFindSecret, type SecretSource } from '#core/webhook/secrets.ts';
import { createDatabase, LANE_LOCK_TIMEOUT_MS } from '../db/database.ts';
import { type Part, shareOf, WHOLE } from '../processes/part.ts';
import { openProcessor } from '../webhook/crew.ts';
import { HandlerDatabases, openWebhookStore } from '../webhook/databases.ts';
import { type Handlers, NO_HANDLERS, startRegistering } from '../webhook/handlers.ts';
import { signaturePorts } from '../webhook/hmac.ts';
import { wakeWorkers } from './wake.ts';

export interface WebhookRoutesOptions {
  db2Url: string;
  onRecorded?: () => void;
  secretOf: SecretSource;
  handlers?: Handlers;
  tracer?: Tracer;
  unsigned?: UnsignedLimit | undefined;
  inbox: Inbox;
  part?: Part;
}

/** A second recording connection would only make the batches smaller; the others are for endpoints that are stuck. */
const LANE_CONNECTIONS = 1 + ASIDE_CONNECTIONS;
/** For the looks for an endpoint and its secrets, once a second each, the handlers, and the word to the workers. */
const LOOKUP_CONNECTIONS = 1;
export interface OpenWebhookRoutes extends Pick<WebhookRoutes, 'routes' | 'drain'> {
  end(): Promise<void>;
}

export function openWebhookRoutes(
  options: WebhookRoutesOptions,
  metrics: Metrics,
  log: Log,
): OpenWebhookRoutes {
  const { db2Url, handlers = NO_HANDLERS, tracer = NO_TRACER, part = WHOLE } = options;
  const share = (limit: number) => shareOf(limit, part);
  const open = (max: number, applicationName: string, lockTimeoutMs?: number) =>
    createDatabase({
      url: db2Url,
      max,
      applicationName,
      callTimeoutMs: DELIVERY_MS,
      ...(lockTimeoutMs && { lockTimeoutMs }),
      log,
    });
  const lane = open(LANE_CONNECTIONS, 'sluice-webhooks', LANE_LOCK_TIMEOUT_MS);
  const lookups = open(LOOKUP_CONNECTIONS, 'sluice-webhooks-lookups');
  const inline = new HandlerDatabases<number>(() =>
    open(share(SQL_EVENTS_PER_HANDLER), 'sluice-webhooks-inline'),
  );
  const { processor, end } = openProcessor(
    {
      ...{ db2Url, workers: 1, batchSize: 1, handlers, metrics, tracer, log },
      eventsPerHandler: share(EVENTS_PER_HANDLER),
    },
    'sluice-webhooks-handlers',
  );
  const registering = startRegistering(lookups, handlers, log);
  const stopping = new AbortController();
  const findSecret = createFindSecret((name, args) => lookups.call(`webhook.${name}`, args));
  const wake = wakeWorkers(lookups, 'webhook.wake_workers', log, options.onRecorded);
  const webhookRoutes = new WebhookRoutes({
    store: {
      findEndpoint: openWebhookStore(lookups).findEndpoint,
      // Before that, an event of a new handler would be skipped, or the next best handler's.
      async processEvent(id, ofHandler) {
        await registering.registered();
        return openWebhookStore(inline.of(ofHandler)).processEvent(id, ofHandler);
      },
      findReply: openWebhookStore(lookups).findReply,
      record: openWebhookStore(lane).record,
    },
    ...signaturePorts(metrics, log, findSecret, options.secretOf),
    ...(handlers.size > 0 && { runTypescript: (id) => processor.runOne(id, stopping.signal) }),
    share,
    wake,
    inbox: options.inbox,
    unsigned: options.unsigned,
    tracer,
  });
  return {
    routes: () => webhookRoutes.routes(),
    drain: () => webhookRoutes.drain(),
    async end() {
      stopping.abort();
      await Promise.all([wake.stop(), registering.stop()]);
      await Promise.all([lane.end(), lookups.end(), inline.end(), end()]);
    },
  };
}

// Asks a provider what it sent, from Node: with the endpoint's key, over fetch, into DB2. `sluice webhooks backfill`, the hourly
// comparison and `sluice reconcile --stripe` all open their source here.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#core/ports.ts';
import { type Api, type ApiPorts, type Ask, createAsk, SourceError } from '#core/webhook/backfill/ask.ts';
import { Backfill, type Counts } from '#core/webhook/backfill/backfill.ts';
import type { AskingEndpoint, Source, Stretch } from '#core/webhook/backfill/source.ts';
import {
  type ApiUrls,
  apiUrl,
  keyNameOf,
  SOURCE_PROVIDERS,
  sourceOf,
} from '#core/webhook/backfill/sources.ts';
import { minSecretChars, SECRET_FAULTS, type Secrets } from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';
import { openWebhookStore } from './databases.ts';
import { nodeHmac } from './hmac.ts';

export const API_VARIABLES = {
  STRIPE_API_KEY:
    'a restricted key of Stripe: may read events, charges and disputes, and write sessions and refunds where pools are paid for (docs/integrations/stripe.md)',
  TWILIO_API_KEY:
    'SK…:secret or AC…:token of Twilio: may read calls and messages (docs/integrations/twilio.md)',
  'STRIPE_API_URL, TWILIO_API_URL':
    "the providers' APIs (default: https://api.stripe.com, https://api.twilio.com)",
};

export interface OpenSource {
  readonly source: Source;
  readonly accounts: readonly string[];
  readonly ask: Ask;
}

export interface Asking {
  readonly secrets: Pick<Secrets, 'read'>;
  readonly urls: ApiUrls;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Whether a key is configured for the endpoint, good or not. */
export async function isKeyed(endpoint: AskingEndpoint, secrets: Pick<Secrets, 'read'>): Promise<boolean> {
  const name = keyNameOf(endpoint);
  if (name === undefined || sourceOf(endpoint.provider) === undefined) return false;
  const read = await secrets.read(name, minSecretChars());
  return 'value' in read || read.fault !== 'not_set';
}

/** Throws SourceError where the endpoint's provider cannot be asked, or its key is not there. */
export async function openSource(endpoint: AskingEndpoint, asking: Asking): Promise<OpenSource> {
  const source = sourceOf(endpoint.provider);
  if (source === undefined)
    throw new SourceError(
      `${endpoint.provider} cannot be asked what it sent`,
      `known are endpoints of ${SOURCE_PROVIDERS.join(' and ')}`,
    );
  const name = keyNameOf(endpoint);
  const hint = `name a key: sluice webhooks endpoints change ${endpoint.name} --api-key-name NAME`;
  if (name === undefined)
    throw new SourceError(`the endpoint ${endpoint.name} names no key to ask its provider with`, hint);
  const read = await asking.secrets.read(name, minSecretChars());
  if ('value' in read) return open(source, endpoint, { name, value: read.value }, asking);
  throw new SourceError(
    `${name} ${SECRET_FAULTS[read.fault]}`,
    `its value is looked for in DB2's Vault, in SLUICE_SECRETS_FILE and in the environment; or ${hint}`,
  );
}

function open(
  source: Source,
  endpoint: AskingEndpoint,
  key: { name: string; value: string },
  { urls, log, signal }: Asking,
): OpenSource {
  const { headers, accounts } = source.access(key.value, endpoint, key.name);
  const { title, rights } = source;
  const api: Api = { title, rights, headers, key: key.value, keyName: key.name, url: apiUrl(source, urls) };
  const ports: ApiPorts = {
    fetch,
    pause: (ms, stop) => sleep(ms, undefined, { signal: stop }),
    random: Math.random,
    signal,
    onRetry: (reason, waitMs) =>
      log.info('a provider is asked again', { endpoint: endpoint.name, reason, wait_ms: Math.round(waitMs) }),
  };
  return { source, accounts, ask: createAsk(api, ports) };
}

export interface BackfillOptions {
  readonly db2: Database;
  readonly log: Log;
  readonly dryRun?: boolean;
  readonly onPage?: (counts: Counts) => void;
}

export function backfill(
  { source, accounts, ask }: OpenSource,
  endpoint: AskingEndpoint,
  stretch: Stretch,
  { db2, log, dryRun = false, onPage = () => undefined }: BackfillOptions,
): Promise<Counts> {
  const filling = new Backfill(endpoint, {
    store: openWebhookStore(db2),
    async knownEvents(webhookId, eventIds) {
      const args = { p_webhook_id: webhookId, p_event_ids: eventIds };
      const rows = await db2.call<{ known_events: string }>('webhook.known_events', args);
      return new Set(rows.map((row) => row.known_events));
    },
    context: { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) },
    log,
    async wake() {
      await db2.call('webhook.wake_workers', {});
    },
    onPage,
  });
  return filling.run(source.list(ask, stretch, accounts), dryRun);
}

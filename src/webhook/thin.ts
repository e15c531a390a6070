// Thin events of Stripe about payments: they name their object and carry no amounts. A worker asks Stripe for the object, with the
// key of the endpoint, and the event has the effect of the one that would have carried it.

import { within } from '#core/deadline.ts';
import { stringifyMarked } from '#core/digits.ts';
import type { Log } from '#core/ports.ts';
import { SourceError } from '#core/webhook/backfill/ask.ts';
import type { ApiUrls } from '#core/webhook/backfill/sources.ts';
import { API_VERSION } from '#core/webhook/backfill/stripe.ts';
import { type HandledEvent, type Handler, PermanentError, TryLater } from '#core/webhook/handlers.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import type { JsonObject } from '#core/webhook/read.ts';
import type { SecretSource } from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';
import { openSource } from './backfill.ts';
import { secretsOf } from './secret_users.ts';

/** As the migration of payments registers it, for each type that has a rule. */
export const THIN_HANDLER = 'stripe-thin';
/** Shorter than a handler's call may take, so that an outage of Stripe counts as one and not as a failure of the event. */
const ASK_MS = 20_000;
const SNAPSHOT = /^evt_\w+$/;
const OBJECT_URL = /^\/v1\/[\w/]+$/;

export interface ThinOptions {
  readonly db2: () => Database;
  readonly secretOf: SecretSource;
  readonly urls: ApiUrls;
  readonly log: Log;
}

export function thinHandler(options: ThinOptions): Handler<JsonObject> {
  return {
    name: THIN_HANDLER,
    provider: 'stripe',
    types: ['v1.*'],
    async call(event, signal) {
      try {
        return await within((ending) => fetchPayload(event, options, ending), ASK_MS, signal);
      } catch (error) {
        if (signal.aborted || error instanceof PermanentError) throw error;
        if (error instanceof SourceError && error.status === 404) throw new PermanentError(error.message);
        throw new TryLater(
          `a thin event carries no amounts, and Stripe could not be asked for them: ${wordsOf(error)}`,
        );
      }
    },
    async apply({ id }, tx, payload) {
      const args = { p_id: id, p_payload: stringifyMarked(payload) };
      const [row] = await tx.call<{ apply_fetched: string | null }>('webhook.apply_fetched', args);
      return row?.apply_fetched ?? undefined;
    },
  };
}

function wordsOf(error: unknown): string {
  const { message } = error as Error;
  return error instanceof SourceError ? `${message} (${error.hint})` : message;
}

/** The payload of the event that carries the object. */
async function fetchPayload(
  { webhookId, payload }: HandledEvent,
  { db2, secretOf, urls, log }: ThinOptions,
  signal: AbortSignal,
): Promise<JsonObject> {
  const { snapshot_event: snapshot, related_object: related, context } = payload;
  const store = createOperatorStore((name, args) => db2().call(`webhook.${name}`, args));
  const endpoint = (await store.listEndpoints()).find(({ webhook_id }) => webhook_id === webhookId);
  if (endpoint === undefined) throw new PermanentError('its endpoint is gone');
  const { ask } = await openSource(endpoint, { secrets: secretsOf(db2(), secretOf), urls, log, signal });
  const account: Record<string, string> = typeof context === 'string' ? { 'stripe-account': context } : {};
  // As Stripe would have sent it, where it says which event that is.
  if (typeof snapshot === 'string' && SNAPSHOT.test(snapshot)) return ask(`/v1/events/${snapshot}`, account);
  const url: unknown = related?.url;
  if (typeof url !== 'string' || !OBJECT_URL.test(url))
    throw new PermanentError('it names no object of Stripe');
  const object = await ask(url, { ...account, 'stripe-version': API_VERSION });
  return { api_version: API_VERSION, data: { object } };
}

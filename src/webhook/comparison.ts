// Once an hour the last day of each endpoint is compared with its provider's records, where a key for it is configured, and what
// is missing is recorded. However many servers look, SQL gives each endpoint's turn to one of them.

import { limited } from '#core/deadline.ts';
import type { Log, Metrics } from '#core/ports.ts';
import { type AskingEndpoint, stretchOf } from '#core/webhook/backfill/source.ts';
import type { ApiUrls } from '#core/webhook/backfill/sources.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import type { SecretSource } from '#core/webhook/secrets.ts';
import type { Database } from '../db/database.ts';
import { backfill, isKeyed, openSource } from './backfill.ts';
import { secretsOf } from './secret_users.ts';
import type { COMPARISON_RESULTS } from './series.ts';

export interface ComparisonOptions {
  readonly db2: Database;
  readonly secretOf: SecretSource;
  readonly urls: ApiUrls;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Whether a scrape had time to see the endpoint's series before anything is counted in them. */
  readonly isShown: (webhookId: string) => boolean;
}

const HOUR_SEC = 3_600;
const DAY_MS = 24 * HOUR_SEC * 1_000;
/** A younger event may still be on its way to us. */
const YOUNG_MS = 5 * 60 * 1_000;
/** The next one is due by then. */
const LONGEST_MS = HOUR_SEC * 1_000;

/** Compares every endpoint whose turn it is. A failure is told, and the next turn comes in an hour. */
export async function compareWithProviders(options: ComparisonOptions, stop: AbortSignal): Promise<void> {
  const store = createOperatorStore((name, args) => options.db2.call(`webhook.${name}`, args));
  for (const endpoint of await store.listEndpoints()) {
    if (endpoint.is_active && options.isShown(endpoint.webhook_id) && !stop.aborted)
      await compareOne(endpoint, options, stop);
  }
}

async function compareOne(
  endpoint: AskingEndpoint,
  options: ComparisonOptions,
  stop: AbortSignal,
): Promise<void> {
  const { db2, secretOf, urls, metrics, log } = options;
  const { webhook_id, provider } = endpoint;
  const secrets = secretsOf(db2, secretOf);
  const tell = (result: (typeof COMPARISON_RESULTS)[number]) =>
    metrics.count('webhook_comparisons_total', { webhook_id, provider, result });
  const fill = async (signal: AbortSignal) => {
    const open = await openSource(endpoint, { secrets, urls, log, signal });
    const nowMs = Date.now();
    return backfill(open, endpoint, stretchOf(nowMs - DAY_MS, nowMs - YOUNG_MS), { db2, log });
  };
  try {
    if (!(await isKeyed(endpoint, secrets)) || !(await takeTurn(db2, webhook_id))) return;
    const counts = await limited(fill, LONGEST_MS, stop);
    const missing = counts.new - counts.unhandled;
    tell('done');
    metrics.count('webhook_missing_total', { webhook_id, provider }, missing);
    // An event without a handler has no effect either: mostly its type is one that the provider was never told to send.
    log[missing > 0 ? 'warn' : 'info']('compared with the provider', {
      endpoint: endpoint.name,
      missing,
      ...counts,
    });
  } catch (error) {
    if (stop.aborted) return;
    log.error('the comparison with the provider failed; the next one is due in an hour', {
      endpoint: endpoint.name,
      cause: error,
    });
    tell('failed');
  }
}

async function takeTurn(db2: Database, webhookId: string): Promise<boolean> {
  const args = { p_webhook_id: webhookId, p_every_sec: HOUR_SEC };
  const [row] = await db2.call<{ begin_comparison: boolean }>('webhook.begin_comparison', args);
  return row?.begin_comparison === true;
}

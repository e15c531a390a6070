// What became of an event, told to the log and the metrics in one place.

import type { Log, Metrics } from '../ports.ts';
import type { Recorded } from './ports.ts';
import { providerOf, type ReadEvent } from './provider.ts';

export interface Outcome {
  readonly webhookId: string;
  readonly provider: string;
  readonly eventId: string;
  readonly eventType: string;
  /** Of the lease it was tried under. Left out where there was none: only the database knows. */
  readonly attempts?: number;
  readonly takeovers?: number;
  /** A status that an event can end a try with, or lost_lease. */
  readonly result: string;
  readonly error: string | null;
  readonly durationMs: number;
}

/** Of a try. Few and fixed, because each is a time series. */
const RESULTS = ['success', 'skipped', 'failed', 'dead_letter', 'lost_lease', 'handed_back'];
/** As few: the error's own text stays in the row. */
const DEAD_LETTER_REASONS = ['handler_error', 'quarantine'] as const;
type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

/** What the log calls an event that was recorded without going on to its handler. */
export const ENDED_BY = {
  skipped: 'event skipped: it is not for this endpoint',
  quarantined: 'event quarantined',
  body_differs: 'known event with another body',
} as const;

interface EndpointLabels {
  readonly webhook_id: string;
  readonly provider: string;
}

/** The endpoint's series show 0 from now on. */
export function beginOutcomes({ webhook_id, provider }: EndpointLabels, metrics: Metrics): void {
  const labels = { webhook_id, provider: providerOf(provider) };
  for (const result of RESULTS) metrics.count('webhook_processing_total', { ...labels, result }, 0);
  for (const reason of DEAD_LETTER_REASONS)
    metrics.count('webhook_dead_letter_total', { ...labels, reason }, 0);
}

export function countDeadLetter(labels: EndpointLabels, reason: DeadLetterReason, metrics: Metrics): void {
  const { webhook_id, provider } = labels;
  metrics.count('webhook_dead_letter_total', { webhook_id, provider: providerOf(provider), reason });
}

export function tellOutcome(outcome: Outcome, log: Log, metrics: Metrics): void {
  const { webhookId, result, error } = outcome;
  // The endpoint has a label of its own.
  const provider = providerOf(outcome.provider);
  const labels = { webhook_id: webhookId, provider };
  metrics.count('webhook_processing_total', { ...labels, result });
  metrics.observe('webhook_processing_seconds', { provider, result }, outcome.durationMs / 1000);
  if (result === 'dead_letter') countDeadLetter(labels, 'handler_error', metrics);
  const isFine = result === 'success' || result === 'skipped';
  if (isFine && !log.debugEnabled) return;
  log[isFine ? 'debug' : 'warn']('event processed', {
    event_id: outcome.eventId,
    event_type: outcome.eventType,
    webhook_id: webhookId,
    provider,
    attempts: outcome.attempts,
    takeovers: outcome.takeovers,
    duration_ms: Math.round(outcome.durationMs),
    result,
    error,
  });
}

/** Tells what is out of the ordinary. True where one of the events is new and waits for its effect. */
export function tellRecorded(
  endpoint: { readonly webhook_id: string; readonly provider: string },
  events: readonly ReadEvent[],
  recorded: readonly Recorded[],
  { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
): boolean {
  let isNew = false;
  for (const [index, { outcome }] of recorded.entries()) {
    isNew ||= outcome === 'recorded';
    if (outcome === 'recorded' || outcome === 'duplicate') continue;
    if (outcome === 'quarantined') countDeadLetter(endpoint, 'quarantine', metrics);
    log.warn(ENDED_BY[outcome], {
      event_id: events[index]?.eventId,
      webhook_id: endpoint.webhook_id,
      reason: events[index]?.quarantine,
    });
  }
  return isNew;
}

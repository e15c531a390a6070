// The way of an event as traces show it: the door's part, and each try to let it take effect.

import { type Clock, NO_TRACER, type Tracer } from '../ports.ts';
import type { Outcome } from './outcome.ts';
import type { Endpoint, Recorded } from './ports.ts';
import type { ReadEvent } from './provider.ts';

export interface TracePorts {
  readonly tracer?: Tracer;
  readonly now: Clock;
}

/** One span for each event of the delivery. A duplicate stands below the delivery that was the first. */
export function traceRecorded(
  { webhook_id, provider }: Endpoint,
  events: readonly ReadEvent[],
  recorded: readonly Recorded[],
  startMs: number,
  { tracer = NO_TRACER, now }: TracePorts,
): void {
  if (!tracer.isOn) return;
  const endMs = now();
  for (const [index, { id, outcome }] of recorded.entries())
    tracer.record({
      name: 'webhook',
      subject: id,
      isRoot: outcome === 'recorded' || outcome === 'skipped' || outcome === 'quarantined',
      kind: 'server',
      startMs,
      endMs,
      attributes: {
        'sluice.event_id': events[index]?.eventId ?? '',
        'sluice.webhook_id': webhook_id,
        'sluice.provider': provider,
        'sluice.outcome': outcome,
      },
    });
}

/** `id` is the row's own. */
export function traceOutcome(id: string, outcome: Outcome, { tracer = NO_TRACER, now }: TracePorts): void {
  if (!tracer.isOn) return;
  const { result, error } = outcome;
  const endMs = now();
  tracer.record({
    name: 'process',
    subject: id,
    kind: 'consumer',
    startMs: endMs - outcome.durationMs,
    endMs,
    attributes: {
      'sluice.event_id': outcome.eventId,
      'sluice.event_type': outcome.eventType,
      'sluice.webhook_id': outcome.webhookId,
      'sluice.provider': outcome.provider,
      'sluice.outcome': result,
    },
    ...(result !== 'success' && result !== 'skipped' && { failure: error ?? result }),
  });
}

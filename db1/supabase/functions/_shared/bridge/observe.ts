// What became of messages, told to the metrics once a finish and to the traces once a message.

import { type Clock, type Metrics, NO_TRACER, type TracedSpan, type Tracer } from '../ports.ts';
import { textOf } from '../text.ts';
import type { Delivery } from './delivery.ts';

export interface ObservePorts {
  readonly metrics: Metrics;
  readonly tracer?: Tracer;
  readonly now: Clock;
}

/** Outcomes that an operator need not look at. */
const ROUTINE: ReadonlySet<string> = new Set(['committed', 'gone', 'refused']);

/** A hook is known by its host: the rest of its address may hold a secret. */
export function labelOfTarget(target: string): string {
  return URL.canParse(target) ? new URL(target).host : target;
}

export function tellGroup(
  deliveries: readonly Delivery[],
  became: ReadonlyMap<number, string>,
  startMs: number,
  { metrics, tracer = NO_TRACER, now }: ObservePorts,
): void {
  const endMs = now();
  const tally: Record<string, number> = {};
  for (const { msgId } of deliveries) {
    const outcome = became.get(msgId) ?? 'lost_lease';
    tally[outcome] = (tally[outcome] ?? 0) + 1;
  }
  for (const [outcome, count] of Object.entries(tally))
    metrics.count('sluice_bridge_deliveries_total', { outcome }, count);
  metrics.observe('sluice_bridge_step_seconds', {}, (endMs - startMs) / 1000);
  if (!tracer.isOn) return;
  for (const delivery of deliveries) {
    const { subject, reason, msgId } = delivery;
    if (subject === undefined) continue;
    const outcome = became.get(msgId) ?? 'lost_lease';
    tracer.record({
      name: 'bridge',
      subject,
      ...callerOf(delivery),
      kind: 'consumer',
      startMs,
      endMs,
      attributes: { ...namesOf(delivery), 'sluice.outcome': outcome, 'sluice.batch_size': deliveries.length },
      ...(!ROUTINE.has(outcome) && { failure: reason ?? outcome }),
    });
  }
}

/** `result` is an outcome for each delivery, or the error that all of them met. */
export function tellCommit(
  deliveries: readonly Delivery[],
  result: unknown,
  startMs: number,
  { metrics, tracer = NO_TRACER, now }: ObservePorts,
): void {
  const endMs = now();
  const outcomes: readonly string[] | undefined = Array.isArray(result) ? result : undefined;
  const tally: Record<string, number> = {};
  for (const outcome of outcomes ?? []) tally[outcome] = (tally[outcome] ?? 0) + 1;
  for (const [outcome, count] of Object.entries(tally))
    metrics.count('sluice_ledger_tickets_total', { outcome }, count);
  const labels = { result: outcomes === undefined ? 'failed' : 'answered' };
  metrics.observe('sluice_ledger_commit_seconds', labels, (endMs - startMs) / 1000);
  if (!tracer.isOn) return;
  for (const [index, delivery] of deliveries.entries())
    tracer.record({
      name: 'ledger',
      subject: delivery.identity,
      ...callerOf(delivery),
      kind: 'client',
      startMs,
      endMs,
      attributes: { ...namesOf(delivery), 'sluice.outcome': outcomes?.[index] ?? 'failed' },
      ...(outcomes === undefined && { failure: textOf(result) }),
    });
}

/** `result` is the status that a hook answered with, or why there was none; `spanId` is what the hook was told of the call. */
export function tellCall(
  delivery: Delivery,
  { url, startedMs, spanId }: { url: string; startedMs: number; spanId: string | undefined },
  result: unknown,
  { tracer = NO_TRACER, now }: ObservePorts,
): void {
  if (!tracer.isOn) return;
  const isAnswer = typeof result === 'number';
  tracer.record({
    name: 'hook call',
    subject: delivery.identity,
    ...callerOf(delivery),
    ...(spanId !== undefined && { spanId }),
    kind: 'client',
    startMs: startedMs,
    endMs: now(),
    attributes: {
      ...namesOf(delivery),
      'server.address': labelOfTarget(url),
      ...(isAnswer && { 'http.response.status_code': result }),
    },
    ...((!isAnswer || result >= 500) && { failure: isAnswer ? `status ${result}` : textOf(result) }),
  });
}

function callerOf({ caller }: Delivery): Pick<TracedSpan, 'caller'> {
  return caller === undefined ? {} : { caller };
}

function namesOf(delivery: Delivery): Record<string, string | number> {
  return {
    'sluice.claim_id': delivery.identity,
    'sluice.pool_id': delivery.payload.pool_id,
    'messaging.message.id': delivery.msgId,
    'sluice.read_ct': delivery.readCt,
  };
}

// Commit to the ledger: in one call for all that use the default function, one by one for the others. A failing batch is
// halved until the message that spoils it stands alone.

import { toDoorError } from '../errors.ts';
import type { Breaker } from './breaker.ts';
import type { Delivery } from './delivery.ts';
import { tellCommit } from './observe.ts';
import type { BridgePorts, Ledger } from './ports.ts';
import type { Trouble } from './trouble.ts';

export interface CommitContext extends BridgePorts {
  readonly signal: AbortSignal;
  readonly trouble: Trouble;
  breakerOf(target: string): Breaker;
}

const DEFAULT_FUNCTION = 'finalize_transaction';
export const LEDGER = 'ledger';

// No such function, no such table, no right to it: the ledger is not set up (yet), and no message can help it. The last
// is PostgREST's word for the first.
const NOT_SET_UP: ReadonlySet<unknown> = new Set(['42883', '42P01', '42501', 'PGRST202']);

export async function commitToLedger(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  const waiting = deliveries.filter(
    (delivery) => delivery.isOpen && delivery.config.commit_webhook_url === null,
  );
  if (waiting.length === 0 || context.signal.aborted) return;
  const ledger = context.ledger();
  const inSets = waiting.filter((delivery) => delivery.config.commit_rpc_name === DEFAULT_FUNCTION);
  if (inSets.length > 0) await commitSet(inSets, ledger, context);
  for (const delivery of waiting) {
    if (context.signal.aborted) return;
    if (delivery.isOpen) await commitOne(delivery, ledger, context);
  }
}

async function commitSet(deliveries: Delivery[], ledger: Ledger, context: CommitContext): Promise<void> {
  const breaker = context.breakerOf(LEDGER);
  if (breaker.openUntilMs > 0) {
    for (const delivery of deliveries) delivery.end('outage', 'ledger unavailable');
    return;
  }
  const startedMs = context.now();
  try {
    const outcomes = await ledger.finalizeBatch(deliveries.map((delivery) => delivery.payload));
    breaker.succeeded();
    tellCommit(deliveries, outcomes, startedMs, context);
    for (const [index, delivery] of deliveries.entries()) {
      if (outcomes[index] === 'conflict') delivery.end('dead_letter', 'ticket_conflict');
      else delivery.end('committed');
    }
  } catch (error) {
    tellCommit(deliveries, error, startedMs, context);
    if (isOutage(error) || NOT_SET_UP.has((error as { code?: unknown }).code)) {
      breaker.outage();
      context.log.warn('the ledger is unavailable', { messages: deliveries.length, cause: error });
      for (const delivery of deliveries) delivery.end('outage', 'ledger unavailable');
    } else if (deliveries.length === 1) {
      for (const delivery of deliveries) endFailed(delivery, error, context);
    } else {
      const half = deliveries.length >> 1;
      await commitSet(deliveries.slice(0, half), ledger, context);
      await commitSet(deliveries.slice(half), ledger, context);
    }
  }
}

async function commitOne(delivery: Delivery, ledger: Ledger, context: CommitContext): Promise<void> {
  const breaker = context.breakerOf(LEDGER);
  if (breaker.openUntilMs > 0) {
    delivery.end('outage', 'ledger unavailable');
    return;
  }
  const startedMs = context.now();
  try {
    await ledger.call(delivery.config.commit_rpc_name, delivery.payload);
    breaker.succeeded();
    tellCommit([delivery], ['committed'], startedMs, context);
    delivery.end('committed');
  } catch (error) {
    tellCommit([delivery], error, startedMs, context);
    if (isOutage(error)) {
      breaker.outage();
      context.log.warn('the ledger is unavailable', { ...delivery.names, cause: error });
      delivery.end('outage', 'ledger unavailable');
    } else {
      endFailed(delivery, error, context);
    }
  }
}

function isOutage(error: unknown): boolean {
  const { code } = toDoorError(error).kind;
  return code === 'database_unavailable';
}

/**
 * Data the ledger refuses is refused for ever (classes 22, 23 and our own); anything else may be mended and is retried.
 * A lock or a timeout can be the message's doing; where it meets one message after another, it is the ledger's.
 */
function endFailed(delivery: Delivery, error: unknown, { trouble, breakerOf }: CommitContext): void {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const reason = `${String(code ?? 'error')}: ${String(message ?? error)}`;
  const isPermanent = typeof code === 'string' && /^(22|23|SL)/.test(code);
  if (toDoorError(error).kind.code === 'busy') trouble.failed(delivery, breakerOf(LEDGER), reason);
  else delivery.end(isPermanent ? 'dead_letter' : 'retry', reason);
}

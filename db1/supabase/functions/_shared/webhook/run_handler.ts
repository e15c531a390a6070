// One event through one TypeScript handler: calls to the outside first, then effect and mark in one transaction. Between
// the two the lease may be lost; the transaction looks, and then nothing of it happens.

import { within } from '../deadline.ts';
import { isFaultOfCode, isUnavailable } from '../failure.ts';
import { storable, textOf } from '../text.ts';
import { type Transact, type Transaction, TransactionEnded } from '../transaction.ts';
import { type HandledEvent, type Handler, PermanentError } from './handlers.ts';
import type { FinishOutcome, Processed, TakenEvent, WebhookStore } from './ports.ts';
import { providerOf } from './provider.ts';
import { verdictOf } from './verdict.ts';

export interface Timeouts {
  readonly callMs: number;
  readonly applyMs: number;
}

export interface RunPorts {
  readonly store: Pick<WebhookStore, 'finish'>;
  readonly transact: Transact;
  readonly timeouts?: Timeouts;
}

/**
 * A call to the outside that takes longer has failed, as far as a queue is concerned. An effect has longer than a single
 * statement may take, so that it is the server that stops a slow one, and says so.
 */
const TIMEOUTS: Timeouts = { callMs: 30_000, applyMs: 45_000 };

class LostLease extends Error {
  override readonly name = 'LostLease';
}

/** What the handler itself has thrown: an ECONNREFUSED in it is not about our database. */
class HandlerFailed extends Error {
  override readonly name = 'HandlerFailed';
}

export async function runHandler(
  taken: TakenEvent,
  handler: Handler,
  ports: RunPorts,
  signal: AbortSignal,
): Promise<Processed> {
  const { callMs, applyMs } = ports.timeouts ?? TIMEOUTS;
  const event = handled(taken);
  let called: unknown;
  try {
    called = await within((giveUp) => handler.call?.(event, giveUp), callMs, signal);
  } catch (error) {
    // Our own shutdown called it off: that counts as a failure of neither the event nor the handler.
    if (signal.aborted) return handBack(taken, ports);
    return fail(taken, error, ports);
  }
  try {
    return await ports.transact((tx) => apply(taken, event, handler, called, tx), applyMs);
  } catch (error) {
    if (error instanceof LostLease) return { status: null, error: null, outcome: 'lost_lease' };
    // The database went away, and nothing happened: the lease runs out, and a worker tries again.
    if (isUnavailable(error)) throw error;
    return fail(taken, reasonOf(error), ports);
  }
}

/** A handler that ended its transaction may have left an effect without a mark: only a person can tell. */
function reasonOf(error: unknown): unknown {
  if (error instanceof TransactionEnded) return new PermanentError(error.message);
  return error instanceof HandlerFailed ? error.cause : error;
}

async function apply(
  taken: TakenEvent,
  event: HandledEvent,
  handler: Handler,
  called: unknown,
  tx: Transaction,
): Promise<Processed> {
  const lease = { p_id: taken.id, p_lease_token: taken.lease_token };
  const [held] = await tx.call<{ hold_event: boolean }>('webhook.hold_event', lease);
  if (held?.hold_event !== true) throw new LostLease();
  let reason: string | null;
  try {
    const answer: unknown = await handler.apply(event, tx, called);
    reason = typeof answer === 'string' ? storable(answer) : null;
  } catch (error) {
    throw new HandlerFailed('the handler failed', { cause: error });
  }
  const wanted: FinishOutcome = reason === null ? 'success' : 'skipped';
  const [row] = await tx.call<{ finish_event: string }>('webhook.finish_event', {
    ...lease,
    p_outcome: wanted,
    p_error: reason,
  });
  // Thrown, so that the effect goes with the mark.
  if (row?.finish_event !== wanted) throw new LostLease();
  return { status: wanted, error: reason, outcome: wanted };
}

/** For an operator: a fault of the code by its class, and behind "fetch failed" what failed. */
function wordsOf(error: unknown): string {
  const text = textOf(error);
  if (!(error instanceof Error)) return text;
  if (text === 'fetch failed' && error.cause !== undefined)
    return [text, textOf(error.cause)].filter(Boolean).join(': ');
  return isFaultOfCode(error) ? `${error.name}: ${text}` : text;
}

async function fail(taken: TakenEvent, error: unknown, { store }: RunPorts): Promise<Processed> {
  const text = wordsOf(error);
  const verdict = verdictOf(error);
  const outcome = await store.finish(taken, verdict, text);
  return { status: null, error: text, outcome, verdict };
}

/** Not tried, or not to its end, through no fault of its own. */
export async function handBack(taken: TakenEvent, { store }: Pick<RunPorts, 'store'>): Promise<Processed> {
  const status = await store.finish(taken, 'pending', null);
  return { status: null, error: null, outcome: status === 'pending' ? 'handed_back' : status };
}

function handled(taken: TakenEvent): HandledEvent {
  return {
    id: taken.id,
    webhookId: taken.webhook_id,
    provider: providerOf(taken.provider),
    tenant: taken.provider,
    eventId: taken.event_id,
    eventType: taken.event_type,
    occurredAt: taken.occurred_at,
    attempts: taken.attempts,
    payload: taken.payload,
    idempotencyKey: taken.idempotency_key,
  };
}

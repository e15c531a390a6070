// A handler in TypeScript: what its writer sees. docs/extend_webhooks.md shows one.

import { SQLSTATE } from '../failure.ts';
import type { Transaction } from '../transaction.ts';

export type { Transaction };

export interface HandledEvent {
  readonly id: string;
  readonly webhookId: string;
  readonly provider: string;
  /** Whose event it is: ids are unique, and effects belong, by tenant and not by provider. */
  readonly tenant: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly occurredAt: string | null;
  /** Which attempt this is, counted from 1. */
  readonly attempts: number;
  // biome-ignore lint/suspicious/noExplicitAny: as the provider made it; a handler checks what it needs.
  readonly payload: any;
  /** The same at every attempt: pass it on with calls to others, so that they can tell a retry. */
  readonly idempotencyKey: string;
}

export interface Handler<Called = unknown> {
  /** How the database knows it. Lower case, digits, `_` and `-`. */
  readonly name: string;
  readonly provider: string;
  /** Exact types, or prefixes that end in `*`. */
  readonly types: readonly string[];
  /** Only events of this endpoint. */
  readonly webhookId?: string;
  /**
   * Calls to the outside, before the transaction. May run again for the same event (with the same idempotencyKey), and
   * may run although `apply` then does not.
   */
  call?(event: HandledEvent, signal: AbortSignal): Promise<Called>;
  /**
   * The effect. Nothing, or the reason why there is none: the event is then marked as skipped. The transaction is not its
   * own to end: a handler that sends `commit` or `rollback` sends its event to the dead letters.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: an async function without a return is the usual handler
  apply(event: HandledEvent, tx: Transaction, called: Called): Promise<string | void>;
}

/**
 * Retrying cannot help: the event goes to the dead letters at once. Told by its code, as an SQL handler tells it: a module
 * of handlers may have loaded a copy of this class of its own.
 */
export class PermanentError extends Error {
  override readonly name = 'PermanentError';
  readonly code = SQLSTATE.permanentFailure;
}

/**
 * Not now: something the event needs is not there yet. The event is tried again after the longest wait, and that does not count
 * as an attempt; after seven days it becomes a dead letter.
 */
export class TryLater extends Error {
  override readonly name = 'TryLater';
  readonly code = SQLSTATE.tryLater;
}

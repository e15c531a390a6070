// Commit to the ledger: in one call for all that use the default function, one by one for the others. A failing batch is
// halved until the message that spoils it stands alone.

import { codeOf, isOutage, toHttpError } from '../errors.ts';
import type { Breaker } from './breaker.ts';
import type { Delivery } from './delivery.ts';
import { tellCommit } from './observe.ts';
import type { BridgePorts, Ledger, PoolConfig } from './ports.ts';
import type { Trouble } from './trouble.ts';

export interface CommitContext extends BridgePorts {
  readonly signal: AbortSignal;
  readonly trouble: Trouble;
  breakerOf(target: string): Breaker;
}

const DEFAULT_FUNCTION = 'finalize_transaction';
export const LEDGER = 'ledger';

// No such function, no such table, no right to it: the ledger is not set up (yet), and no message can help it. The last two
// are PostgREST's words: the schema is not served, there is no such function.
const NOT_SET_UP: ReadonlySet<string> = new Set(['42883', '42P01', '42501', 'PGRST106', 'PGRST202']);
// SQLSTATEs, and PostgREST's own codes. The system's names (EPIPE) begin with an E, which no SQLSTATE does.
const ANSWER = /^((?!E)[0-9A-Z]{5}|PGRST.*)$/;
// A statement or an index that is broken, PostgREST's own trouble, and what has no code at all.
const BROKEN = /^(42|XX|PGRST|$)/;

/** A function of the pool's own is a target beside the ledger: it can be missing, or slow, while all else works. */
export function targetsInLedger({ commit_rpc_name }: PoolConfig): string[] {
  return commit_rpc_name === DEFAULT_FUNCTION ? [LEDGER] : [LEDGER, ownTarget(commit_rpc_name)];
}

/** With a space, so that it can be taken neither for a hook's address nor for its host. */
function ownTarget(functionName: string): string {
  return `${LEDGER} ${functionName}`;
}

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
    if (isDown(error) || NOT_SET_UP.has(codeOf(error))) {
      breaker.outage();
      context.log.warn('the ledger is unavailable', { messages: deliveries.length, cause: error });
      for (const delivery of deliveries) delivery.end('outage', 'ledger unavailable');
    } else if (deliveries.length === 1) {
      for (const delivery of deliveries) endFailed(delivery, error, breaker, context);
    } else {
      const half = deliveries.length >> 1;
      await commitSet(deliveries.slice(0, half), ledger, context);
      await commitSet(deliveries.slice(half), ledger, context);
    }
  }
}

async function commitOne(delivery: Delivery, ledger: Ledger, context: CommitContext): Promise<void> {
  const { commit_rpc_name } = delivery.config;
  const breaker = context.breakerOf(LEDGER);
  const own = context.breakerOf(ownTarget(commit_rpc_name));
  if (breaker.openUntilMs > 0 || own.openUntilMs > 0) {
    delivery.end('outage', `${breaker.openUntilMs > 0 ? LEDGER : commit_rpc_name} unavailable`);
    return;
  }
  const startedMs = context.now();
  try {
    await ledger.call(commit_rpc_name, delivery.payload);
    breaker.succeeded();
    own.succeeded();
    tellCommit([delivery], ['committed'], startedMs, context);
    delivery.end('committed');
  } catch (error) {
    tellCommit([delivery], error, startedMs, context);
    if (isDown(error)) {
      breaker.outage();
      context.log.warn('the ledger is unavailable', { ...delivery.names, cause: error });
      delivery.end('outage', 'ledger unavailable');
    } else if (isMissing(commit_rpc_name, error)) {
      own.outage();
      context.log.warn('a commit function is unavailable', {
        ...delivery.names,
        commit_rpc_name,
        cause: error,
      });
      delivery.end('outage', `${commit_rpc_name} unavailable`);
    } else {
      endFailed(delivery, error, own, context);
    }
  }
}

/** Not there, or not granted. What its body says with such a code is about something else, and may be about the message. */
function isMissing(functionName: string, error: unknown): boolean {
  const code = codeOf(error);
  if (!NOT_SET_UP.has(code)) return false;
  return code.startsWith('PGRST') || (error instanceof Error && error.message.includes(functionName));
}

/** The ledger serves nobody, or nobody has answered: no connection, no TLS, no address. */
function isDown(error: unknown): boolean {
  if (isOutage(error)) return true;
  const code = codeOf(error);
  // What our own code stumbles over: one message may have brought it about.
  if (code === '' && (error instanceof TypeError || error instanceof RangeError)) return false;
  return !ANSWER.test(code);
}

/**
 * Data the ledger refuses is refused for ever (classes 22, 23 and our own). A lock, a timeout or what is broken can be the
 * message's doing; where it meets one message after another, it is the target's. Anything else was said about this
 * message, may be mended and is retried.
 */
function endFailed(delivery: Delivery, error: unknown, target: Breaker, { trouble }: CommitContext): void {
  const code = codeOf(error);
  const { message } = error as { message?: unknown };
  const reason = `${code || 'error'}: ${String(message)}`;
  if (toHttpError(error).kind.code === 'busy' || BROKEN.test(code)) trouble.failed(delivery, target, reason);
  else delivery.end(/^(22|23|SL)/.test(code) ? 'dead_letter' : 'retry', reason);
}

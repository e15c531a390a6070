// Commit to the ledger: in one call for all that use the default function, one by one for the others. A failing batch is
// halved until the message that spoils it stands alone.

import type { Breaker } from '../breaker.ts';
import { type Blame, blameOf, codeOf } from '../failure.ts';
import { byHalves } from '../halving.ts';
import { textOf } from '../text.ts';
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

/** The ledger serves nobody, or nobody has answered for it: no connection, no TLS, no address. */
const DOWN: ReadonlySet<Blame> = new Set<Blame>(['database', 'disk', 'unreached', 'unanswered']);
/** The ledger is not set up (yet), and no message can help it. */
const NOT_SET_UP: ReadonlySet<Blame> = new Set<Blame>(['missing', 'denied', 'unserved']);
/** Can be the message's doing; where it meets one message after another, it is the target's. */
const DOUBTFUL: ReadonlySet<Blame> = new Set<Blame>([
  'collision',
  'slow',
  'broken',
  'unread',
  'missing',
  'denied',
]);
/** Said about this message for ever: data the ledger refuses, and what our own functions refuse. */
const FINAL: ReadonlySet<Blame> = new Set<Blame>(['data', 'constraint', 'refused', 'permanent', 'later']);

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
  const endAll = (members: readonly Delivery[]): void => {
    for (const delivery of members) delivery.end('outage', 'ledger unavailable');
  };
  await byHalves(deliveries, {
    async work(members) {
      // One half may have found that the ledger is down.
      if (breaker.openUntilMs > 0) return endAll(members);
      const startedMs = context.now();
      try {
        const outcomes = await ledger.finalizeBatch(members.map((delivery) => delivery.payload));
        breaker.succeeded();
        tellCommit(members, outcomes, startedMs, context);
        for (const [index, delivery] of members.entries()) {
          if (outcomes[index] === 'conflict') delivery.end('dead_letter', 'ticket_conflict');
          else delivery.end('committed');
        }
      } catch (error) {
        tellCommit(members, error, startedMs, context);
        throw error;
      }
    },
    mayBeOneMembers: (error) => !isOutage(error),
    fail(members, error) {
      if (isOutage(error)) {
        breaker.outage();
        context.log.warn('the ledger is unavailable', { messages: members.length, cause: error });
        endAll(members);
      } else for (const delivery of members) endFailed(delivery, error, breaker, context);
    },
  });
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
    if (DOWN.has(blameOf(error))) {
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
  const blame = blameOf(error);
  return blame === 'unserved' || (NOT_SET_UP.has(blame) && textOf(error).includes(functionName));
}

/** The default function is the ledger's own: where it is missing, the ledger is not there yet. */
function isOutage(error: unknown): boolean {
  const blame = blameOf(error);
  return DOWN.has(blame) || NOT_SET_UP.has(blame);
}

/** What is neither doubtful nor final was said about this message, may be mended and is retried. */
function endFailed(delivery: Delivery, error: unknown, target: Breaker, { trouble }: CommitContext): void {
  const blame = blameOf(error);
  const reason = `${codeOf(error) || 'error'}: ${textOf(error)}`;
  if (DOUBTFUL.has(blame)) trouble.failed(delivery, target, reason);
  else delivery.end(FINAL.has(blame) ? 'dead_letter' : 'retry', reason);
}

// Commit to the ledger: as a set for the default function, one by one for a pool's own. A set that fails is halved until the
// message that spoils it stands alone.

import type { Breaker } from '../breaker.ts';
import { type Blame, blameOf, codeOf, hasLostSession, SQLSTATE } from '../failure.ts';
import { byHalves } from '../halving.ts';
import type { Limiter } from '../limiter.ts';
import { textOf } from '../text.ts';
import type { Delivery } from './delivery.ts';
import { tellCommit } from './observe.ts';
import type { BridgePorts } from './ports.ts';
import { LEDGER, targetOfFunction } from './targets.ts';
import type { Trouble } from './trouble.ts';

export interface CommitContext extends BridgePorts {
  readonly signal: AbortSignal;
  readonly trouble: Trouble;
  breakerOf(target: string): Breaker;
}

/** The ledger has its tombstone: it was released, expired or discarded while a worker had it. */
const CLAIM_ENDED = 'the claim has ended';

/** The ledger serves no request, or something else answers in its place: no connection, no TLS, no address. */
const DOWN: ReadonlySet<Blame> = new Set<Blame>(['database', 'disk', 'unreached', 'unanswered']);
/** The ledger is not set up (yet), and no message can help it. */
const NOT_SET_UP: ReadonlySet<Blame> = new Set<Blame>(['missing', 'denied', 'unserved']);
/** Another session was in the way, or a limit of time ran out: that says nothing about the message. */
export const OBSTACLES: ReadonlySet<Blame> = new Set<Blame>(['collision', 'slow']);
/** Can be the message's doing; where it meets one message after another, it is the target's. */
const DOUBTFUL: ReadonlySet<Blame> = new Set<Blame>([...DOWN, 'broken', 'unread', 'missing', 'denied']);
/** Said about this message for ever: data the ledger refuses, and what our own functions refuse. */
const FINAL: ReadonlySet<Blame> = new Set<Blame>(['data', 'constraint', 'refused', 'permanent', 'later']);

/** A set that meets locks is halved so often, and so long: its room at the ledger is other pools' too. */
const MOST_OBSTACLES = 32;
const OBSTACLES_MS = 5_000;

export async function commitSet(deliveries: readonly Delivery[], context: CommitContext): Promise<void> {
  if (context.signal.aborted) return;
  const giveUpMs = context.now() + OBSTACLES_MS;
  let obstacles = 0;
  const hasGivenUp = () => obstacles >= MOST_OBSTACLES || (obstacles > 0 && context.now() > giveUpMs);
  const obstruct = (members: readonly Delivery[], reason: string): void => {
    for (const delivery of members) delivery.endObstructed(reason);
  };
  const breaker = context.breakerOf(LEDGER);
  const endAll = (members: readonly Delivery[]): void => {
    for (const delivery of members) delivery.end('outage', 'ledger unavailable');
  };
  await byHalves(deliveries, {
    async work(members) {
      // One half may have found that the ledger is down.
      if (breaker.openUntilMs > 0) return endAll(members);
      if (hasGivenUp()) return obstruct(members, 'other messages of its set met locks');
      const startedMs = context.now();
      try {
        const outcomes = await context.ledger().finalizeBatch(members.map((delivery) => delivery.payload));
        breaker.succeeded();
        tellCommit(members, outcomes, startedMs, context);
        for (const [index, delivery] of members.entries()) {
          if (outcomes[index] === 'conflict') delivery.end('dead_letter', 'ticket_conflict');
          else if (outcomes[index] === 'voided') delivery.end('gone', CLAIM_ENDED);
          else delivery.end('committed');
        }
      } catch (error) {
        tellCommit(members, error, startedMs, context);
        if (isObstacle(error)) obstacles++;
        throw error;
      }
    },
    mayBeOneMembers: (error) => (isObstacle(error) ? !hasGivenUp() : !isOutage(error)),
    fail(members, error) {
      if (isOutage(error)) {
        breaker.outage(reasonOf(error));
        context.log.warn('the ledger is unavailable', { messages: members.length, cause: error });
        endAll(members);
      } else if (isObstacle(error)) obstruct(members, reasonOf(error));
      else for (const delivery of members) endFailed(delivery, error, breaker, context);
    },
  });
}

/** By the pool's own function, when it is this message's turn. */
export async function commitInTurn(
  delivery: Delivery,
  context: CommitContext,
  turns: Limiter,
): Promise<void> {
  await turns.run(async () => {
    if (!context.signal.aborted) await commitOne(delivery, context);
  });
}

/** By the pool's own function. What that raises is its own trouble, whatever the code: it may call other databases. */
async function commitOne(delivery: Delivery, context: CommitContext): Promise<void> {
  const { commit_rpc_name } = delivery.config;
  const ledger = context.breakerOf(LEDGER);
  const own = context.breakerOf(targetOfFunction(commit_rpc_name));
  if (ledger.openUntilMs > 0 || own.openUntilMs > 0) {
    delivery.end('outage', `${ledger.openUntilMs > 0 ? LEDGER : commit_rpc_name} unavailable`);
    return;
  }
  const startedMs = context.now();
  try {
    await context.ledger().call(commit_rpc_name, delivery.payload);
    ledger.succeeded();
    own.succeeded();
    tellCommit([delivery], ['committed'], startedMs, context);
    delivery.end('committed', `function:${commit_rpc_name}`);
  } catch (error) {
    tellCommit([delivery], error, startedMs, context);
    if (codeOf(error) === SQLSTATE.claimVoided) {
      ledger.succeeded();
      own.succeeded();
      delivery.end('gone', CLAIM_ENDED);
    } else if (hasLostSession(error) || isMissing(commit_rpc_name, error)) {
      // A function can end its own session. Where the ledger is down, each function and the ledger's own pools find out.
      own.outage(reasonOf(error));
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

function isObstacle(error: unknown): boolean {
  return OBSTACLES.has(blameOf(error));
}

function reasonOf(error: unknown): string {
  return `${codeOf(error) || 'error'}: ${textOf(error)}`;
}

/** An error that is neither an obstacle nor doubtful nor final is about this message: the cause may pass, so it is retried. */
function endFailed(delivery: Delivery, error: unknown, target: Breaker, { trouble }: CommitContext): void {
  const blame = blameOf(error);
  const reason = reasonOf(error);
  if (OBSTACLES.has(blame)) {
    target.failed(delivery.msgId);
    delivery.endObstructed(reason);
  } else if (DOUBTFUL.has(blame)) trouble.failed(delivery, target, reason);
  else delivery.end(FINAL.has(blame) ? 'dead_letter' : 'retry', reason);
}

// I6: every claim ends exactly once, as a ticket, a release or a dead letter; each end has its reason, and nothing ends
// that was no claim.

import type { History } from '../history.ts';
import {
  acceptedByTarget,
  type Checker,
  claimsById,
  type FinalClaim,
  groupBy,
  isOnItsWay,
  namedByOperators,
  refusedByTarget,
  repeated,
  webhookPools,
} from './lookup.ts';

/** Everything that counts as an end of this claim; a claim on its way has none yet. */
export function createEndsOf(history: History): (claim: FinalClaim) => string[] {
  const tickets = groupBy(history.final.tickets, (ticket) => ticket.claimId ?? ticket.slotId);
  const viaWebhook = webhookPools(history);
  const accepted = acceptedByTarget(history, 'commit');
  const letters = groupBy(ownLetters(history), (letter) => letter.claimId);
  return (claim) => {
    const isDone = viaWebhook.has(claim.poolId)
      ? claim.state === 'committed' && accepted.has(claim.claimId)
      : tickets.has(claim.claimId);
    const dead = letters.get(claim.claimId)?.length ?? 0;
    return [
      ...(isDone ? ['ticket'] : []),
      ...(claim.live ? [] : [claim.state]),
      ...Array.from({ length: dead }, () => 'dead letter'),
    ];
  };
}

/** Only the archive has the letter of a discarded or replayed claim. A letter put there by hand belongs to no claim. */
function ownLetters({ poison, final }: History): History['final']['deadLetters'] {
  const byHand = new Set(poison);
  return final.deadLetters.filter((letter) => letter.claimId !== null && !byHand.has(letter.identity ?? ''));
}

export const everyClaimEndsOnce: Checker = (history) => [
  ...endsPerClaim(history),
  ...endsWithoutReason(history),
  ...endsOfNoClaim(history),
  ...releasesThatAreNone(history),
];

const endsPerClaim: Checker = (history) => {
  const endsOf = createEndsOf(history);
  const messages = groupBy(history.final.queued, (message) => message.claimId);
  return history.final.claims.flatMap((claim) => {
    const ends = endsOf(claim);
    const carried = messages.get(claim.claimId)?.length ?? 0;
    const name = `claim ${claim.claimId} (${claim.state})`;
    if (carried > 1) return [`${name} is on the queue ${carried} times`];
    if (isOnItsWay(claim)) {
      if (carried === 0) return [`${name} has no message that carries it on`];
      // The ticket may be there already: the message tells DB1 so, later.
      return ends.every((end) => end === 'ticket') ? [] : [`${name} is on the queue and ended: ${ends}`];
    }
    return ends.length === 1 ? [] : [`${name} ended ${ends.length} times: ${ends.join(', ') || 'never'}`];
  });
};

const endsWithoutReason: Checker = (history) => {
  const asked = new Set(
    history.releases.filter(({ answer }) => answer !== 'refused').map(({ claimId }) => claimId),
  );
  const refused = refusedByTarget(history, 'validate');
  const expiring = new Set(history.pools.filter((pool) => pool.holdSec).map((pool) => pool.poolId));
  const discardable = namedByOperators(history, 'dead_letter_discard');
  const discarded = new Set(
    history.final.archivedLetters
      .filter((letter) => discardable.has(letter.msgId))
      .map((letter) => letter.claimId),
  );
  const reasons: Record<string, (claim: FinalClaim) => boolean> = {
    // Of an order all or nothing is released, by the id of its first claim.
    released: ({ claimId, orderId }) => asked.has(orderId ?? claimId),
    expired: ({ poolId }) => expiring.has(poolId),
    refused: ({ claimId }) => refused.has(claimId),
    discarded: ({ claimId }) => discarded.has(claimId),
  };
  return history.final.claims
    .filter((claim) => reasons[claim.state]?.(claim) === false)
    .map((claim) => `claim ${claim.claimId} is ${claim.state} without a reason`);
};

const endsOfNoClaim: Checker = (history) => {
  const byId = claimsById(history);
  const byHand = new Set(history.poison);
  return [
    ...history.final.tickets
      .filter((ticket) => !byId.has(ticket.claimId ?? ticket.slotId))
      .map((ticket) => `the ticket of slot ${ticket.slotId} is the end of no claim`),
    ...repeated(history.final.tickets, (ticket) => ticket.claimId ?? ticket.slotId).map(
      ([claimId, tickets]) => `claim ${claimId} has ${tickets.length} tickets`,
    ),
    ...history.final.queued
      .filter(({ claimId, identity }) => claimId !== null && !byHand.has(identity ?? ''))
      .filter(({ claimId }) => {
        const claim = byId.get(claimId ?? '');
        return claim === undefined || !isOnItsWay(claim);
      })
      .map(({ msgId, claimId }) => `message ${msgId} is about claim ${claimId}, which waits for none`),
    ...ownLetters(history)
      .filter((letter) => byId.get(letter.claimId ?? '')?.state !== 'dead_letter')
      .map((letter) => `dead letter ${letter.msgId} is of claim ${letter.claimId}, which is none`),
  ];
};

const releasesThatAreNone: Checker = (history) => {
  const byId = claimsById(history);
  return history.releases
    .filter(({ claimId, answer }) => answer === 'released' && byId.get(claimId)?.state !== 'released')
    .map(
      ({ claimId }) => `claim ${claimId} was told released and is ${byId.get(claimId)?.state ?? 'not there'}`,
    );
};

// I2 and I3: whose a slot is, in each database and between them.

import {
  acceptedByTarget,
  type Checker,
  claimsById,
  groupBy,
  isOnItsWay,
  isTold,
  repeated,
  requestKey,
  webhookPools,
} from './lookup.ts';

/** I2: no slot has two live owners: in DB1, in DB2, at a webhook target, or in what buyers were told. */
export const noSlotHasTwoOwners: Checker = (history) => {
  const { claims, final } = history;
  const byId = claimsById(history);
  const live = final.claims.filter((claim) => claim.live);
  // A claim that an operator has discarded does not own its slot, whatever the target did with it before.
  const atTarget = [...acceptedByTarget(history, 'commit')]
    .flatMap((key) => byId.get(key) ?? [])
    .filter((claim) => claim.state !== 'discarded');
  const kept = new Map(final.claims.map((claim) => [requestKey(claim), claim]));
  const promised = claims
    .filter((call) => isTold(call) && (kept.get(requestKey(call))?.live ?? true))
    .flatMap((call) => [...new Set(call.told.map((answer) => answer.slotId))]);
  return [
    ...repeated(live, (claim) => claim.slotId).map(
      ([slotId, owners]) => `slot ${slotId} has ${owners.length} live claims`,
    ),
    ...repeated(final.tickets, (ticket) => ticket.slotId).map(
      ([slotId, tickets]) => `slot ${slotId} has ${tickets.length} tickets`,
    ),
    ...repeated(atTarget, (claim) => claim.slotId).map(
      ([slotId, owners]) => `slot ${slotId} was committed by webhook for ${owners.length} claims`,
    ),
    ...repeated(promised, (slotId) => slotId).map(
      ([slotId, requests]) => `slot ${slotId} was promised to ${requests.length} requests`,
    ),
  ];
};

/** I3: the owner in DB1 is the owner in DB2, or at the webhook target, seen from both sides. */
export const bothDatabasesAgree: Checker = (history) => [
  ...ticketsWithoutOwner(history),
  ...committedWithoutTicket(history),
  ...committedAndGivenBack(history),
];

const ticketsWithoutOwner: Checker = (history) => {
  const byId = claimsById(history);
  const queued = new Set(history.final.queued.map((message) => message.claimId));
  return history.final.tickets.flatMap((ticket) => {
    const claim = byId.get(ticket.claimId ?? ticket.slotId);
    const name = `the ticket of slot ${ticket.slotId}`;
    if (claim === undefined) return [`${name} names claim ${ticket.claimId}, which DB1 does not have`];
    if (claim.slotId !== ticket.slotId || claim.userId !== ticket.userId || claim.poolId !== ticket.poolId)
      return [
        `${name} is user ${ticket.userId}'s, its claim is of slot ${claim.slotId}, user ${claim.userId}`,
      ];
    // Between the commit there and the finish here, the message still carries it.
    const isBetween = isOnItsWay(claim) && queued.has(claim.claimId);
    return claim.state === 'committed' || isBetween ? [] : [`${name} is there, its claim is ${claim.state}`];
  });
};

const committedWithoutTicket: Checker = (history) => {
  const viaWebhook = webhookPools(history);
  const accepted = acceptedByTarget(history, 'commit');
  const tickets = groupBy(history.final.tickets, (ticket) => ticket.claimId ?? ticket.slotId);
  return history.final.claims
    .filter((claim) => claim.state === 'committed')
    .flatMap((claim) => {
      if (viaWebhook.has(claim.poolId))
        return accepted.has(claim.claimId)
          ? []
          : [`claim ${claim.claimId} is committed, its target never said yes`];
      const own = tickets.get(claim.claimId)?.length ?? 0;
      return own === 1 ? [] : [`claim ${claim.claimId} is committed and has ${own} tickets`];
    });
};

/** A slot that a target may have is never given back: a claim ends like this only before the first try to commit it. */
const GIVEN_BACK: ReadonlySet<string> = new Set(['released', 'expired', 'refused']);

const committedAndGivenBack: Checker = (history) => {
  const accepted = acceptedByTarget(history, 'commit');
  return history.final.claims
    .filter((claim) => accepted.has(claim.claimId) && GIVEN_BACK.has(claim.state))
    .map((claim) => `claim ${claim.claimId} was committed by its target and is ${claim.state}`);
};

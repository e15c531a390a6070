// I1: what was acknowledged is there. And the other way round: what is there was asked for.

import type { ClaimCall, History } from '../history.ts';
import {
  type Checker,
  callKey,
  eventKey,
  type FinalClaim,
  groupBy,
  isTold,
  isUnrequested,
  requestKey,
} from './lookup.ts';

export const acknowledgedIsKept: Checker = (history) => [
  ...lostClaims(history),
  ...unaskedClaims(history),
  ...lostEvents(history),
  ...lostCalls(history),
];

function lostClaims({ claims, final }: History): string[] {
  const kept = groupBy(final.claims, requestKey);
  return claims.flatMap((call) => problemsOf(call, kept.get(requestKey(call)) ?? []));
}

function problemsOf(call: ClaimCall, kept: FinalClaim[]): string[] {
  const name = `request ${call.requestId} of pool ${call.poolId}`;
  if (kept.length > 1) return [`${name} has ${kept.length} claims`];
  if (!isTold(call)) return call.answer === 'claimed' ? [`${name} was acknowledged without a slot`] : [];
  if (call.answer === 'sold_out') return [`${name} was told a slot, and then "sold out"`];
  const slots = new Set(call.told.map((answer) => answer.slotId));
  const ids = new Set(call.told.flatMap((answer) => answer.claimId ?? []));
  if (slots.size > 1 || ids.size > 1) return [`${name} was told ${slots.size} slots and ${ids.size} claims`];
  const [claim] = kept;
  if (claim === undefined) return [`${name} was acknowledged and has no claim`];
  const isTheSame =
    slots.has(claim.slotId) && (ids.size === 0 || ids.has(claim.claimId)) && claim.userId === call.userId;
  return isTheSame
    ? []
    : [`${name} was told slot ${[...slots].join()} and has slot ${claim.slotId} of user ${claim.userId}`];
}

/** A replay may claim for its user anew, and a message put there by hand gets a claim: one each, no more. */
function unaskedClaims({ claims, operatorActions, poison, final }: History): string[] {
  const asked = new Set(claims.map(requestKey));
  const byHand = new Set(poison);
  const allowed = operatorActions
    .filter((call) => call.action === 'dead_letter_replay')
    .map((call) =>
      call.answer === 'unknown'
        ? call.ids.length
        : call.results.filter(({ result }) => result === 'claimed').length,
    )
    .reduce((sum, count) => sum + count, 0);
  const unrequested = final.claims.filter((claim) => isUnrequested(claim) && !byHand.has(claim.claimId));
  const strangers = final.claims.filter((claim) => claim.requestId !== null && !asked.has(requestKey(claim)));
  return [
    ...strangers.map(({ claimId, requestId }) => `claim ${claimId} is of request ${requestId}, never made`),
    ...unrequested.slice(allowed).map(({ claimId }) => `claim ${claimId} was never asked for`),
  ];
}

function lostEvents({ events, final }: History): string[] {
  const kept = groupBy(final.events, eventKey);
  return events
    .filter((event) => event.acknowledgedAt !== null && !kept.has(eventKey(event)))
    .map((event) => `event ${event.eventId} was acknowledged and is gone`);
}

function lostCalls({ callEvents, final }: History): string[] {
  const kept = new Set(final.calls.map(callKey));
  return callEvents
    .filter((call) => call.stored + call.noop > 0 && !kept.has(callKey(call)))
    .map((call) => `call ${call.signatureHash} of ${call.siteId} was acknowledged and is gone`);
}

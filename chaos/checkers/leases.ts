// I9: a lost lease ends nothing. The workers' own words are compared with each other and with how things ended. What a
// late worker can do short of an end (hide another's message, or put it back) leaves no trace to compare with: that is
// for test/model, which knows at each step who holds what.

import type { History } from '../history.ts';
import { createEndsOf } from './ends.ts';
import {
  type Checker,
  claimsById,
  eventKey,
  type FinalEvent,
  groupBy,
  hasTakenEffect,
  isOnItsWay,
} from './lookup.ts';

/** After one of these the message has left the queue. */
const LAST: ReadonlySet<string> = new Set(['committed', 'refused', 'gone', 'dead_letter']);

export const lostLeaseEndsNothing: Checker = (history) => [
  ...endedByALateWorker(history),
  ...eventsEndedByALateWorker(history),
  ...claimsWithLostLeases(history),
  ...eventsWithLostLeases(history),
];

/**
 * A message that has left the queue is never delivered again: if a later delivery than the one that ended it is known,
 * that one held the lease, and the one that ended it had lost it.
 */
function endedByALateWorker({ finishes }: History): string[] {
  return [...groupBy(finishes, (finish) => finish.msgId)].flatMap(([msgId, own]) => {
    const last = own.filter((finish) => LAST.has(finish.outcome));
    if (last.length > 1)
      return [`message ${msgId} was ended by ${last.length} deliveries: ${last.map(({ readCt }) => readCt)}`];
    const [end] = last;
    const newest = Math.max(...own.map((finish) => finish.readCt));
    return end !== undefined && end.readCt < newest
      ? [
          `message ${msgId} was ended (${end.outcome}) by delivery ${end.readCt}, and ${newest} held its lease`,
        ]
      : [];
  });
}

/**
 * A row keeps the attempt and the takeover in which it ended, and each worker says in which it was told so. A worker that
 * ended it in another had lost its lease, and so had one of two that ended it.
 */
function eventsEndedByALateWorker(history: History): string[] {
  const ends = groupBy(history.eventFinishes, (finish) => finish.eventId);
  return allEvents(history)
    .filter(hasTakenEffect)
    .flatMap(({ eventId, status, attempts, takeovers }) => {
      const own = (ends.get(eventId) ?? []).filter(({ result }) => result === status);
      if (own.length > 1) return [`event ${eventId} was ended (${status}) by ${own.length} leases`];
      return own
        .filter((end) => end.attempts !== attempts || end.takeovers !== takeovers)
        .map(
          (end) =>
            `event ${eventId} was ended (${status}) in attempt ${end.attempts}, takeover ${end.takeovers}, ` +
            `and attempt ${attempts}, takeover ${takeovers} held its lease`,
        );
    });
}

/** The workers process the events of paid orders as they do all others. */
const allEvents = ({ final, paid }: History): FinalEvent[] => [
  ...final.events,
  ...(paid?.final.events ?? []),
];

const idsOf = ({ lostLeases }: History, kind: 'bridge' | 'webhook'): string[] => [
  ...new Set(lostLeases.filter((lost) => lost.kind === kind).flatMap((lost) => lost.ids)),
];

function claimsWithLostLeases(history: History): string[] {
  const byId = claimsById(history);
  const endsOf = createEndsOf(history);
  return idsOf(history, 'bridge')
    .flatMap((id) => byId.get(id) ?? [])
    .filter((claim) => !isOnItsWay(claim))
    .map((claim) => ({ claim, ends: endsOf(claim) }))
    .filter(({ ends }) => ends.length !== 1)
    .map(
      ({ claim, ends }) =>
        `the lease on claim ${claim.claimId} was lost, and it ended ${ends.length} times: ${ends.join(', ')}`,
    );
}

function eventsWithLostLeases(history: History): string[] {
  const lost = new Set(idsOf(history, 'webhook'));
  const credits = groupBy(history.final.credits, eventKey);
  const rows = groupBy(allEvents(history), (event) => event.eventId);
  return [...lost].flatMap((eventId) => {
    const own = rows.get(eventId) ?? [];
    const [event] = own;
    if (event === undefined || own.length > 1)
      return [`the lease on event ${eventId} was lost, and it is there ${own.length} times`];
    const effects = credits.get(eventKey(event))?.length ?? 0;
    return effects > 1 ? [`the lease on event ${eventId} was lost, and it took effect ${effects} times`] : [];
  });
}

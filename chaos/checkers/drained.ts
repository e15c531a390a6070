// I10: once faults stop, everything comes to its end.

import { type Checker, isOnItsWay, isOpenEvent } from './lookup.ts';

export const everythingDrains: Checker = ({ drainedAt, left, final, paid }) => [
  ...(drainedAt === null ? [`the queues were not empty within the time they were given${listOf(left)}`] : []),
  ...final.queued.map(
    (message) => `message ${message.msgId} of claim ${message.claimId} is still on the queue`,
  ),
  ...final.claims.filter(isOnItsWay).map((claim) => `claim ${claim.claimId} is still ${claim.state}`),
  ...final.events
    .filter(isOpenEvent)
    .map((event) => `event ${event.eventId} is still ${event.status}: ${event.error ?? 'no error'}`),
  ...(paid?.final.events ?? [])
    .filter(isOpenEvent)
    .map(({ eventId, status, error }) => `event ${eventId} is still ${status}: ${error ?? 'no error'}`),
];

const listOf = (left: Record<string, number> = {}): string => {
  const kinds = Object.entries(left).map(([what, count]) => `${count} ${what}`);
  return kinds.length === 0 ? '' : `: ${kinds.join(', ')}`;
};

// I10: once faults stop, everything comes to its end.

import { type Checker, isOnItsWay, isOpenEvent } from './lookup.ts';

export const everythingDrains: Checker = ({ drainedAt, final }) => [
  ...(drainedAt === null ? ['the queues were not empty within the time they were given'] : []),
  ...final.queued.map(
    (message) => `message ${message.msgId} of claim ${message.claimId} is still on the queue`,
  ),
  ...final.claims.filter(isOnItsWay).map((claim) => `claim ${claim.claimId} is still ${claim.state}`),
  ...final.events
    .filter(isOpenEvent)
    .map((event) => `event ${event.eventId} is still ${event.status}: ${event.error ?? 'no error'}`),
];

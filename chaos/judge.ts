// The promises of DESIGN §6 as pure functions over a history, and what they find.

import { auditedAsDone } from './checkers/audited.ts';
import { everythingDrains } from './checkers/drained.ts';
import { creditsAddUp, oneEffectPerEvent } from './checkers/effects.ts';
import { everyClaimEndsOnce } from './checkers/ends.ts';
import { type HoldRow, holdRows, holdsEndInTime } from './checkers/holds.ts';
import { acknowledgedIsKept } from './checkers/kept.ts';
import { lostLeaseEndsNothing } from './checkers/leases.ts';
import { onlyTheHopelessDie } from './checkers/letters.ts';
import type { Checker } from './checkers/lookup.ts';
import { moneyIsAccountedFor } from './checkers/money.ts';
import { type NeighbourRow, neighbourRows, neighboursDoNoHarm } from './checkers/neighbours.ts';
import { ordersAreWhole } from './checkers/orders.ts';
import { bothDatabasesAgree, noSlotHasTwoOwners } from './checkers/owners.ts';
import { freedOrdersTakeNoMoney } from './checkers/sessions.ts';
import { slotsAreConserved, soldWithinCapacity } from './checkers/slots.ts';
import { voidsAreForEver } from './checkers/voids.ts';
import { type Counts, countsOf, type Recovery, recoveryOf } from './counts.ts';
import type { History } from './history.ts';

export const PROMISES = {
  I1: { text: 'no acknowledged claim, event or call is lost', check: acknowledgedIsKept },
  I2: { text: 'no slot has two live owners, in DB1 or DB2', check: noSlotHasTwoOwners },
  I3: { text: 'the owner in DB1 is the owner in DB2', check: bothDatabasesAgree },
  I4: { text: 'sold ≤ capacity', check: soldWithinCapacity },
  I5: { text: 'slots are conserved, and "sold out" is true', check: slotsAreConserved },
  I6: { text: 'every claim ends exactly once', check: everyClaimEndsOnce },
  I7: { text: 'one effect per event', check: oneEffectPerEvent },
  I8: { text: 'the credit sum equals the sum of facts', check: creditsAddUp },
  I9: { text: 'a lost lease ends nothing', check: lostLeaseEndsNothing },
  I10: { text: 'everything drains once faults stop', check: everythingDrains },
  I11: { text: 'audit rows = operator actions', check: auditedAsDone },
  I12: { text: 'no healthy message is dead-lettered', check: onlyTheHopelessDie },
  I13: { text: "a neighbour's trouble is not mine", check: neighboursDoNoHarm },
  I14: {
    text: 'each payment for an order is tickets, or due, or given back, once',
    check: moneyIsAccountedFor,
  },
  I15: { text: 'no seat is held longer than its bound', check: holdsEndInTime },
  I16: { text: 'no session of an order that is over takes money', check: freedOrdersTakeNoMoney },
  I17: { text: 'a void is for ever: tombstone before seat', check: voidsAreForEver },
  I18: { text: 'an order has all its seats or none, and one payment', check: ordersAreWhole },
} as const satisfies Record<string, { text: string; check: Checker }>;

export type PromiseName = keyof typeof PROMISES;
export type Violation = { promise: PromiseName; what: string };
export type Verdict = {
  violations: Violation[];
  counts: Counts;
  recovery: Recovery;
  /** What I13 was judged by, also where it was not. */
  neighbours: NeighbourRow[];
  /** How long after their holds seats were free again: the figure of I15. */
  holds: HoldRow[];
};

export function judge(history: History): Verdict {
  const violations = Object.entries(PROMISES).flatMap(([promise, { check }]) =>
    check(history).map((what) => ({ promise: promise as PromiseName, what })),
  );
  return {
    violations,
    counts: countsOf(history),
    recovery: recoveryOf(history),
    neighbours: neighbourRows(history),
    holds: holdRows(history),
  };
}

// I7 and I8: one effect per event, and money that adds up. Two events may tell one fact, and a fact counts once. What
// they come to as a payment is in payments.ts.

import type { EventCall, History } from '../history.ts';
import {
  type Checker,
  type Credit,
  callKey,
  eventKey,
  type FinalEvent,
  factKey,
  groupBy,
  hasTakenEffect,
  isOpenEvent,
  repeated,
  worthOf,
} from './lookup.ts';
import { paymentsUnlikeTheirEvents } from './payments.ts';

/** I7: one effect per event, whatever is delivered, in whatever order, however often. */
export const oneEffectPerEvent: Checker = (history) => {
  const { events, callEvents, final } = history;
  const sent = new Map(events.map((event) => [eventKey(event), event]));
  const strangers = final.credits.filter((credit) => !sent.has(eventKey(credit)));
  return [
    ...repeated(final.events, eventKey).map(([key, rows]) => `event ${key} is there ${rows.length} times`),
    ...final.events
      .filter((event) => !sent.has(eventKey(event)))
      .map((event) => `event ${event.eventId} was never sent`),
    ...strangers.map((credit) => `a credit is of event ${credit.eventId}, which was never sent`),
    ...effectsPerFact(history, creditsByFact(history)),
    ...paymentsUnlikeTheirEvents(history),
    ...repeated(final.calls, callKey).map(([key, rows]) => `call ${key} is there ${rows.length} times`),
    ...callEvents
      .filter((call) => call.stored > 1)
      .map((call) => `call ${call.signatureHash} was answered as new ${call.stored} times`),
  ];
};

function effectsPerFact({ events, final }: History, credits: Map<string, Credit[]>): string[] {
  const rows = new Map(final.events.map((event) => [eventKey(event), event]));
  return [...groupBy(events, factKey)].flatMap(([key, tellers]) => {
    const effects = credits.get(key) ?? [];
    const [teller] = tellers;
    if (effects.length > 1) return [`fact ${key} took effect ${effects.length} times`];
    const [effect] = effects;
    if (effect === undefined) return isDue(tellers, rows) ? [`fact ${key} was told and took no effect`] : [];
    const isRight = teller && effect.amount === worthOf(teller) && effect.userId === teller.fact.userId;
    return isRight ? [] : [`fact ${key} took effect as ${effect.amount} for ${effect.userId}`];
  });
}

/** True when one of the events that tell a fact should have had its effect. */
function isDue(tellers: EventCall[], rows: Map<string, FinalEvent>): boolean {
  return tellers.some((event) => {
    const row = rows.get(eventKey(event));
    return row !== undefined && hasTakenEffect(row);
  });
}

function creditsByFact({ events, final }: History): Map<string, Credit[]> {
  const sent = new Map(events.map((event) => [eventKey(event), event]));
  const known = final.credits.filter((credit) => sent.has(eventKey(credit)));
  return groupBy(known, (credit) => factKey(sent.get(eventKey(credit)) as EventCall));
}

/**
 * I8: for each user and currency the sum of credits is the sum of facts that were told. A fact counts as told when one
 * of its events was acknowledged, or is there; not while all of them still wait, and not when none can succeed.
 */
export const creditsAddUp: Checker = ({ events, poison, final }) => {
  const rows = new Map(final.events.map((event) => [eventKey(event), event]));
  const cannot = new Set(poison);
  const counts = (event: EventCall): boolean => {
    const row = rows.get(eventKey(event));
    if (cannot.has(event.eventId)) return false;
    return row === undefined ? event.acknowledgedAt !== null : !isOpenEvent(row) && row.skippedBy === null;
  };
  const want = new Map<string, number>();
  for (const tellers of groupBy(events, factKey).values()) {
    const teller = tellers.find(counts);
    if (teller) add(want, `${teller.fact.userId} ${teller.fact.currency}`, worthOf(teller));
  }
  const have = new Map<string, number>();
  for (const { userId, currency, amount } of final.credits) add(have, `${userId} ${currency}`, amount);
  return [...new Set([...want.keys(), ...have.keys()])]
    .filter((key) => (want.get(key) ?? 0) !== (have.get(key) ?? 0))
    .map((key) => `the credits of ${key} are ${have.get(key) ?? 0} instead of ${want.get(key) ?? 0}`);
};

function add(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}

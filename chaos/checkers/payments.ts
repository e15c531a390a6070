// I7, seen from the payments: each is what the events about it told, in whatever order they came.

import type { EventCall, FinalState, History } from '../history.ts';
import { eventKey, groupBy, hasTakenEffect } from './lookup.ts';

type Payment = FinalState['payments'][number];
type Told = Omit<Payment, 'provider' | 'object'>;

export function paymentsUnlikeTheirEvents({ events, final }: History): string[] {
  const done = new Set(final.events.filter(hasTakenEffect).map(eventKey));
  const sent = groupBy(events, ({ provider, fact }) => `${provider}/${fact.object}`);
  const payments = groupBy(final.payments, ({ provider, object }) => `${provider}/${object}`);
  return [...new Set([...sent.keys(), ...payments.keys()])].flatMap((key) => {
    const about = sent.get(key) ?? [];
    const told = toldBy(
      about,
      about.filter((event) => done.has(eventKey(event))),
    );
    const [payment, ...others] = payments.get(key) ?? [];
    if (others.length > 0) return [`payment ${key} is there ${1 + others.length} times`];
    if (told === undefined) return payment ? [`payment ${key} is there, and no event of it took effect`] : [];
    if (payment === undefined) return [`payment ${key} was told and is not there`];
    const [have, want] = [inWords(payment), inWords(told)];
    return have === want ? [] : [`payment ${key} is ${have} instead of ${want}`];
  });
}

/**
 * What a payment has to be after the events that took effect; undefined: nothing, because none did. What was paid is
 * told by every event about it, also by one about a refund, which tells the sum of all refunds.
 */
function toldBy(about: EventCall[], done: EventCall[]): Told | undefined {
  const [first] = done;
  if (first === undefined) return undefined;
  const { userId, currency } = first.fact;
  const refunded = Math.max(0, ...done.map(({ fact }) => (fact.kind === 'refunded' ? fact.amount : 0)));
  const amount = about.find(({ fact }) => fact.kind === 'paid')?.fact.amount ?? null;
  const isWhole = amount !== null && refunded >= amount;
  const state = refunded === 0 ? 'succeeded' : isWhole ? 'refunded' : 'partially_refunded';
  return { userId, currency, refunded, amount, state };
}

const inWords = ({ state, refunded, amount, currency, userId }: Told): string =>
  `${state}, ${refunded} of ${amount} ${currency} refunded to ${userId}`;

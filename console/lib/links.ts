// Where each thing has its page: what a search found, what a step of a timeline names, what the audit log calls a thing.

import { pathWith } from './api.ts';
import type { Found, Issue } from './shapes.ts';

const at = (path: string, id: string): string => `${path}/${encodeURIComponent(id)}`;

export const userPlace = (user: string): string => at('/users', user);
export const poolPlace = (pool: string): string => at('/pools', pool);
export const claimPlace = (claim: string): string => at('/claims', claim);
export const orderPlace = (order: string): string => at('/orders', order);
export const ticketPlace = (claim: string): string => at('/tickets', claim);
export const paymentPlace = (key: string): string => at('/payments', key);
export const eventPlace = (event: string): string => at('/events', event);
export const letterPlace = (letter: string): string => at('/dead-letters', letter);
export const issuePlace = (issue: string): string => at('/issues', issue);
export const endpointPlace = (name: string): string => at('/endpoints', name);
export const sitePlace = (site: string): string => at('/sites', site);
export const searchPlace = (q: string): string => pathWith('/search', { q });

const MINUTE_MS = 60_000;

/** History of a time, with so many minutes on either side. */
export function historyPlace(began: string, ended: string, aroundMin: number, of?: string): string {
  const shifted = (text: string, minutes: number): string =>
    new Date(Date.parse(text) + minutes * MINUTE_MS).toISOString();
  return pathWith('/history', { from: shifted(began, -aroundMin), to: shifted(ended, aroundMin), of });
}

export function auditPlace(db: 1 | 2, filter: Readonly<Record<string, string | undefined>>): string {
  return pathWith('/audit', { ...(db === 2 && { db }), ...filter });
}

export const poolAudit = (pool: string): string => auditPlace(1, { subject: `pool ${pool}` });
export const endpointAudit = (name: string): string => auditPlace(2, { subject: `webhook endpoint ${name}` });
export const siteAudit = (site: string): string => auditPlace(2, { subject: `call site ${site}` });
export const operatorAudit = (name: string): string => auditPlace(1, { subject: `operator ${name}` });

/** Where one failure of an issue can be looked at; deliveries of the inbox have no page. */
export function failurePlace(kind: Issue['kind'], id: string): string | undefined {
  if (kind === 'claim') return letterPlace(id);
  if (kind === 'event') return eventPlace(id);
  const payment = /^(?:settle|void):(.+\/.+)$/.exec(id)?.[1];
  return payment === undefined ? undefined : paymentPlace(payment);
}

/** A page is where something can be looked at; what has none leads to what it belongs to. */
export function placeOf({ kind, id, ref, pool_id, db, cell }: Found): string {
  switch (kind) {
    case 'claim':
      return claimPlace(id);
    case 'order':
      return orderPlace(id);
    case 'ticket':
      return ticketPlace(id);
    case 'payment':
      return db === 1 && ref !== null ? orderPlace(ref) : paymentPlace(id);
    case 'refund':
      // Its payment stands where others have their pool.
      return pool_id === null ? '/refunds' : paymentPlace(pool_id);
    case 'event':
      return eventPlace(id);
    case 'call':
      return at('/calls', id);
    case 'issue':
      return issuePlace(id);
    case 'dead_letter':
      return letterPlace(id);
    case 'message':
      return ref === null ? '/dead-letters' : claimPlace(ref);
    case 'slot':
      return ref === null ? poolPlace(pool_id ?? '') : claimPlace(ref);
    case 'user':
      return userPlace(id);
    case 'pool':
      return poolPlace(id);
    case 'endpoint':
      return ref === null ? pathWith('/events', { webhook_id: id }) : endpointPlace(ref);
    case 'site':
      return sitePlace(id);
    case 'operator':
      return auditPlace(1, { actor: id });
    case 'audit':
      return auditPlace(db, { cell, id });
  }
}

const SUBJECTS: readonly (readonly [RegExp, (id: string) => string])[] = [
  [/^claim (\S+)$/, claimPlace],
  [/^dead letter (\d+)$/, (id) => searchPlace(id)],
  [/^webhook event (\S+)$/, eventPlace],
  [/^payment (.+)$/, (id) => (id.includes('/') ? paymentPlace(id) : searchPlace(id))],
  [/^refund (.+)$/, (id) => searchPlace(id)],
  [/^pool (.+)$/, poolPlace],
  [/^order (\S+)$/, orderPlace],
  [/^issue (\S+)$/, issuePlace],
  [/^webhook endpoint (\S+)$/, endpointPlace],
  [/^call site (\S+)$/, sitePlace],
  [/^(operator) /, () => '/operators'],
];

/** Of what the audit log says that something was done to; undefined where that has no page. */
export function subjectPlace(subject: string): string | undefined {
  for (const [pattern, place] of SUBJECTS) {
    const id = pattern.exec(subject)?.[1];
    if (id !== undefined) return place(id);
  }
  return undefined;
}

const PLACES: Readonly<Record<string, (value: string) => string | undefined>> = {
  claim_id: claimPlace,
  order_id: orderPlace,
  payment_key: paymentPlace,
  event: eventPlace,
  event_id: searchPlace,
  user_id: userPlace,
  pool_id: poolPlace,
  subject: subjectPlace,
  actor: (name) => auditPlace(1, { actor: name }),
  msg_id: searchPlace,
  replayed_from: searchPlace,
  resource_id: searchPlace,
  request_id: searchPlace,
  session_id: searchPlace,
  refund: searchPlace,
  provider_refund_id: searchPlace,
};

/** Of a value in a timeline, by its name. */
export const linkOf = (name: string, value: string): string | undefined => PLACES[name]?.(value);

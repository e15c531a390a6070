// What several checkers ask of a history.

import type { ClaimCall, EventCall, FinalState, History, TargetCall } from '../history.ts';

/** What is wrong with a history, in words. Empty: this promise was kept. */
export type Checker = (history: History) => string[];

export type FinalClaim = FinalState['claims'][number];
export type FinalEvent = FinalState['events'][number];
export type Credit = FinalState['credits'][number];

/** A claim in one of these has not ended; a message carries it on. */
const ON_ITS_WAY: ReadonlySet<string> = new Set(['queued', 'validated']);
/** With these a target refuses for good; any other status is tried again. */
const REFUSAL_STATUS: ReadonlySet<number> = new Set([402, 409, 410, 422]);
const OPEN_EVENT: ReadonlySet<string> = new Set(['pending', 'processing', 'failed']);

export function groupBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** The groups that hold more than one. */
export function repeated<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): [Key, Item[]][] {
  return [...groupBy(items, keyOf)].filter(([, group]) => group.length > 1);
}

export const isOnItsWay = (claim: FinalClaim): boolean => ON_ITS_WAY.has(claim.state);
export const isOpenEvent = ({ status }: Pick<FinalEvent, 'status'>): boolean => OPEN_EVENT.has(status);
/** True of an event that has ended by itself, and so should have had its effect. */
export const hasTakenEffect = ({ status, skippedBy }: FinalEvent): boolean =>
  status === 'success' || (status === 'skipped' && skippedBy === null);

export const requestKey = ({ poolId, requestId }: { poolId: string; requestId: string | null }): string =>
  `${poolId}/${requestId}`;
export const eventKey = ({ provider, eventId }: { provider: string; eventId: string }): string =>
  `${provider}/${eventId}`;
export const factKey = ({ provider, fact }: EventCall): string => `${provider}/${fact.object}/${fact.kind}`;
export const callKey = (call: { siteId: string; signatureHash: string | null }): string =>
  `${call.siteId}/${call.signatureHash}`;

/** What a fact adds to its user's balance. */
export const worthOf = ({ fact }: EventCall): number =>
  fact.kind === 'refunded' ? -Math.abs(fact.amount) : fact.amount;

export const claimsById = ({ final }: History): Map<string, FinalClaim> =>
  new Map(final.claims.map((claim) => [claim.claimId, claim]));

export const isTold = (call: ClaimCall): boolean => call.told.length > 0;

/**
 * A claim that no buyer's request made: it comes from a replay for another slot, or from a message put there by hand. The
 * request of an order's first claim asked for all of them.
 */
export const isUnrequested = ({ requestId, orderId }: FinalClaim): boolean =>
  requestId === null && (orderId ?? null) === null;

const keysWith = (history: History, kind: TargetCall['kind'], matches: (status: number) => boolean) =>
  new Set(
    history.targetCalls
      .filter((call) => call.kind === kind && typeof call.status === 'number' && matches(call.status))
      .map((call) => call.key),
  );

/** Whom the target has refused for good. */
export const refusedByTarget = (history: History, kind: TargetCall['kind']): Set<string> =>
  keysWith(history, kind, (status) => REFUSAL_STATUS.has(status));

/** Whom the target has said yes to. */
export const acceptedByTarget = (history: History, kind: TargetCall['kind']): Set<string> =>
  keysWith(history, kind, (status) => status >= 200 && status < 300);

/** Pools whose claims end at a webhook and not in the ledger. */
export const webhookPools = ({ pools }: History): Set<string> =>
  new Set(pools.filter((pool) => pool.commit === 'webhook').map((pool) => pool.poolId));

/** The ids that operators named in calls of this action that were not refused. */
export const namedByOperators = ({ operatorActions }: History, action: string): Set<string> =>
  new Set(
    operatorActions
      .filter((call) => call.action === action && call.answer !== 'refused')
      .flatMap((call) => call.ids),
  );

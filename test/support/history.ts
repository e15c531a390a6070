// A run of claims alone (no bridge, no ledger), told as a history, so that the checkers of chaos judge it too.

import type { FinalState, History } from '../../chaos/history.ts';
import { judge, type PromiseName } from '../../chaos/judge.ts';

/** An answer that reached a buyer. No slot: "sold out". Times are of one clock. */
export type Told = { requestId: string; slotId: string | null; startedAt: number; endedAt: number };

export type ClaimRow = { claimId: string; requestId: string; slotId: string; live: boolean };
export type SlotRow = { slotId: string; status: FinalState['slots'][number]['status'] };

/** A run in which nothing was carried on: every live claim waits on the queue. */
export type ClaimsRun = {
  capacity: number;
  told: Told[];
  claims: ClaimRow[];
  slots: SlotRow[];
  /** The claim of each message on the queue. */
  queued: string[];
};

const POOL = { poolId: 'pool', userId: 'buyer' };

/** What is wrong, by the promise that is broken. Nothing drains here, so I10 is left out. */
export function brokenPromises(run: ClaimsRun): Partial<Record<PromiseName, string[]>> {
  const broken: Partial<Record<PromiseName, string[]>> = {};
  for (const { promise, what } of judge(asHistory(run)).violations)
    if (promise !== 'I10') broken[promise] = [...(broken[promise] ?? []), what];
  return broken;
}

function asHistory({ capacity, told, claims, slots, queued }: ClaimsRun): History {
  return {
    ...{ seed: 0, minutes: 0, stormAt: 0, calmAt: 0, drainedAt: null },
    pools: [{ poolId: POOL.poolId, capacity, commit: 'rpc' }],
    claims: told.map(({ requestId, slotId, startedAt, endedAt }) => ({
      ...{ ...POOL, requestId, startedAt, endedAt, attempts: 1 },
      answer: slotId === null ? 'sold_out' : 'claimed',
      told: slotId === null ? [] : [{ claimId: null, slotId }],
    })),
    ...{
      releases: [],
      events: [],
      callEvents: [],
      operatorActions: [],
      healthy: [],
      poison: [],
      targetCalls: [],
    },
    ...{ faults: [], lostLeases: [], finishes: [], eventFinishes: [] },
    final: {
      slots: slots.map((slot) => ({ ...POOL, ...slot })),
      claims: claims.map((claim) => ({
        ...{ ...POOL, ...claim, endReason: null },
        state: claim.live ? 'queued' : 'released',
      })),
      queued: queued.map((claimId, index) => ({
        ...{ msgId: String(index), claimId, poolId: POOL.poolId, identity: claimId },
      })),
      ...{ deadLetters: [], archivedLetters: [], tickets: [], events: [], credits: [], payments: [] },
      ...{ calls: [], audit: [] },
    },
  };
}

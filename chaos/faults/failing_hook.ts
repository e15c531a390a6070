// A neighbour whose hooks fail in every way there is, one after the other.

import { claimAll, HOSTILE_POOLS } from '../clients/hostile.ts';
import { NEIGHBOUR_PART } from '../schedule.ts';
import type { FaultKind } from './kind.ts';

const CLAIMS = 100;
const AT_ONCE = 8;

/** 500, 503, 429, 404, a cut connection and no answer, by turns, to validation and to commits. */
export const failingHook: FaultKind = {
  touches: () => 'commit',
  partsOf: () => [NEIGHBOUR_PART],
  async begin({ hostile, traffic }, { atMs }) {
    const over = new AbortController();
    hostile.begin('failing');
    const claims = [HOSTILE_POOLS.commit, HOSTILE_POOLS.checked].map((poolId) =>
      claimAll(traffic, poolId, `failing-${atMs}`, CLAIMS, AT_ONCE, over.signal),
    );
    return async () => {
      over.abort();
      hostile.heal();
      await Promise.all(claims);
    };
  },
};

// A neighbour whose hook answers, seconds late. Its messages wait for it; those of other pools must not.

import { claimAll, HOSTILE_POOLS } from '../clients/hostile.ts';
import { NEIGHBOUR_PART } from '../schedule.ts';
import type { FaultKind } from './kind.ts';

/** More than two workers may have under way to one hook (32 each), several times over: all their room is taken. */
const CLAIMS = 300;
const AT_ONCE = 16;

/** The plan says which hook of the hostile pools is slow: commit or validation. */
export const slowHook: FaultKind = {
  touches: () => 'commit',
  partsOf: () => [NEIGHBOUR_PART],
  async begin({ hostile, traffic }, plan) {
    const poolId = plan.target === 'commit' ? HOSTILE_POOLS.commit : HOSTILE_POOLS.checked;
    const over = new AbortController();
    hostile.begin('slow');
    const claims = claimAll(traffic, poolId, `slow-${plan.atMs}`, CLAIMS, AT_ONCE, over.signal);
    return async () => {
      over.abort();
      hostile.heal();
      await claims;
    };
  },
};

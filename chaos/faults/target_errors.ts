import type { Mood } from '../target.ts';
import type { FaultKind } from './kind.ts';

/** The pools' webhooks misbehave: 200 and 500 by turns, silence, a reset, a redirect. */
export const targetErrors: FaultKind = {
  touches: () => 'commit',
  partsOf: () => ['target'],
  async begin({ target }, plan) {
    target.begin(plan.target as Mood);
    return () => target.heal();
  },
};

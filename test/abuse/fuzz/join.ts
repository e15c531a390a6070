// Runs of several seeds as one.

import { refuseKept } from '../../../bench/summaries.ts';
import type { FuzzReport } from './run.ts';

export type FuzzRuns = Omit<FuzzReport, 'seed'> & { readonly seeds: readonly number[] };

export const runsOf = ({ seed, ...report }: FuzzReport): FuzzRuns => ({ seeds: [seed], ...report });

/** The sum; of memory the run that grew most. */
export function joinRuns(kept: FuzzRuns, added: FuzzRuns): FuzzRuns {
  refuseKept(kept.seeds, ...added.seeds);
  const statuses = { ...kept.statuses };
  for (const [status, times] of Object.entries(added.statuses))
    statuses[status] = (statuses[status] ?? 0) + times;
  const growth = ({ rss_mb: { warm, end } }: FuzzRuns): number => end - warm;
  return {
    seeds: [...kept.seeds, ...added.seeds],
    requests: kept.requests + added.requests,
    statuses,
    seconds: kept.seconds + added.seconds,
    rss_mb: growth(added) > growth(kept) ? added.rss_mb : kept.rss_mb,
    failures: [...kept.failures, ...added.failures],
  };
}

// What is measured, and with how many messages. Repetitions go round all cells (A B C, A B C, …), so that a slow minute of
// the machine hits all alike.

import { baseline } from './baseline.ts';
import { graphileWorker, graphileWorkerBatch, graphileWorkerBatchClaims } from './graphile_worker.ts';
import { bridge } from './ours.ts';
import { pgBoss, pgBossBatch, pgBossBatchClaims } from './pg_boss.ts';
import type { Drain, Way } from './way.ts';

export type Cell = Drain & { name: string; way: Way };

export type Plan = { repetitions: number; warmUpMessages: number; cells: Cell[] };

const PLAIN_BATCH = 100;
const BATCH = 1_000;
const LARGE_BATCH = 5_000;
/** The faster of the two sizes tried, 500 and 2,000. */
const JOBS_TO_GATHER = 2_000;

export function makePlan(quick: boolean): Plan {
  const messages = quick ? 2_000 : 40_000;
  const plainMessages = quick ? 200 : 4_000;
  const cell = (name: string, way: Way, clients: number, batch: number): Cell => ({
    name,
    way,
    clients,
    batch,
    messages: way === baseline ? plainMessages : messages,
  });
  return {
    repetitions: quick ? 1 : 3,
    warmUpMessages: quick ? 0 : 2_000,
    cells: [
      cell('baseline', baseline, 1, PLAIN_BATCH),
      ...[1, 2, 4].map((loops) => cell('bridge', bridge, loops, BATCH)),
      cell('bridge', bridge, 1, PLAIN_BATCH),
      cell('bridge', bridge, 2, LARGE_BATCH),
      // Of 10, 24, 48 and 80 the best was 48; 24 is what its performance page uses.
      ...[24, 48].map((jobs) => cell('graphile-worker', graphileWorker, jobs, 1)),
      cell('graphile-worker-batch', graphileWorkerBatch, JOBS_TO_GATHER, 1),
      cell('graphile-worker-batch-claims', graphileWorkerBatchClaims, JOBS_TO_GATHER, 1),
      ...[1, 2].map((loops) => cell('pg-boss', pgBoss, loops, BATCH)),
      ...[1, 2].map((loops) => cell('pg-boss-batch', pgBossBatch, loops, BATCH)),
      ...[1, 2].map((loops) => cell('pg-boss-batch-claims', pgBossBatchClaims, loops, BATCH)),
    ],
  };
}

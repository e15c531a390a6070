// One neighbour: the healthy one quiet, then beside it, then beside twice as much of it.

import { setTimeout as pause } from 'node:timers/promises';
import { quantile } from '../stats.ts';
import type { HealthyReport } from './healthy.ts';
import type { Neighbour } from './neighbour.ts';
import { type Version, withPlace } from './place.ts';

export type Plan = {
  /** Of the healthy one, for each row. */
  requests: number;
  warmUp: number;
  perSec: number;
  /** What the healthy one waits for beside its neighbour; what takes longer has failed. */
  patienceMs: number;
  /** The hostile load is on for so long before the count begins. */
  leadMs: number;
  /** How many times the hostile load, one after the other. */
  loads: readonly number[];
};

export type NeighbourRow = {
  /** The neighbour, with its load where that is not 1. */
  name: string;
  neighbour: string;
  finding: string;
  version: string;
  healthy: string;
  load: number;
  hostile_sent: number;
  requests: number;
  failures: number;
  /** What the failed requests got, with how many did. */
  failed_with: string;
  quiet_p50_ms: number;
  quiet_p99_ms: number;
  p50_ms: number;
  p99_ms: number;
  /** See keptOf. 1 and more keeps the promise. */
  kept: number;
  verdict: string;
};

const QUIET_PATIENCE_MS = 30_000;
const MAX_TIMES_QUIET = 3;
const ALWAYS_ALLOWED_MS = 250;

export async function measureNeighbour(version: Version, neighbour: Neighbour, plan: Plan) {
  const slots = plan.warmUp + plan.requests * (plan.loads.length + 1);
  return withPlace(version, neighbour, slots, async (place) => {
    const measure = (count: number, patienceMs: number) =>
      place.measure({ count, perSec: plan.perSec, patienceMs });
    await measure(plan.warmUp, QUIET_PATIENCE_MS);
    const quiet = await measure(plan.requests, QUIET_PATIENCE_MS);
    if (failuresOf(quiet) > 0)
      throw new Error(`requests failed without any neighbour: ${JSON.stringify(quiet.failures)}`);
    const rows: NeighbourRow[] = [];
    for (const times of plan.loads) {
      const load = await neighbour.start(place, times);
      await pause(plan.leadMs);
      const beside = await measure(plan.requests, plan.patienceMs);
      rows.push(rowOf(version, neighbour, times, load.sent(), quiet, beside));
      await load.stop();
    }
    return { rows, settings: await place.db1.settings() };
  });
}

export function rowOf(
  version: Pick<Version, 'name'>,
  { name, finding, healthy }: Pick<Neighbour, 'name' | 'finding' | 'healthy'>,
  load: number,
  sent: number,
  quiet: HealthyReport,
  beside: HealthyReport,
): NeighbourRow {
  const [before, after] = [timesOf(quiet), timesOf(beside)];
  const failures = failuresOf(beside);
  const kept = keptOf(quiet, beside);
  return {
    name: load === 1 ? name : `${name} x${load}`,
    neighbour: name,
    finding,
    version: version.name,
    healthy,
    load,
    hostile_sent: sent,
    requests: beside.tookMs.length,
    failures,
    failed_with: Object.entries(beside.failures)
      .map(([what, count]) => `${count} ${what}`)
      .join(', '),
    quiet_p50_ms: before.p50,
    quiet_p99_ms: before.p99,
    p50_ms: after.p50,
    p99_ms: after.p99,
    kept,
    verdict: kept >= 1 ? 'ok' : 'NOT MET',
  };
}

/** I13: what p99 may be, divided by what it is; 0 where a request failed. */
export function keptOf(quiet: HealthyReport, beside: HealthyReport): number {
  if (failuresOf(beside) > 0) return 0;
  return Math.max(MAX_TIMES_QUIET * timesOf(quiet).p99, ALWAYS_ALLOWED_MS) / timesOf(beside).p99;
}

export function failuresOf({ failures }: HealthyReport): number {
  return Object.values(failures).reduce((sum, count) => sum + count, 0);
}

export function timesOf({ tookMs }: HealthyReport): { p50: number; p99: number } {
  const sorted = [...tookMs].sort((a, b) => a - b);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

// Which fault happens when, to what and for how long: a pure function of the seed, so that a run can be repeated.

import type { FaultName } from './options.ts';
import { createRandom, type Random } from './random.ts';

export type Planned = { atMs: number; fault: FaultName; target: string; forMs: number };

export const SERVERS = ['server-1', 'server-2'] as const;
export const WORKERS = ['worker-1', 'worker-2'] as const;
const DATABASES = ['db1', 'db2'] as const;

/** Every wire between two processes that a proxy of ours carries; `client` stands for all clients. */
export const LINKS: readonly string[] = [
  ...[...SERVERS, ...WORKERS].flatMap((from) => DATABASES.map((to) => `${from}→${to}`)),
  ...SERVERS.map((server) => `client→${server}`),
];

/** How the webhook target misbehaves. */
export const TARGET_MOODS = ['flapping', 'hanging', 'resetting', 'redirecting'] as const;

/** Seconds by which the clock of a worker is wrong: within and beyond every lease, timeout and tolerance. */
const SKEWS_SEC = [-600, -45, 45, 600] as const;

/**
 * About 20 faults a minute: each recovers before the next of its kind, several overlap, and throughput comes back between.
 */
const MEAN_GAP_MS = 3_000;

/** The shortest and the longest of each. A kill lasts until whoever was killed is started again. */
const DURATION_MS: Record<FaultName, readonly [number, number]> = {
  'kill-db1-postmaster': [200, 3_000],
  'kill-db2-postmaster': [200, 6_000],
  'kill-db1-backend': [0, 0],
  'kill-db2-backend': [0, 0],
  'stop-db1-immediate': [200, 3_000],
  'stop-db2-immediate': [200, 6_000],
  'kill-worker': [0, 4_000],
  'kill-server': [0, 2_000],
  // Longer than the leases of this world (world.ts), so that somebody else has taken over when it wakes up.
  'stall-worker': [6_000, 10_000],
  delay: [2_000, 6_000],
  cut: [1_000, 5_000],
  'half-open': [2_000, 8_000],
  'cut-after-request': [2_000, 6_000],
  'flush-redis': [0, 0],
  'kill-redis': [500, 5_000],
  'target-errors': [2_000, 8_000],
  'clock-skew': [4_000, 12_000],
  'rolling-restart': [0, 0],
};

function targetOf(fault: FaultName, random: Random): string {
  switch (fault) {
    case 'kill-db1-postmaster':
    case 'kill-db1-backend':
    case 'stop-db1-immediate':
      return 'db1';
    case 'kill-db2-postmaster':
    case 'kill-db2-backend':
    case 'stop-db2-immediate':
      return 'db2';
    case 'kill-worker':
    case 'stall-worker':
      return random.pick(WORKERS);
    case 'kill-server':
      return random.pick(SERVERS);
    case 'clock-skew':
      return `${random.pick(WORKERS)} ${random.pick(SKEWS_SEC)} s`;
    case 'delay':
    case 'cut':
    case 'half-open':
    case 'cut-after-request':
      return random.pick(LINKS);
    case 'flush-redis':
    case 'kill-redis':
      return 'redis';
    case 'target-errors':
      return random.pick(TARGET_MOODS);
    case 'rolling-restart':
      return 'all';
  }
}

/**
 * Every kind once before any comes twice, in an order that the seed decides after those of `first`. Times count from the
 * storm's beginning.
 */
export function planFaults(
  seed: number,
  minutes: number,
  faults: readonly FaultName[],
  first: readonly FaultName[] = [],
): Planned[] {
  const random = createRandom(seed, 'schedule');
  const endMs = minutes * 60_000;
  const planned: Planned[] = [];
  let deck: FaultName[] = [];
  let ahead = first.filter((fault) => faults.includes(fault)).reverse();
  let atMs = random.between(0, MEAN_GAP_MS);
  while (faults.length > 0 && atMs < endMs) {
    if (deck.length === 0) {
      deck = [...random.shuffled(faults).filter((fault) => !ahead.includes(fault)), ...ahead];
      ahead = [];
    }
    const fault = deck.pop();
    if (fault === undefined) break;
    const [shortest, longest] = DURATION_MS[fault];
    const target = targetOf(fault, random);
    planned.push({ atMs, fault, target, forMs: random.between(shortest, longest) });
    atMs += random.between(MEAN_GAP_MS / 3, (MEAN_GAP_MS * 5) / 3);
  }
  return planned;
}

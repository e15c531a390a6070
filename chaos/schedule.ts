// Which fault happens when, to what and for how long: a pure function of the seed, so that a run can be repeated.

import { POWER_CUT_TARGETS } from './faults/power.ts';
import { type FaultName, isNeighbour } from './options.ts';
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

/** Neighbours take turns: each is judged by what a healthy one met beside it alone. */
export const NEIGHBOUR_PART = 'neighbours';

/** How the webhook target misbehaves. */
export const TARGET_MOODS = ['flapping', 'hanging', 'resetting', 'redirecting'] as const;

/** Seconds by which the clock of a worker is wrong: within and beyond every lease, timeout and tolerance. */
const SKEWS_SEC = [-600, -45, 45, 600] as const;

/** How long Stripe takes to answer: within and beyond what a call waits. */
const STRIPE_SLOW_MS = [500, 3_000, 11_000] as const;
/** By how much its clock is ahead: within and beyond the minute by which a session may come late. */
const STRIPE_CLOCK_SEC = [-300, -45, 45, 300] as const;

/**
 * About 20 faults a minute: each recovers before the next of its kind, several overlap, and throughput comes back between.
 */
const MEAN_GAP_MS = 3_000;

/** The shortest and the longest of each. A kill lasts until the killed process is started again. */
const DURATION_MS: Record<FaultName, readonly [number, number]> = {
  'kill-db1-postmaster': [200, 3_000],
  'kill-db2-postmaster': [200, 6_000],
  'kill-db1-backend': [0, 0],
  'kill-db2-backend': [0, 0],
  'stop-db1-immediate': [200, 3_000],
  'stop-db2-immediate': [200, 6_000],
  'kill-worker': [0, 4_000],
  'kill-server': [0, 2_000],
  // Longer than the leases of this world (world.ts), so that another worker has taken over when it wakes up.
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
  'kill-process': [0, 0],
  reload: [0, 0],
  // Longer and shorter than the grace of this world's pools (world.ts).
  'stripe-down': [2_000, 12_000],
  'stripe-slow': [3_000, 12_000],
  'stripe-cut-after-request': [2_000, 8_000],
  'webhook-dropped': [2_000, 10_000],
  'stripe-clock': [4_000, 12_000],
  // Long enough for the p99 of a healthy one (clients/healthy.ts).
  'neighbour-slow-hook': [12_000, 15_000],
  'neighbour-failing-hook': [12_000, 15_000],
  'neighbour-stuck-transaction': [12_000, 15_000],
  // Its kills take about that long by themselves.
  'neighbour-killed-workers': [0, 0],
  'neighbour-flood': [12_000, 15_000],
  'power-cut': [200, 1_500],
};

/**
 * Beside other faults neighbours have windows of their own, the last part of each two minutes: a database that is down makes
 * all clients wait, and says nothing about neighbours. A run that is too short for a window has none.
 */
const CYCLE_MS = 120_000;
const NEIGHBOURS_SHARE = 0.4;
/** From the end of other faults to the first neighbour, and from one neighbour to the next. */
const SETTLE_MS = 8_000;
const BETWEEN_NEIGHBOURS_MS: readonly [number, number] = [2_000, 4_000];
/** What a neighbour is planned to last at most, kills of workers included. */
const NEIGHBOUR_MS = 15_000;

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
    case 'kill-process':
    case 'reload':
      return random.pick([...SERVERS, ...WORKERS]);
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
    case 'stripe-down':
    case 'stripe-cut-after-request':
    case 'webhook-dropped':
      return 'stripe';
    case 'stripe-slow':
      return `${random.pick(STRIPE_SLOW_MS)} ms`;
    case 'stripe-clock':
      return `${random.pick(STRIPE_CLOCK_SEC)} s`;
    case 'neighbour-slow-hook':
      return random.pick(['commit', 'validation']);
    case 'neighbour-failing-hook':
      return 'hooks';
    case 'neighbour-stuck-transaction':
      return random.pick(['slots', 'request']);
    case 'neighbour-killed-workers':
      return 'workers';
    case 'neighbour-flood':
      return 'doors';
    case 'power-cut':
      return random.pick(POWER_CUT_TARGETS);
  }
}

/**
 * Every kind once before any comes twice, neighbours and others each by themselves, in an order that the seed decides after
 * those of `first`. Times count from the storm's beginning.
 */
export function planFaults(
  seed: number,
  minutes: number,
  faults: readonly FaultName[],
  first: readonly FaultName[] = [],
): Planned[] {
  const endMs = minutes * 60_000;
  const neighbours = new Deck(createRandom(seed, 'neighbours'), faults.filter(isNeighbour), first);
  const others = new Deck(
    createRandom(seed, 'schedule'),
    faults.filter((fault) => !isNeighbour(fault)),
    first,
  );
  if (others.isEmpty) return planNeighbours(neighbours, 0, endMs);
  const cycles = Math.max(1, Math.round(endMs / CYCLE_MS));
  const cycleMs = endMs / cycles;
  const windowMs = cycleMs * NEIGHBOURS_SHARE;
  if (neighbours.isEmpty || windowMs < SETTLE_MS + NEIGHBOUR_MS) return planOthers(others, 0, endMs);
  return Array.from({ length: cycles }, (_, cycle) => {
    const [fromMs, toMs] = [cycle * cycleMs, (cycle + 1) * cycleMs];
    const windowAtMs = toMs - windowMs;
    // What would last into the window of the neighbours is cut short.
    const before = planOthers(others, fromMs, windowAtMs).map((plan) => ({
      ...plan,
      forMs: Math.min(plan.forMs, windowAtMs - plan.atMs),
    }));
    return [...before, ...planNeighbours(neighbours, windowAtMs + SETTLE_MS, toMs)];
  }).flat();
}

function planOthers(deck: Deck, fromMs: number, toMs: number): Planned[] {
  const { random } = deck;
  const planned: Planned[] = [];
  let atMs = fromMs + random.between(0, MEAN_GAP_MS);
  while (!deck.isEmpty && atMs < toMs) {
    planned.push(deck.plan(atMs));
    atMs += random.between(MEAN_GAP_MS / 3, (MEAN_GAP_MS * 5) / 3);
  }
  return planned;
}

/** One after the other, each whole. */
function planNeighbours(deck: Deck, fromMs: number, toMs: number): Planned[] {
  const planned: Planned[] = [];
  let atMs = fromMs;
  while (!deck.isEmpty && atMs + NEIGHBOUR_MS <= toMs) {
    planned.push(deck.plan(atMs));
    atMs += NEIGHBOUR_MS + deck.random.between(...BETWEEN_NEIGHBOURS_MS);
  }
  return planned;
}

/** Faults in the order of a shuffled deck, and then of another. */
class Deck {
  readonly random: Random;
  readonly #faults: readonly FaultName[];
  #left: FaultName[] = [];
  #ahead: FaultName[];

  constructor(random: Random, faults: readonly FaultName[], first: readonly FaultName[]) {
    this.random = random;
    this.#faults = faults;
    this.#ahead = first.filter((fault) => faults.includes(fault)).reverse();
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0;
  }

  plan(atMs: number): Planned {
    if (this.#left.length === 0) {
      const rest = this.random.shuffled(this.#faults).filter((fault) => !this.#ahead.includes(fault));
      this.#left = [...rest, ...this.#ahead];
      this.#ahead = [];
    }
    const fault = this.#left.pop();
    if (fault === undefined) throw new Error('no fault is left to plan');
    const [shortest, longest] = DURATION_MS[fault];
    const target = targetOf(fault, this.random);
    return { atMs, fault, target, forMs: this.random.between(shortest, longest) };
  }
}

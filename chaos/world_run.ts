// One run: warm, storm, calm, drain, collect. What comes out is a history for the judge.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readBooks } from './books.ts';
import { Buyers } from './clients/buyers.ts';
import { Callers } from './clients/callers.ts';
import { Healthy } from './clients/healthy.ts';
import { Operator } from './clients/operator.ts';
import { PaidBuyers } from './clients/paid_buyers.ts';
import { Providers } from './clients/providers.ts';
import { type AckKind, Traffic } from './clients/traffic.ts';
import { collect, collectPaid } from './collect.ts';
import { drain } from './drain.ts';
import { FAULT_KINDS } from './faults/kinds.ts';
import type { Fault, History } from './history.ts';
import { Journal, readJournals } from './journal.ts';
import { createNemesis, type Happened, type Nemesis } from './nemesis.ts';
import { type FaultName, isNeighbour, type Phase, type RunOptions, STRIPE_FAULTS } from './options.ts';
import { createRandom } from './random.ts';
import { type Planned, planFaults } from './schedule.ts';
import { PAID_TENANT } from './tables.ts';
import { readWorkerLog, type WorkerLog } from './worker_log.ts';
import { openDir, startWorld, type World } from './world.ts';

/** Per second in all, and by how many clients at a time. Bounded: the processes on trial share two cores with us. */
const LOADS = {
  full: {
    buyers: [100, 32],
    providers: [50, 12],
    callers: [40, 8],
    paid: [10, 8],
    operator: 0.7,
    warmMs: 5_000,
  },
  small: {
    buyers: [35, 16],
    providers: [18, 6],
    callers: [12, 4],
    paid: [5, 4],
    operator: 0.7,
    warmMs: 3_000,
  },
} as const;

/** After the last fault: long enough for a client to be acknowledged again, so that recovery can be measured. */
const AFTERMATH_MS = 2_000;
/** Clients that have no answer by then never get one. PostgREST waits up to 32 s before it looks for its database again. */
const PATIENCE_MS = 60_000;
const DRAIN_MS = 120_000;
/** What a healthy one is compared with: without faults, and after the slow first seconds of new processes. */
const QUIET_LEAD_MS = 5_000;
const QUIET_MS = 10_000;
const PROGRESS_MS = 1_000;
/** Slots for claims after the storm, and for a machine that is faster than planned. */
const SPARE_SEC = 15;

export async function runHistory(options: RunOptions): Promise<History> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'));
  openDir(dir);
  let isKept = options.keep ?? false;
  try {
    const run = new Run(options, dir);
    return await run.toHistory();
  } catch (error) {
    isKept = true;
    throw new Error(`the run came to no end; its journals and logs are in ${dir}`, { cause: error });
  } finally {
    if (!isKept) rmSync(dir, { recursive: true, force: true });
  }
}

class Run {
  readonly #options: RunOptions;
  readonly #dir: string;
  /** The run begins when the world stands: the time to start it does not count. */
  #startedMs = performance.now();
  #startedAt = Date.now();
  readonly #load: (typeof LOADS)['full' | 'small'];
  readonly #hasNeighbours: boolean;
  /** Paid orders are made where Stripe's faults are asked for. */
  readonly #hasPaid: boolean;
  #phase: Phase = 'start';
  #nemesis: Nemesis | undefined;
  #traffic: Traffic | undefined;

  constructor(options: RunOptions, dir: string) {
    this.#options = options;
    this.#dir = dir;
    this.#load = LOADS[options.scale ?? 'full'];
    this.#hasPaid = STRIPE_FAULTS.some((fault) => options.faults.includes(fault));
    this.#hasNeighbours = this.#plan(options.faults).some(({ fault }) => isNeighbour(fault));
  }

  #plan(faults: readonly FaultName[]): Planned[] {
    const { seed, minutes, first } = this.#options;
    return planFaults(seed, minutes, faults, first);
  }

  #now(): number {
    return performance.now() - this.#startedMs;
  }

  async toHistory(): Promise<History> {
    const journal = new Journal(join(this.#dir, 'journal'));
    const stopProgress = this.#startProgress();
    const stormMs = this.#options.minutes * 60_000;
    const [claimsPerSec] = this.#load.buyers;
    const hasNeighbours = this.#hasNeighbours;
    const seconds =
      (this.#load.warmMs + (hasNeighbours ? QUIET_LEAD_MS + QUIET_MS : 0) + stormMs) / 1_000 + SPARE_SEC;
    const expected = { claims: claimsPerSec * seconds, seconds, hasNeighbours };
    const world = await startWorld(this.#options, this.#dir, expected, (call) => {
      journal.write('target', 'target', { ...call, at: this.#now() });
      if (call.kind === 'commit' && call.status === 200) this.#traffic?.acknowledged('commit');
    });
    this.#startedMs = performance.now();
    this.#startedAt = Date.now();
    try {
      return await this.#throughAllPhases(world, journal, stormMs);
    } finally {
      stopProgress();
      await world.stop();
      journal.close();
    }
  }

  async #throughAllPhases(world: World, journal: Journal, stormMs: number): Promise<History> {
    const { ports, postgrestPort } = world;
    const traffic = new Traffic({ journal, ports, postgrestPort, startedMs: this.#startedMs });
    this.#traffic = traffic;
    // A client that is told what it must not be told ends the storm; the failure is told when everything has stopped.
    const broken = new AbortController();
    const clients = this.#startClients(world, traffic);
    clients.catch(() => broken.abort());
    const signal = AbortSignal.any([broken.signal, ...(this.#options.signal ? [this.#options.signal] : [])]);

    this.#phase = 'warm';
    await pause(this.#load.warmMs, undefined, { signal }).catch(() => undefined);
    const quietAt = this.#now() + QUIET_LEAD_MS;
    if (this.#hasNeighbours)
      await pause(QUIET_LEAD_MS + QUIET_MS, undefined, { signal }).catch(() => undefined);

    this.#phase = 'storm';
    const stormAt = this.#now();
    const { seed, faults } = this.#options;
    const now = () => this.#now();
    const possible = faults.filter((fault) => world.redis !== undefined || !fault.endsWith('-redis'));
    const plan = this.#plan(possible);
    const scene = { ...world, traffic };
    const nemesis = createNemesis(scene, plan, createRandom(seed, 'nemesis'), now, stormMs, signal);
    this.#nemesis = nemesis;
    try {
      await nemesis.run();

      this.#phase = 'calm';
      for (const one of [...world.servers, ...world.workers]) if (one.hasEnded) await one.start();
      const calmAt = this.#now();
      await pause(AFTERMATH_MS);
      traffic.close(PATIENCE_MS);
      await clients;

      this.#phase = 'drain';
      const urls = { db1: world.db1.url, db2: world.db2.url };
      const drained = await drain(urls, world.stripe, this.#options.drainMs ?? DRAIN_MS);
      const drainedAt = drained.isDrained ? this.#now() : null;

      this.#phase = 'collect';
      return await this.#collect(world, traffic, nemesis.happened, {
        ...{ stormAt, calmAt, drainedAt, left: drained.left },
        ...(this.#hasNeighbours && { quietAt }),
      });
    } finally {
      traffic.close(0);
      await clients.catch(() => undefined);
      traffic.destroy();
    }
  }

  async #startClients(world: World, traffic: Traffic): Promise<void> {
    const { seed } = this.#options;
    const { buyers, providers, callers, paid, operator } = this.#load;
    const lanes = (count: number, rate: number): [number, number] => [count, rate];
    await Promise.all([
      new Buyers(traffic, seed).run(...lanes(buyers[1], buyers[0])),
      new Providers(traffic, seed, world.stripeSecret).run(...lanes(providers[1], providers[0])),
      new Callers(traffic, seed).run(...lanes(callers[1], callers[0])),
      this.#hasPaid &&
        new PaidBuyers(traffic, seed, {
          ...{ stripe: world.stripe, stripeUrl: world.stripeUrl, stripeKey: world.stripeKey },
          db2Url: () => world.db2.url,
        }).run(...lanes(paid[1], paid[0])),
      new Operator(traffic, seed, world.adminKey, () => world.db1.url).run(operator),
      this.#hasNeighbours && new Healthy(traffic, world.stripeSecret, () => world.db2.url).run(),
    ]);
  }

  async #collect(
    world: World,
    traffic: Traffic,
    happened: readonly Happened[],
    times: Pick<History, 'quietAt' | 'stormAt' | 'calmAt' | 'drainedAt' | 'left'>,
  ): Promise<History> {
    // Workers are stopped first, so that all they know is in their logs.
    await Promise.all(world.workers.map((worker) => worker.stop()));
    const urls = { db1: world.db1.url, db2: world.db2.url };
    const final = await collect(urls);
    const [bought, books] = await Promise.all([collectPaid(urls), readBooks(world.stripe)]);
    const told = readJournals(join(this.#dir, 'journal'));
    return {
      seed: this.#options.seed,
      minutes: this.#options.minutes,
      ...times,
      pools: world.pools,
      claims: told.claim,
      releases: told.release,
      events: told.event,
      callEvents: told.call,
      operatorActions: told.operator,
      healthy: told.healthy,
      poison: told.poison.map(({ id }) => id),
      targetCalls: told.target,
      faults: happened.map((fault) => withRecovery(fault, traffic)),
      ...readLogs(world, this.#startedAt),
      final,
      paid: {
        ...{ startedAtMs: this.#startedAt, tenant: PAID_TENANT, orders: told.order, voids: told.void },
        ...{ final: bought, books },
      },
      surprises: world.surprises,
      leftOut: world.leftOut,
      answers: traffic.answers,
      ...(this.#options.keep && { dir: this.#dir }),
    };
  }

  #startProgress(): () => void {
    const { onProgress } = this.#options;
    if (onProgress === undefined) return () => undefined;
    let before = 0;
    const timer = setInterval(() => {
      const acknowledgements = this.#traffic?.total ?? 0;
      onProgress({
        phase: this.#phase,
        atMs: this.#now(),
        acknowledgements,
        perSecond: (acknowledgements - before) / (PROGRESS_MS / 1_000),
        faults: this.#nemesis?.begun ?? 0,
        open: [...(this.#nemesis?.open ?? [])],
      });
      before = acknowledgements;
    }, PROGRESS_MS);
    return () => clearInterval(timer);
  }
}

function withRecovery(fault: Happened, traffic: Traffic): Fault {
  const kind: AckKind = FAULT_KINDS[fault.name as FaultName].touches(fault.target);
  const recoveredAt = traffic.acks[kind].find((at) => at >= fault.healedAt) ?? null;
  return { ...fault, recoveredAt };
}

/** A skewed worker dates its lines by its own clock. */
function readLogs(world: World, startedAt: number): WorkerLog {
  const logs = world.workers.flatMap((worker) =>
    worker.logs.map(({ path, skewMs }) =>
      readWorkerLog(worker.name, readFileSync(path, 'utf8'), startedAt + skewMs),
    ),
  );
  return {
    finishes: logs.flatMap((log) => log.finishes),
    eventFinishes: logs.flatMap((log) => log.eventFinishes),
    lostLeases: logs.flatMap((log) => log.lostLeases),
  };
}

// Lets the planned faults happen, heals each, and notes when.

import { setTimeout as pause } from 'node:timers/promises';
import type { Scene } from './faults/kind.ts';
import { FAULT_KINDS } from './faults/kinds.ts';
import type { Random } from './random.ts';
import type { Planned } from './schedule.ts';

/** A fault as it happened; which traffic it touched says how recovery is measured. */
export type Happened = { name: string; target: string; startedAt: number; healedAt: number };

export type Nemesis = {
  happened: Happened[];
  /** Faults that are not healed yet. */
  open: Set<string>;
  begun: number;
  /** Resolves when the last fault is healed. Rejects when something could not be healed. */
  run(): Promise<void>;
};

/**
 * Faults to one and the same part wait for each other: while one fault starts a server, another cannot kill and start it.
 * One that would begin after the storm is left out.
 */
export function createNemesis(
  scene: Scene,
  planned: readonly Planned[],
  random: Random,
  now: () => number,
  stormMs: number,
  signal: AbortSignal,
): Nemesis {
  const happened: Happened[] = [];
  const open = new Set<string>();
  const lines = new Map<string, Promise<void>>();
  const nemesis: Nemesis = { happened, open, begun: 0, run };

  async function run(): Promise<void> {
    const beganMs = now();
    const isOver = (): boolean => signal.aborted || now() - beganMs >= stormMs;
    const all: Promise<void>[] = [];
    for (const plan of planned) {
      await rest(plan.atMs - (now() - beganMs), signal);
      if (isOver()) break;
      all.push(enqueue(plan, isOver));
    }
    await rest(stormMs - (now() - beganMs), signal);
    // Settled, not just all: a fault that failed must not leave others unhealed behind it.
    const ends = await Promise.allSettled(all);
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /** Behind every fault that touches one of the same parts. */
  function enqueue(plan: Planned, isOver: () => boolean): Promise<void> {
    const parts = FAULT_KINDS[plan.fault].partsOf(plan.target, scene);
    const before = Promise.allSettled(parts.map((part) => lines.get(part)));
    const done = before.then(() => (isOver() ? undefined : makeHappen(plan)));
    for (const part of parts) lines.set(part, done);
    // `run` reports a failure at the end of the storm; until then it must not end the process as unhandled.
    done.catch(() => undefined);
    return done;
  }

  async function makeHappen(plan: Planned): Promise<void> {
    const { begin } = FAULT_KINDS[plan.fault];
    const name = `${plan.fault} ${plan.target}`;
    nemesis.begun++;
    open.add(name);
    const startedAt = now();
    try {
      const heal = await begin(scene, plan, random);
      if (heal !== undefined) {
        await rest(plan.forMs, signal);
        await heal();
      }
    } catch (error) {
      throw new Error(`${name} could not be done or healed`, { cause: error });
    } finally {
      open.delete(name);
    }
    happened.push({ name: plan.fault, target: plan.target, startedAt, healedAt: now() });
  }

  return nemesis;
}

/** Cut short by the signal. */
async function rest(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return;
  await pause(ms, undefined, { signal }).catch(() => undefined);
}

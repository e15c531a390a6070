// CPU that processes have used, from /proc, in two accounts: what is measured, and what sends the load.

import { readdirSync, readFileSync } from 'node:fs';
import type { Session } from './world.ts';

/** What /proc counts in, on every Linux. */
export const US_PER_TICK = 10_000;

/** The parent of the backend that answers. */
export async function postmasterOf(session: Session): Promise<number> {
  return statOf(await session.ask<number>('select pg_backend_pid()')).parent;
}

/** Of a process and its children, those that have ended included. */
export function cpuUs(pid: number): number {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => tryStat(Number(name)))
    .filter((stat) => stat?.parent === pid);
  return [statOf(pid), ...children].reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0) * US_PER_TICK;
}

function tryStat(pid: number): ReturnType<typeof statOf> | undefined {
  try {
    return statOf(pid);
  } catch {
    // It has ended since the folder was read; its parent has its ticks.
    return undefined;
  }
}

/**
 * After the name, which may have spaces: the third field is the state, the fourth the parent, 14 and 15 the ticks of the process,
 * 16 and 17 those of its children that have ended.
 */
export function statOf(pid: number): { parent: number; ticks: number; ownTicks: number; endedTicks: number } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const sum = (from: number) => Number(fields[from]) + Number(fields[from + 1]);
  const [ownTicks, endedTicks] = [sum(11), sum(13)];
  return { parent: Number(fields[1]), ticks: ownTicks + endedTicks, ownTicks, endedTicks };
}

/** Of this process, without its children. */
export const ownUs = (): number => statOf(process.pid).ownTicks * US_PER_TICK;
/** Of the children of this process that have ended, such as a load generator that ran to its end. */
export const endedUs = (): number => statOf(process.pid).endedTicks * US_PER_TICK;

export type Accounts = {
  /** What is measured: servers, workers, databases. */
  system(): number;
  /** What sends the load. */
  load(): number;
};

/** Of one operation; `per_core` is how many operations a core of the measured system does in a second. */
export type Spent = { cpu_us: number; load_cpu_us: number; per_core: number };

/** What both accounts use from now on. */
export function startMeter({ system, load }: Accounts): (ops: number) => Spent {
  const [systemBefore, loadBefore] = [system(), load()];
  return (ops) => spentOn(ops, system() - systemBefore, load() - loadBefore);
}

const US_PER_SEC = 1e6;

/** A run that was too short for a tick has no rate for a core: it is 0. */
export function spentOn(ops: number, systemUs: number, loadUs: number): Spent {
  const perCore = systemUs > 0 ? (ops * US_PER_SEC) / systemUs : 0;
  return { cpu_us: systemUs / ops, load_cpu_us: loadUs / ops, per_core: perCore };
}

/** The load generator's part of all CPU; 0 where there was none. */
export function loadShare({ cpu_us, load_cpu_us }: Pick<Spent, 'cpu_us' | 'load_cpu_us'>): number {
  const all = cpu_us + load_cpu_us;
  return all > 0 ? load_cpu_us / all : 0;
}

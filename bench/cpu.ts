// CPU that a process and its children have used, from /proc.

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

/** After the name, which may have spaces: the third field is the state, the fourth the parent, 14 to 17 the ticks. */
export function statOf(pid: number): { parent: number; ticks: number } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    parent: Number(fields[1]),
    ticks: fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0),
  };
}

// What outlives the tests that started it: it is ended, and it is named.

import { spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { sep } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

type Running = { pid: number; parent: number; group: number; args: string };

/** A process that was told to end may take this long before it counts as left behind. */
const GRACE_MS = 2_000;
/** `sluice dev` ends two databases and what stands before them. */
const PATIENCE_MS = 10_000;
const POLL_MS = 50;
/** A browser alone has command lines of many kilobytes. */
const MAX_LISTING_BYTES = 64 * 1024 * 1024;

/** Ends what is alive in a process group, and says what that was. */
export function endGroup(group: number): Promise<string[]> {
  return endAll((one) => one.group === group);
}

/**
 * Ends what works in a folder, and says what that was: the folder is in its command line, or its output goes there. The
 * latter is how servers are found that have a group of their own and get no path; only Linux tells.
 */
export function endThoseIn(folder: string): Promise<string[]> {
  const inside = folder + sep;
  const works = ({ pid, args }: Running) => args.includes(inside) || outputOf(pid).startsWith(inside);
  return endAll((one) => works(one) && isOfRun(one, inside));
}

/** A process that only reads a log there is not ours to end: what a run starts has the folder in its environment. */
function isOfRun({ pid, args }: Running, inside: string): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
    // Postgres writes its titles over its environment.
    return environment.includes(inside) || /^\S*postgres\b/.test(args);
  } catch {
    // It has ended, or this system is not Linux.
    return true;
  }
}

/** Signals a process, or a group for a negative number. One that has ended or belongs to another user is left alone. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

async function endAll(isOurs: (one: Running) => boolean): Promise<string[]> {
  const look = () => listProcesses().filter(isOurs);
  const left = await untilNone(look, GRACE_MS);
  // Parents end their children, and in the right order: Postgres its backends, `sluice dev` its servers.
  const heads = left.filter(({ parent }) => !left.some(({ pid }) => pid === parent));
  for (const { pid } of heads) signal(pid, 'SIGINT');
  for (const { pid } of await untilNone(look, PATIENCE_MS)) signal(pid, 'SIGKILL');
  await untilNone(look, PATIENCE_MS);
  return heads.map(({ pid, args }) => `pid ${pid} was left running: ${args}`);
}

/** Looks until none is left or the time is over, and returns those that are left. */
async function untilNone(look: () => Running[], patienceMs: number): Promise<Running[]> {
  const until = Date.now() + patienceMs;
  let left = look();
  while (left.length > 0 && Date.now() < until) {
    await delay(POLL_MS);
    left = look();
  }
  return left;
}

/** Without those that have ended and were not collected by their parents (zombies). */
function listProcesses(): Running[] {
  const columns = 'pid=,ppid=,pgid=,stat=,args=';
  const { stdout } = spawnSync('ps', ['-axww', '-o', columns], {
    encoding: 'utf8',
    maxBuffer: MAX_LISTING_BYTES,
  });
  return (stdout ?? '').split('\n').flatMap((line) => {
    const [, pid, parent, group, state, args] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    if (args === undefined || state?.startsWith('Z')) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), args }];
  });
}

function outputOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/1`);
  } catch {
    // It has ended, belongs to another user, or this system is not Linux.
    return '';
  }
}

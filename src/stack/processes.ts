import { type ChildProcess, spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;

/** A process by its number and the moment it began: numbers are given out again, the pair is not. */
export type ProcessId = { pid: number; startedAt: string };

/** A process that has ended but was not yet collected by its parent (a zombie) counts as gone. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const state = ps(pid, 'stat');
  return state !== '' && !state.startsWith('Z');
}

function ps(pid: number, column: string): string {
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
  return (
    spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8', env }).stdout?.trim() ?? ''
  );
}

export function identify(pid: number): ProcessId {
  return { pid, startedAt: ps(pid, 'lstart') };
}

export function isSameProcess({ pid, startedAt }: ProcessId): boolean {
  return isAlive(pid) && startedAt !== '' && ps(pid, 'lstart') === startedAt;
}

export function commandLine(pid: number): string {
  return ps(pid, 'args');
}

/** Waits until a process that need not be our child is gone. False when it outlives the deadline. */
export async function waitUntilGone(pid: number, deadlineMs: number): Promise<boolean> {
  const until = Date.now() + deadlineMs;
  while (isAlive(pid)) {
    if (Date.now() > until) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** Sends each signal in turn, giving the process the time to obey before the next. */
export async function stopProcess(pid: number, signals: NodeJS.Signals[], patienceMs: number): Promise<void> {
  for (const signal of signals) {
    if (!isAlive(pid)) return;
    process.kill(pid, signal);
    if (await waitUntilGone(pid, patienceMs)) return;
  }
}

/** When a process that we started has ended, or could not be started, and whether it has. */
export function endOf(child: ChildProcess): { exited: Promise<void>; hasEnded(): boolean } {
  let hasEnded = child.exitCode !== null || child.signalCode !== null;
  const exited = new Promise<void>((resolve) => {
    const onEnd = () => {
      hasEnded = true;
      resolve();
    };
    if (hasEnded) return resolve();
    child.once('exit', onEnd);
    // Also told where a signal could not be sent to a process that runs.
    child.on('error', () => {
      if (child.pid === undefined) onEnd();
    });
  });
  return { exited, hasEnded: () => hasEnded };
}

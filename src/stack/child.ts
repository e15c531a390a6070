// Programs of the stack that run beside us until we stop them: PostgREST and Deno. Postgres has its own rules (postgres.ts).

import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, renameSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from '../failure.ts';
import { endOf } from './processes.ts';

export const READY_DEADLINE_MS = 30_000;
const POLL_MS = 20;
const STOP_PATIENCE_MS = 5_000;

/** A program of the stack that we started. */
export type Child = {
  /** 0 where it could not be started. */
  pid: number;
  exited: Promise<void>;
  hasEnded(): boolean;
  stop(): Promise<void>;
};

export type ChildOptions = {
  binary: string;
  args?: readonly string[];
  cwd?: string;
  /** Beside PATH all that it sees: settings of the person's own shell must not reach it. */
  env: Record<string, string>;
  logFile: string;
  /** Told the process id before it is ready, so that a kill in between leaves no stranger behind. */
  onSpawn?: ((pid: number) => void) | undefined;
  /** Calls the start off. */
  signal?: AbortSignal | undefined;
};

export function startChild({
  binary,
  args = [],
  cwd,
  env,
  logFile,
  onSpawn,
}: Omit<ChildOptions, 'signal'>): Child {
  if (existsSync(logFile)) renameSync(logFile, `${logFile}.old`);
  const log = openSync(logFile, 'w', 0o600);
  const child = spawn(binary, args, {
    ...(cwd !== undefined && { cwd }),
    // Its own process group, as for Postgres: Ctrl-C reaches us, and we stop it in the right order.
    detached: true,
    stdio: ['ignore', log, log],
    env: { PATH: process.env.PATH ?? '', ...env },
  });
  closeSync(log);
  if (child.pid !== undefined) onSpawn?.(child.pid);
  const end = endOf(child);
  return {
    pid: child.pid ?? 0,
    ...end,
    async stop() {
      child.kill('SIGTERM');
      const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
      await end.exited;
      clearTimeout(impatience);
    },
  };
}

/** What `look` finds once the child is ready; undefined where it ends before that, is not ready in time, or the signal comes. */
export async function whenReady<Found>(
  child: Child,
  look: () => Promise<Found | undefined>,
  signal?: AbortSignal,
): Promise<Found | undefined> {
  const until = Date.now() + READY_DEADLINE_MS;
  while (!child.hasEnded() && !signal?.aborted && Date.now() < until) {
    const found = await look();
    if (found !== undefined) return found;
    await delay(POLL_MS);
  }
  return undefined;
}

/** The program that an environment variable names; undefined where the variable is not set. */
export function namedProgram(variable: string, program: string): string | undefined {
  const named = process.env[variable];
  if (!named || existsSync(named)) return named || undefined;
  throw new StackError(
    `${variable} names ${named}, which does not exist`,
    `set it to the ${program} program, or unset it`,
  );
}

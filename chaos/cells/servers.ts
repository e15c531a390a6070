// Programs of Debian that a cell is made of, started by hand: no systemd, a temporary folder, the user postgres.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { LOOPBACK } from '../../src/stack/ports.ts';
import { isAlive } from '../../src/stack/processes.ts';
import { giveToServer, serverUser } from '../../src/stack/server_user.ts';
import { prepareDebian } from '../../test/pgtap/debian_cluster.ts';

export const POSTGRES_BIN = '/usr/lib/postgresql/15/bin';
const PACKAGES = ['patroni', 'etcd-server', 'etcd-client'];
const ENVIRONMENT = {
  PATH: `/usr/bin:/bin:${POSTGRES_BIN}`,
  HOME: '/nonexistent',
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
};

/** Puts Patroni, etcd and Postgres 15 with our extensions in place. Returns why not, if not. */
export async function prepareCells(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'cells are started by root, for the user postgres';
  return prepareDebian(PACKAGES);
}

/** In a process group of its own: a Ctrl-C at the terminal reaches us, and we end it in the right order. */
export function launch(program: string, args: readonly string[], logFile: string): ChildProcess {
  const log = openSync(logFile, 'a', 0o600);
  giveToServer(logFile);
  const child = spawn(program, args, {
    ...serverUser,
    cwd: '/',
    env: ENVIRONMENT,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  child.on('error', () => undefined);
  child.unref();
  return child;
}

/** All at once, each held until the last is known: no two are the same. */
export async function freePorts(count: number): Promise<number[]> {
  const held = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Server>((resolve, reject) => {
          const server = createServer();
          server.once('error', reject);
          server.listen(0, LOOPBACK, () => resolve(server));
        }),
    ),
  );
  const ports = held.map((server) => (server.address() as { port: number }).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Sends the signal where the process is still there. */
export function signal(pid: number | undefined, name: NodeJS.Signals): void {
  if (!pid) return;
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The process and its children, which a signal to the process alone does not reach. */
export function familyOf(pid: number): number[] {
  if (!pid || !isAlive(pid)) return [];
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' });
  return [pid, ...stdout.trim().split('\n').filter(Boolean).map(Number)];
}

/** Asks until it is true or something else that is; a test that throws has not come true yet. */
export async function until<Found>(
  what: string,
  test: () => Promise<Found | false | undefined> | Found | false | undefined,
  forMs: number,
  everyMs = 100,
): Promise<Found> {
  const deadline = Date.now() + forMs;
  let reason: unknown;
  for (;;) {
    try {
      const found = await test();
      if (found) return found;
      reason = undefined;
    } catch (error) {
      reason = error;
    }
    if (Date.now() > deadline) throw new Error(`${what}: not within ${forMs / 1_000} s`, { cause: reason });
    await pause(everyMs);
  }
}

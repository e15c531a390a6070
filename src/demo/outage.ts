// An outage of the ledger, made by stopping its Postgres for a while. Only the one that `npm start` runs on this machine.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '../failure.ts';
import { commandLine, isSameProcess, type ProcessId } from '../stack/processes.ts';
import { layout } from '../stack/settings.ts';

const RUN_FILE = 'db2-postgres.json';
/** The guard comes a little later than we do. */
const GUARD_EXTRA_SEC = 5;
/** "postgres: user database address(port) …": a process that serves a client, and none that Postgres itself needs. */
const SERVES_A_CLIENT = /^postgres: .+\(\d+\)/;

/** The process id of the ledger's Postgres, or why there is none to stop. */
export function findLedgerProcess(dir: string, db2Url: string): number {
  const noted = readNote(join(layout(dir).run, RUN_FILE));
  const port = new URL(db2Url).port;
  const line = noted === undefined || !isSameProcess(noted) ? '' : commandLine(noted.pid);
  // Whatever else the number may belong to by now, and whatever other ledger we are connected to, is not stopped.
  if (noted === undefined || !/\bpostgres\b/.test(line) || !line.includes(` -p ${port} `)) {
    throw new StackError(
      'the ledger is not one that `npm start` runs on this machine, so it cannot be stopped here',
      'leave out --outage, or run the demo beside `npm start`',
    );
  }
  return noted.pid;
}

function readNote(file: string): ProcessId | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // No stack, or one that was killed while it wrote this.
    return undefined;
  }
}

/**
 * Stops the ledger: its postmaster stands still, so that nobody gets a connection, and who has one loses it. Returns how to
 * end it, which may be called twice. Should this process be killed, a guard ends the outage a few seconds late.
 */
export function stopLedger(pid: number, seconds: number): () => void {
  const guard = startGuard(pid, seconds + GUARD_EXTRA_SEC);
  const end = (): void => {
    process.off('exit', end);
    signal(pid, 'SIGCONT');
    // The shell and what it waits for.
    if (guard.pid !== undefined) signal(-guard.pid, 'SIGTERM');
  };
  process.on('exit', end);
  try {
    process.kill(pid, 'SIGSTOP');
  } catch (error) {
    end();
    throw new StackError(
      `the ledger's Postgres (pid ${pid}) cannot be stopped: ${(error as Error).message}`,
      'run the demo as the user who ran `npm start`',
      error,
    );
  }
  for (const backend of clientsOf(pid)) signal(backend, 'SIGTERM');
  return end;
}

function startGuard(pid: number, seconds: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', `sleep ${seconds}; kill -CONT ${pid}`], {
    detached: true,
    stdio: 'ignore',
  });
  guard.unref();
  return guard;
}

function clientsOf(postmaster: number): number[] {
  const { stdout = '' } = spawnSync('ps', ['-axo', 'pid=,ppid=,args='], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, args] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return Number(parent) === postmaster && SERVES_A_CLIENT.test(args ?? '') ? [Number(pid)] : [];
  });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // Gone already: then there is nothing to be told.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

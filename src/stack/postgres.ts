import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from '../failure.ts';
import { withClient } from '../migrate/sql.ts';
import { postgresBinaries } from './binaries.ts';
import { freePort, LOOPBACK } from './ports.ts';
import { commandLine, endOf, isAlive, stopProcess } from './processes.ts';
import { giveToServer, makeServerDir, serverUser } from './server_user.ts';

export type StopMode = 'smart' | 'fast' | 'immediate';

export type Cluster = {
  dir: string;
  port: number;
  url: string;
  pid: number;
  logFile: string;
  /** Settles when the server has ended, wanted or not. */
  exited: Promise<void>;
  /** Ends the server and waits for it, also where it stands still. A second call waits for the same end. */
  stop(mode?: StopMode): Promise<void>;
};

export type ClusterOptions = {
  /** A folder the server's user can reach (see reachableDir); data and log go inside. */
  dir: string;
  /** Of the superuser `postgres`; used when the cluster is created, and to connect. */
  password: string;
  /** Left out: any free port. */
  port?: number;
  settings?: Record<string, string>;
  /** A folder whose `extension/` holds control files of our own. */
  extensionDir?: string;
  /** Calls the start off. */
  signal?: AbortSignal;
};

export const SUPERUSER = 'postgres';

const STOP_SIGNALS: Record<StopMode, NodeJS.Signals> = {
  smart: 'SIGTERM',
  fast: 'SIGINT',
  immediate: 'SIGQUIT',
};

// Crash recovery of a large write-ahead log can take its time; a server that hangs should not hang us for ever.
const START_DEADLINE_MS = 120_000;
const CONNECT_PAUSE_MS = 20;
const LEFTOVER_PATIENCE_MS = 10_000;
// After a SIGKILL of the postmaster its children hold the shared memory until they notice, and its process id
// stays taken until its parent collects it; in a container without a proper init that takes seconds.
const RETRY = { forMs: 20_000, pauseMs: 200 };
const LOG_TAIL_LINES = 20;

// fsync and synchronous_commit stay as Postgres has them, on: an acknowledged claim survives a crash.
const DEFAULT_SETTINGS: Record<string, string> = {
  // Enough for a cluster of a test; a stack has more (machineSettings).
  shared_buffers: '256MB',
  // Calls take milliseconds: to compile a plan that was estimated too high would take longer than to run it.
  jit: 'off',
  max_connections: '200',
  max_wal_size: '2GB',
  wal_level: 'replica',
  TimeZone: 'UTC',
  log_timezone: 'UTC',
};

// Settings of the user's own shell (PGDATA, PGOPTIONS, a UTF-8 locale that is not installed) must not reach the server.
const SERVER_ENV = { PATH: process.env.PATH ?? '', LC_ALL: 'C', LANG: 'C' };

const MB = 1_024 * 1_024;
/** Two clusters then have a quarter of the memory; Node, PostgREST and the file cache need theirs. */
const BUFFERS_SHARE = 1 / 8;
/** Postgres' own default, and three times what a pool of a million slots takes. */
const BUFFERS_MB = { least: 128, most: 1_024 };

/** What depends on the machine, for a cluster that runs for long: give it as `settings`. */
export function machineSettings(memoryBytes = usableMemory()): { shared_buffers: string } {
  const megabytes = Math.floor((memoryBytes * BUFFERS_SHARE) / MB);
  return { shared_buffers: `${Math.min(BUFFERS_MB.most, Math.max(BUFFERS_MB.least, megabytes))}MB` };
}

/** That of the machine, or of the container where that has less. */
function usableMemory(): number {
  // 0 or undefined: no limit that Node knows of.
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

/** Starts the cluster in `dir`, creating it first where there is none; ready means it takes connections. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  makeServerDir(options.dir);
  const dataDir = join(options.dir, 'data');
  if (!existsSync(join(dataDir, 'PG_VERSION'))) createDataDir(options.dir, dataDir, options.password);
  await stopLeftover(dataDir);
  const logFile = join(options.dir, 'server.log');
  if (existsSync(logFile)) renameSync(logFile, `${logFile}.old`);
  const retryUntil = Date.now() + RETRY.forMs;
  for (;;) {
    const port = options.port ?? (await freePort());
    const server = launch(options, dataDir, port, logFile);
    const url = `postgres://${SUPERUSER}:${encodeURIComponent(options.password)}@${LOOPBACK}:${port}/postgres`;
    if (await becomesReady(server, dataDir, url, logFile, options.signal))
      return asCluster(server, options.dir, port, url, logFile);
    const log = readFileSync(logFile, 'utf8');
    const passing =
      /pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(log) ||
      (options.port === undefined && /could not bind|Address already in use/.test(log));
    if (!passing || Date.now() > retryUntil) throw startFailure(logFile, 'ended while starting');
    await delay(RETRY.pauseMs, undefined, { signal: options.signal });
  }
}

/** Runs initdb in a draft folder, then renames it: a kill half-way leaves nothing that looks like a cluster. */
function createDataDir(dir: string, dataDir: string, password: string): void {
  const draft = `${dataDir}.new`;
  const passwordFile = join(dir, 'password.new');
  rmSync(draft, { recursive: true, force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveToServer(passwordFile);
  const result = spawnSync(
    postgresBinaries().initdb,
    [
      ...['-D', draft, '-U', SUPERUSER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`],
      ...[
        '-E',
        'UTF8',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--locale=C',
        '--no-instructions',
      ],
    ],
    { ...serverUser, cwd: '/', env: SERVER_ENV, encoding: 'utf8' },
  );
  rmSync(passwordFile);
  if (result.status !== 0) {
    throw new StackError(
      `initdb failed in ${dir}: ${result.stderr?.trim() || result.error?.message}`,
      'check free disk space and the rights of that folder',
    );
  }
  renameSync(draft, dataDir);
}

/** A parent that was SIGKILLed leaves its postmaster running. Only a server on this very folder is ended. */
async function stopLeftover(dataDir: string): Promise<void> {
  const pidFile = join(dataDir, 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 1 || !isAlive(pid) || !commandLine(pid).includes(dataDir)) return;
  await stopProcess(pid, ['SIGINT', 'SIGQUIT', 'SIGKILL'], LEFTOVER_PATIENCE_MS);
}

function launch(options: ClusterOptions, dataDir: string, port: number, logFile: string): ChildProcess {
  const settings = {
    ...DEFAULT_SETTINGS,
    ...(options.extensionDir && { extension_control_path: `${options.extensionDir}:$system` }),
    ...options.settings,
    listen_addresses: LOOPBACK,
    unix_socket_directories: '',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = openSync(logFile, 'w', 0o600);
  giveToServer(logFile);
  // Its own process group: a Ctrl-C at the terminal reaches us, and we end the server in the right order.
  const server = spawn(postgresBinaries().postgres, ['-D', dataDir, '-p', String(port), ...flags], {
    ...serverUser,
    cwd: '/',
    env: SERVER_ENV,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  return server;
}

async function becomesReady(
  server: ChildProcess,
  dataDir: string,
  url: string,
  logFile: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { exited, hasEnded } = endOf(server);
  const until = Date.now() + START_DEADLINE_MS;
  try {
    while (!hasEnded()) {
      signal?.throwIfAborted();
      // The port alone proves nothing: another server may be answering on it.
      if (saysReady(dataDir, server.pid)) {
        await withClient(url, async () => undefined);
        return true;
      }
      if (Date.now() > until)
        throw startFailure(logFile, `did not answer within ${START_DEADLINE_MS / 1000} s`);
      await delay(CONNECT_PAUSE_MS);
    }
  } catch (error) {
    server.kill('SIGQUIT');
    await exited;
    throw error;
  }
  return false;
}

/** The first line of postmaster.pid is the server's process id, the last its state, padded with spaces. */
function saysReady(dataDir: string, pid: number | undefined): boolean {
  const pidFile = join(dataDir, 'postmaster.pid');
  if (!existsSync(pidFile)) return false;
  const lines = readFileSync(pidFile, 'utf8').split('\n');
  return lines[0] === String(pid) && ['ready', 'standby'].includes(lines[7]?.trim() ?? '');
}

function startFailure(logFile: string, what: string): StackError {
  const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  return new StackError(`Postgres ${what}; its log ends with:\n${tail}`, `the whole log is ${logFile}`);
}

function asCluster(server: ChildProcess, dir: string, port: number, url: string, logFile: string): Cluster {
  const pid = server.pid;
  if (pid === undefined) throw new StackError('Postgres has no process id', `see ${logFile}`);
  const { exited } = endOf(server);
  return {
    dir,
    port,
    url,
    pid,
    logFile,
    exited,
    stop(mode: StopMode = 'fast') {
      server.kill(STOP_SIGNALS[mode]);
      server.kill('SIGCONT');
      return exited;
    },
  };
}

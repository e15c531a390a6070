// pgbench with prepared statements; every statement's latency from its log.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StackError } from '../src/failure.ts';
import { cleanUpOnExit } from '../test/support/databases.ts';
import { run } from './process.ts';
import type { Finished } from './stats.ts';

export type PgbenchOptions = {
  pgbench: string;
  url: string;
  script: string;
  clients: number;
  /** The run ends then, or when the pool is sold out. */
  maxSec: number;
  /** How many buyers a batch has; for scripts that use :size. */
  size: number;
};

/** As many as the machine this was written for has cores. */
const MAX_THREADS = 2;
/** What pgbench may need to connect and to finish what is under way. */
const GRACE_SEC = 60;
const SCRIPT = 'script.sql';
const LOG = 'log';
const EXIT_CLIENTS_ENDED_EARLY = 2;
const US_PER_SEC = 1e6;

/** Connections are made before the clock starts. */
export async function runPgbench(options: PgbenchOptions): Promise<Finished[]> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const forget = cleanUpOnExit(() => rmSync(dir, { recursive: true, force: true }));
  try {
    writeFileSync(join(dir, SCRIPT), options.script);
    const { code, stderr } = await run(options.pgbench, argumentsFor(options, dir), {
      env: connectionEnv(options.url),
      maxSec: options.maxSec + GRACE_SEC,
    });
    const isSoldOut = code === EXIT_CLIENTS_ENDED_EARLY && /division by zero/.test(stderr);
    if (code !== 0 && !isSoldOut)
      throw new StackError(`pgbench ended with ${code} on ${options.script}`, `it said: ${stderr}`);
    return readdirSync(dir)
      .filter((file) => file.startsWith(LOG))
      .flatMap((file) => readLog(readFileSync(join(dir, file), 'utf8')));
  } finally {
    rmSync(dir, { recursive: true, force: true });
    forget();
  }
}

function argumentsFor({ clients, maxSec, size }: PgbenchOptions, dir: string): string[] {
  const file = join(dir, SCRIPT);
  return [
    ...['-n', '-M', 'prepared', '-f', file, '-D', `size=${size}`, '-T', String(maxSec)],
    ...['-c', String(clients), '-j', String(Math.min(MAX_THREADS, clients))],
    ...['-l', `--log-prefix=${join(dir, LOG)}`],
  ];
}

/** By the environment, so that no password stands in the list of processes. */
function connectionEnv(url: string): NodeJS.ProcessEnv {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  };
}

/** A line is: client, number, microseconds it took, script, seconds and microseconds of its end. */
export function readLog(text: string): Finished[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [client, , took, , seconds, micros] = line.split(' ').map(Number);
      const endUs = (seconds ?? Number.NaN) * US_PER_SEC + (micros ?? Number.NaN);
      if (client === undefined || took === undefined || Number.isNaN(endUs) || Number.isNaN(took))
        throw new Error(`not a line of a pgbench log: ${line}`);
      return { client, endUs, tookUs: took };
    });
}

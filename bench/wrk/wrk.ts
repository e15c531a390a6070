// wrk with one of the scripts beside this file. The two cores are for the server and the database.

import { fileURLToPath } from 'node:url';
import { StackError } from '../../src/failure.ts';
import type { Spent } from '../cpu.ts';
import { run } from '../process.ts';
import type { Sample } from '../stats.ts';

export type WrkOptions = {
  wrk: string;
  script: 'claim.lua' | 'signed.lua';
  args: readonly string[];
  url: string;
  connections: number;
  seconds: number;
};

/** `refused` counts answers of 400 and above, `broken` what got no answer. */
export type WrkResult = {
  requests: number;
  micros: number;
  p50_us: number;
  p99_us: number;
  refused: number;
  broken: number;
};

const GRACE_SEC = 30;
/** One thread sends more than the server can answer, and leaves it the other core. */
const THREADS = 1;
const US_PER_SEC = 1e6;
const US_PER_MS = 1e3;

export async function runWrk({
  wrk,
  script,
  args,
  url,
  connections,
  seconds,
}: WrkOptions): Promise<WrkResult> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const { code, stdout, stderr } = await run(
    wrk,
    [
      ...['-t', String(THREADS), '-c', String(connections), '-d', `${seconds}s`],
      ...['--timeout', `${GRACE_SEC}s`, '--latency', '-s', file, url, '--', ...args],
    ],
    { maxSec: seconds + GRACE_SEC },
  );
  const result = /^RESULT (.*)$/m.exec(stdout)?.[1];
  if (code !== 0 || result === undefined)
    throw new StackError(`wrk ended with ${code} and no result`, `it said: ${stdout}${stderr}`);
  return JSON.parse(result);
}

/** Without WAL and CPU, which wrk does not know. */
export function sampleOfWrk({ requests, micros, p50_us, p99_us, refused, broken }: WrkResult) {
  const ops = requests - refused;
  if (ops <= 0) throw new Error(`none of ${requests} requests was answered with a success`);
  return {
    ops,
    seconds: micros / US_PER_SEC,
    rate: (ops * US_PER_SEC) / micros,
    p50_ms: p50_us / US_PER_MS,
    p99_ms: p99_us / US_PER_MS,
    refused,
    broken,
  } satisfies Omit<Sample, 'wal_bytes_per_op' | keyof Spent>;
}

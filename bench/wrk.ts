// wrk against the claim door: each request another buyer.

import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { StackError } from '../src/failure.ts';
import { run } from './process.ts';

export type WrkOptions = { wrk: string; url: string; path: string; connections: number; seconds: number };

/** `refused` counts answers of 400 and above, `broken` what got no answer. */
export type WrkResult = {
  requests: number;
  micros: number;
  p50_us: number;
  p99_us: number;
  refused: number;
  broken: number;
};

const SCRIPT = fileURLToPath(new URL('./claims/claim.lua', import.meta.url));
const GRACE_SEC = 30;
/** One thread sends more than the server can answer, and leaves it the other core. */
const THREADS = 1;

export async function runWrk(options: WrkOptions): Promise<WrkResult> {
  const { wrk, url, path, connections, seconds } = options;
  const prefix = randomBytes(4).toString('hex');
  const { code, stdout, stderr } = await run(
    wrk,
    [
      ...[
        '-t',
        String(THREADS),
        '-c',
        String(connections),
        '-d',
        `${seconds}s`,
        '--timeout',
        `${GRACE_SEC}s`,
      ],
      ...['--latency', '-s', SCRIPT, url, '--', path, prefix],
    ],
    { maxSec: seconds + GRACE_SEC },
  );
  const result = /^RESULT (.*)$/m.exec(stdout)?.[1];
  if (code !== 0 || result === undefined)
    throw new StackError(`wrk ended with ${code} and no result`, `it said: ${stdout}${stderr}`);
  return JSON.parse(result);
}

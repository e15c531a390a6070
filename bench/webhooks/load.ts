// Deliveries signed ahead of time and sent by wrk: the two cores are for the server and the database.

import { createHmac, randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sampleOf } from '../../src/webhook/samples.ts';
import { runWrk, type WrkOptions, type WrkResult } from '../wrk/wrk.ts';
import { SECRET } from './world.ts';

/** More than any of the servers can answer; what is left over is not sent. */
const DELIVERIES_PER_SEC = 30_000;
const MS_PER_SEC = 1_000;
const WRITE_AT_ONCE = 2_000;

/** Calls `use` with a way to send them, once; signing is over by then. */
export async function withSigned<T>(
  seconds: number,
  use: (send: (load: Omit<WrkOptions, 'script' | 'args' | 'seconds'>) => Promise<WrkResult>) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  try {
    const file = join(dir, 'requests');
    const size = writeRequests(file, seconds * DELIVERIES_PER_SEC);
    return await use((load) =>
      runWrk({ ...load, seconds, script: 'signed.lua', args: [file, String(size)] }),
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Returns the length of a request: they all have the same. */
function writeRequests(path: string, deliveries: number): number {
  const prefix = randomBytes(4).toString('hex');
  const atSec = Math.floor(Date.now() / MS_PER_SEC);
  const file = openSync(path, 'w');
  let size = 0;
  try {
    for (let from = 0; from < deliveries; from += WRITE_AT_ONCE) {
      const count = Math.min(WRITE_AT_ONCE, deliveries - from);
      const requests = Array.from({ length: count }, (_, at) => requestOf(prefix, from + at, atSec));
      size = requests[0]?.length ?? 0;
      if (requests.some(({ length }) => length !== size)) throw new Error('requests of different lengths');
      writeSync(file, requests.join(''));
    }
  } finally {
    closeSync(file);
  }
  return size;
}

function requestOf(prefix: string, number: number, atSec: number): string {
  const id = `${prefix}_${String(number).padStart(9, '0')}`;
  const order = {
    type: 'payment_intent.succeeded',
    eventId: `evt_${id}`,
    user: `user_${id}`,
    amount: 2500,
    atSec,
  };
  const body = sampleOf('stripe', order)?.body ?? '';
  const signature = createHmac('sha256', SECRET).update(`${atSec}.${body}`).digest('hex');
  return [
    'POST /webhooks/bench HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `Stripe-Signature: t=${atSec},v1=${signature}`,
    '',
    body,
  ].join('\r\n');
}

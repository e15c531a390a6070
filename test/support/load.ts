// Load that can be replayed: random numbers from a seed, buyers that retry until they are answered, a wire that cuts.

import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { openSession, type Session } from './sessions.ts';

export type Random = { (): number; below(limit: number): number };

/** Set it to run a failed storm again. */
const SEED_VARIABLE = 'SLUICE_TEST_SEED';
const RETRY_PAUSE_MS = 10;

export function chooseSeed(): number {
  return Number(process.env[SEED_VARIABLE] ?? Date.now() % 1_000_000_000);
}

/** mulberry32: small, fast, and the same numbers everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return Object.assign(next, { below: (limit: number) => Math.floor(next() * limit) });
}

/** What a server that crashes, recovers or is not there yet answers with. Everything else is a failure. */
export function isOutage(error: unknown): boolean {
  const { code, message } = error as Partial<pg.DatabaseError>;
  if (code === undefined) return /terminated|not queryable|closed|ended/i.test(message ?? '');
  return /^(57P0[1-3]|08...|ECONNREFUSED|ECONNRESET|EPIPE)$/.test(code);
}

/** A buyer's connection that is made anew whenever it breaks. */
export function reconnecting(url: () => string) {
  let session: Session | undefined;
  return {
    /** Repeats `ask` over new connections until the database has answered it. */
    async untilAnswered<T>(ask: (session: Session) => Promise<T>): Promise<T> {
      for (;;) {
        try {
          session ??= await openSession(url());
          return await ask(session);
        } catch (error) {
          if (!isOutage(error)) throw error;
          session = undefined;
          await delay(RETRY_PAUSE_MS);
        }
      }
    },
    async close() {
      await session?.close();
    },
  };
}

/** A way to a server that can be told to swallow the next answer and hang up: the server has done it, nobody knows. */
export async function startCuttingWire(port: number) {
  let cuts = false;
  const open = new Set<Socket>();
  const server = createServer((inside) => {
    const outside = connect(port, '127.0.0.1');
    for (const socket of [inside, outside]) {
      open.add(socket);
      // A cut wire is what this is for; each end learns of it by its close.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        inside.destroy();
        outside.destroy();
      });
    }
    inside.on('data', (bytes) => outside.write(bytes));
    outside.on('data', (bytes) => {
      if (cuts) inside.destroy();
      else inside.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the wire has no port');
  return {
    port: address.port,
    cutNextAnswer() {
      cuts = true;
    },
    async stop() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

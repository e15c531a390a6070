// What people pick instead: Redis 7 sells by a Lua script and queues in a stream, and a worker carries the stream to the same
// ledger. Equal promises: an answer is on disk (appendfsync always), a request id is answered with its slot, and the ledger has each
// claim once. The pools of this suite have no limit for a user, so Redis counts none either.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from 'redis';
import { StackError } from '../../src/failure.ts';
import { freePort } from '../../src/stack/ports.ts';
import { ensureDebianPackages } from '../../test/pgtap/debian_packages.ts';
import { cleanUpOnExit } from '../../test/support/databases.ts';
import { postmasterOf } from '../cpu.ts';
import { Forked } from '../forked.ts';
import { openWorld } from '../world.ts';
import { KEYS } from './redis_keys.ts';
import type { OpenWay, Way } from './way.ts';

const SERVER = fileURLToPath(new URL('./redis_server.ts', import.meta.url));
const WORKER = fileURLToPath(new URL('./redis_worker.ts', import.meta.url));
/** Slots in one command. */
const PUSHED_AT_ONCE = 10_000;
const READY = 'Ready to accept connections';

const TUNED = [
  'the HTTP server of sluice with the same checks; the client sends all claims of one turn of its event loop together',
  'a claim is one Lua script, loaded once: request id, slot, message; Redis writes its log once for the claims of a turn',
  'appendonly yes and appendfsync always, so that an answer is on disk as with sluice; no snapshots (save "")',
  'its log is rewritten in the background by its defaults, as autovacuum is on in Postgres',
  'two worker loops with batches of 1,000: one finalize_batch for a batch, then acknowledge and delete in one round trip',
  'no leases are taken over, no retries counted and no dead letters kept: less work than sluice does',
];

export const redis: Way = { name: 'redis', tuned: TUNED, open };

async function open(settings: Record<string, string> = {}): Promise<OpenWay> {
  const store = await startRedis();
  const world = await openWorld(settings, async () => undefined);
  const client = createClient({ url: store.url });
  await client.connect();
  const server = new Forked(SERVER);
  const worker = new Forked(WORKER);
  const [port] = await Promise.all([
    server.ask<number>({ url: store.url }),
    worker.ask({ url: store.url, db2Url: world.db2Url }),
  ]);
  return {
    port,
    parts: { server: server.pid, worker: worker.pid, redis: store.pid, db2: await postmasterOf(world.db2) },
    world,
    async addSlots(count) {
      for (let made = 0; made < count; made += PUSHED_AT_ONCE) {
        const size = Math.min(PUSHED_AT_ONCE, count - made);
        await client.rPush(
          KEYS.slots,
          Array.from({ length: size }, () => randomUUID()),
        );
      }
    },
    isSoldOut: async () => (await client.lLen(KEYS.slots)) === 0,
    isDrained: async () => (await client.xLen(KEYS.stream)) === 0,
    bloat: async () => ({
      bytes: Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]),
      deadRows: 0,
    }),
    async stop() {
      server.tell('end');
      worker.tell('end');
      await Promise.all([server.end(), worker.end()]);
      client.destroy();
      await store.stop();
      await world.stop();
    },
  };
}

async function startRedis(): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const reason = await ensureDebianPackages(['redis-server']);
  if (reason !== undefined)
    throw new StackError(`redis-server is missing: ${reason}`, 'put redis-server on the PATH');
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-redis-'));
  const port = await freePort();
  const settings = { port, bind: '127.0.0.1', save: '', appendonly: 'yes', appendfsync: 'always', dir };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const forget = cleanUpOnExit(() => {
    child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  await isReady(child);
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid as number,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      forget();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function isReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes(READY)) resolve();
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${output}`)));
  });
}

// A real Redis that can be killed, started again on its port, stopped for a while and emptied.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from 'redis';
import { freePort } from '../../src/stack/ports.ts';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';
import { cleanUpOnExit } from '../support/databases.ts';

export interface TestRedis {
  url: string;
  /** kill -9: nothing is written to disk, so what it knew is gone. */
  kill(): Promise<void>;
  start(): Promise<void>;
  flush(): Promise<void>;
  /** Redis keeps its connections and answers nothing until `goOn`. */
  pause(): void;
  goOn(): void;
  stop(): Promise<void>;
}

const READY_DEADLINE_MS = 10_000;
const POLL_MS = 10;

/** Undefined, and the test is skipped with the reason, where Redis is missing and may not be installed. */
export async function startRedis(t: TestContext): Promise<TestRedis | undefined> {
  const reason = await ensureDebianPackages(['redis-server']);
  if (reason !== undefined) {
    t.skip(`no Redis here to kill: ${reason}`);
    return undefined;
  }
  const dir = mkdtempSync(join(tmpdir(), 'sluice-redis-'));
  let child: ChildProcess | undefined;
  /** Chosen at the first start and then kept. Redis cannot choose one: with port 0 it does not listen. */
  let port = 0;

  async function start(): Promise<void> {
    const deadline = Date.now() + READY_DEADLINE_MS;
    for (;;) {
      const wanted = port || (await freePort());
      child = launch(wanted, dir);
      if (await saysReady(child)) {
        port = wanted;
        return;
      }
      child = undefined;
      if (Date.now() > deadline) throw new Error('redis-server did not start');
      await delay(POLL_MS);
    }
  }
  async function kill(): Promise<void> {
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    child = undefined;
  }
  const forget = cleanUpOnExit(() => {
    child?.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  await start();
  const url = `redis://127.0.0.1:${port}`;
  return {
    url,
    kill,
    start,
    async flush() {
      const client = createClient({ url });
      await client.connect();
      await client.flushAll();
      await client.close();
    },
    pause: () => child?.kill('SIGSTOP'),
    goOn: () => child?.kill('SIGCONT'),
    async stop() {
      forget();
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function launch(port: number, dir: string): ChildProcess {
  const settings = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
}

/** False when Redis ended because another process has its port. An answer on the port would not show that it is Redis. */
function saysReady(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('Ready to accept connections')) resolve(true);
    });
    child.once('exit', () => resolve(false));
  });
}

// Members that hang: SIGSTOP stops them, and they hear neither an order nor SIGTERM.

import assert from 'node:assert/strict';
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { Log } from '#core/ports.ts';
import { Supervisor } from '../../src/processes/supervisor.ts';
import { LATE } from './support.ts';

/** Far longer than a member of this test takes to end. */
const STOP_WITHIN_MS = 2_000;
const PATIENCE_MS = 10 * STOP_WITHIN_MS;

type Line = readonly [message: string, fields: Record<string, unknown>];

describe('a member that hangs', () => {
  /** With as many members, none of which outlives the test. */
  const supervise = (t: TestContext, count: number) => {
    const exec = join(import.meta.dirname, 'plain_member.ts');
    cluster.setupPrimary({ exec, execArgv: ['--import', 'tsx'] });
    const orders = Array.from({ length: count }, (_, index) => ({
      ...{ name: `member ${index + 1}`, args: [], isServer: false },
      part: { index, of: count },
    }));
    const { log, warnings } = keepWarnings();
    const supervisor = new Supervisor({ orders, limits: {}, log, stopWithinMs: STOP_WITHIN_MS });
    t.after(async () => {
      const left = workersNow();
      supervisor.kill();
      await Promise.all(left.map((worker) => worker.isDead() || once(worker, 'exit')));
    });
    return { supervisor, warnings };
  };

  it('is killed when stop() has waited long enough, and the command ends', async (t) => {
    const { supervisor, warnings } = supervise(t, 2);
    await supervisor.start();
    const [hung, other] = workersNow();
    hung?.process.kill('SIGSTOP');
    await inTime(supervisor.stop());
    assert.equal(hung?.process.signalCode, 'SIGKILL');
    assert.equal(other?.process.exitCode, 0, 'the other one ended by itself');
    assert.deepEqual(warnings, [late('member 1', hung)]);
  });

  it('is killed in a restart, which goes on to the next', async (t) => {
    const { supervisor, warnings } = supervise(t, 3);
    await supervisor.start();
    const old = workersNow();
    const [first, hung, last] = old;
    hung?.process.kill('SIGSTOP');
    await inTime(supervisor.restart());
    assert.equal(hung?.process.signalCode, 'SIGKILL');
    assert.deepEqual([first?.process.exitCode, last?.process.exitCode], [0, 0]);
    const now = workersNow();
    assert.deepEqual([now.length, now.filter((worker) => old.includes(worker))], [3, []]);
    // The time of the first was over before that of the hung one: it had ended, and is not told of.
    assert.deepEqual(warnings, [late('member 2', hung)]);
    await inTime(supervisor.stop());
  });

  it('while it loads, and has not heard that it is to end, is killed too', async (t) => {
    const { supervisor, warnings } = supervise(t, 1);
    const started = supervisor.start();
    const [hung] = workersNow();
    hung?.process.kill('SIGSTOP');
    await supervisor.stop();
    assert.equal(await inTime(started), undefined);
    assert.deepEqual(warnings, [late('member 1', hung)]);
  });
});

const workersNow = (): Worker[] =>
  Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);

const late = (member: string, worker: Worker | undefined): Line => [
  LATE,
  { member, pid: worker?.process.pid, after_ms: STOP_WITHIN_MS },
];

function keepWarnings(): { log: Log; warnings: Line[] } {
  const warnings: Line[] = [];
  const log: Log = {
    debugEnabled: false,
    ...{ debug: () => undefined, info: () => undefined, error: () => undefined },
    warn: (message, fields = {}) => void warnings.push([message, fields]),
  };
  return { log, warnings };
}

/** Without an end of its own, waiting for a hung member never ends. */
async function inTime<Value>(waited: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  return Promise.race([waited, over]).finally(() => clearTimeout(timer));
}

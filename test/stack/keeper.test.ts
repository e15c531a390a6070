import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pauseAfter } from '../../src/restart_pause.ts';
import { type Child, startChild } from '../../src/stack/child.ts';
import { Keeper } from '../../src/stack/keeper.ts';

describe('a server that is kept running', () => {
  let dir: string;
  let logFile: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-keeper-'));
    logFile = join(dir, 'log');
  });
  after(() => rmSync(dir, { recursive: true }));

  /** After the first launch so many fail. */
  const keep = (refusals = 0) => {
    const said: string[] = [];
    const children: Child[] = [];
    let refused = 0;
    const keeper = new Keeper<Child>({
      title: 'It',
      logFile,
      say: (line) => said.push(line.replace(/ Its log .*/, '')),
      async launch() {
        if (children.length > 0 && refused++ < refusals) throw new Error('not now');
        const child = startChild({ binary: '/bin/sleep', args: ['600'], env: {}, logFile });
        children.push(child);
        return child;
      },
    });
    const until = async (line: string) => {
      while (!said.includes(line)) await sleep(10);
    };
    return { keeper, said, children, until };
  };

  test('is started again when it dies, with a pause that grows while it does not come up', async () => {
    const { keeper, said, children, until } = keep(1);
    const first = await keeper.start();
    process.kill(first.pid, 'SIGKILL');
    await until('It runs again');
    assert.deepEqual(said, [
      'It died; it starts again in 0.5 s.',
      'It did not start; it starts again in 1 s.',
      'It runs again',
    ]);
    assert.ok(existsSync(`${logFile}.old`), 'the log of the one that died is kept');
    assert.equal(keeper.isWanted, true);
    await keeper.stop();
    assert.deepEqual(
      children.map((child) => child.hasEnded()),
      [true, true],
    );
  });

  test('stays stopped when that was wanted, also in the pause before a restart, until it is started', async () => {
    const { keeper, said, children, until } = keep();
    const first = await keeper.start();
    process.kill(first.pid, 'SIGKILL');
    await until('It died; it starts again in 0.5 s.');
    await keeper.stop();
    assert.equal(keeper.isWanted, false);
    await sleep(2 * pauseAfter(1));
    assert.equal(children.length, 1);
    await keeper.start();
    await keeper.stop();
    await sleep(2 * pauseAfter(1));
    assert.deepEqual([children.length, said.length], [2, 1]);
  });

  test('pauses at most half a minute', () => {
    assert.deepEqual([1, 2, 3, 4].map(pauseAfter), [500, 1_000, 2_000, 4_000]);
    assert.deepEqual([7, 100, 2_000].map(pauseAfter), [30_000, 30_000, 30_000]);
  });
});

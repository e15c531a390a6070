import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { startHeartbeat } from '#core/heartbeat.ts';
import { memoryLog } from './support.ts';

function heart(t: TestContext, extend: () => Promise<unknown>) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const log = memoryLog();
  return { log, stop: startHeartbeat(extend, 1_000, log).stop, pass: (ms: number) => t.mock.timers.tick(ms) };
}

describe('a heartbeat', () => {
  it('beats once in each interval until it is stopped', async (t) => {
    let beats = 0;
    const { stop, pass } = heart(t, async () => beats++);
    pass(999);
    assert.equal(beats, 0);
    pass(1);
    pass(1_000);
    assert.equal(beats, 2);
    await stop();
    pass(5_000);
    assert.equal(beats, 2);
  });

  it('logs a beat that fails and goes on', async (t) => {
    let beats = 0;
    const { stop, pass, log } = heart(t, async () => {
      if (beats++ === 0) throw new Error('away');
    });
    pass(2_000);
    await stop();
    assert.equal(beats, 2);
    assert.deepEqual(
      log.lines.map(({ level, message }) => `${level} ${message}`),
      ['warn heartbeat failed'],
    );
  });

  it('is stopped only when every beat on the wire has come back', async (t) => {
    const pending: (() => void)[] = [];
    const { stop, pass } = heart(t, () => new Promise<void>((resolve) => pending.push(resolve)));
    pass(2_000);
    let isStopped = false;
    const stopped = stop().then(() => {
      isStopped = true;
    });
    pending[1]?.();
    await new Promise(setImmediate);
    assert.equal(isStopped, false);
    pending[0]?.();
    await stopped;
    assert.equal(isStopped, true);
  });
});

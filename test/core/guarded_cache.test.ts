// A shared cache that comes and goes: what is told of it, and what both caches are told.

import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { GuardedReplayCache } from '#core/calls/guarded_cache.ts';
import { MemoryReplayCache, REPLAY_TTL_MS, type ReplayCache } from '#core/calls/replay_cache.ts';
import { memoryLog } from './support.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

function open() {
  const world = { nowMs: 1_000, asked: [] as string[], own: [] as string[] };
  const answers = { next: (): unknown => 'claimed' };
  const noting = (list: string[], answer: () => unknown): ReplayCache => {
    const note = (what: string) => (key: string) => {
      list.push(`${what} ${key}`);
      return answer() as never;
    };
    return { claim: note('claim'), done: note('done'), release: note('release') };
  };
  const log = memoryLog();
  const cache = new GuardedReplayCache({
    shared: noting(world.asked, () => answers.next()),
    own: noting(world.own, () => 'in_flight'),
    now: () => world.nowMs,
    log,
  });
  return { world, answers, cache, log };
}

describe('a guarded cache', () => {
  afterEach(() => mock.timers.reset());

  it('is shared from the start, and asks ours only where the other gave no answer', async () => {
    const { world, cache } = open();
    assert.equal(cache.state, 'shared');
    assert.equal(await cache.claim('k'), 'claimed');
    assert.deepEqual([world.asked, world.own], [['claim k'], []]);
  });

  it('tells both what is done and what was given up', async () => {
    const { world, cache } = open();
    await cache.done('k');
    await cache.release('l');
    assert.deepEqual(
      [world.asked, world.own],
      [
        ['done k', 'release l'],
        ['done k', 'release l'],
      ],
    );
  });

  it('says why the other is away, and when it is back, once each', async () => {
    const { world, answers, cache, log } = open();
    const cause = new Error('connection refused');
    answers.next = () => Promise.reject(cause);
    assert.equal(await cache.claim('k'), 'in_flight');
    assert.equal(cache.state, 'fallback');
    answers.next = () => 'claimed';
    world.nowMs += 500;
    assert.equal(await cache.claim('k'), 'claimed');
    await cache.claim('l');
    assert.deepEqual(log.lines, [
      { level: 'warn', message: 'the replay cache is away; the database decides alone', fields: { cause } },
      { level: 'info', message: 'the replay cache is back', fields: undefined },
    ]);
  });

  it('waits 50 ms for the other, and not a moment longer', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { answers, cache, log } = open();
    answers.next = () => new Promise(() => undefined);
    const claim = cache.claim('k');
    mock.timers.tick(49);
    await settle();
    assert.equal(cache.state, 'shared');
    mock.timers.tick(1);
    assert.equal(await claim, 'in_flight');
    assert.match(String(log.lines[0]?.fields?.cause), /^Error: no answer within 50 ms$/);
  });

  it('lets one caller after the other find out whether it is back, until it is', async () => {
    const { world, answers, cache } = open();
    answers.next = () => Promise.reject(new Error('down'));
    await cache.claim('k');
    for (let probe = 1; probe <= 3; probe++) {
      world.nowMs += 60_000;
      await Promise.all([cache.claim('a'), cache.claim('b')]);
      assert.equal(world.asked.length, 1 + probe);
    }
  });

  it('does not take an answer that was under way during a failure for a sign of life', async () => {
    const { answers, cache } = open();
    let late: (answer: string) => void = () => undefined;
    answers.next = () => new Promise((resolve) => (late = resolve));
    const underWay = cache.claim('k');
    answers.next = () => Promise.reject(new Error('down'));
    await cache.claim('l');
    late('claimed');
    assert.equal(await underWay, 'claimed');
    assert.equal(cache.state, 'fallback');
  });
});

describe('our own cache', () => {
  it('forgets at the very end of its time, and gives up nothing it does not have', () => {
    let nowMs = 0;
    const cache = new MemoryReplayCache(() => nowMs);
    cache.release('never seen');
    cache.done('k');
    nowMs = REPLAY_TTL_MS - 1;
    assert.equal(cache.claim('k'), 'done');
    nowMs = REPLAY_TTL_MS;
    assert.equal(cache.claim('k'), 'claimed');
  });
});

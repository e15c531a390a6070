import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GuardedReplayCache } from '#core/calls/guarded_cache.ts';
import { type Claim, MemoryReplayCache, REPLAY_TTL_MS, type ReplayCache } from '#core/calls/replay_cache.ts';
import { TOLERANCE_SEC } from '#core/calls/signature.ts';
import { memoryLog } from '../core/support.ts';

describe('the replay cache of one process', () => {
  const open = (maxEntries?: number) => {
    const clock = { ms: 1_000 };
    return { clock, cache: new MemoryReplayCache(() => clock.ms, maxEntries) };
  };

  it('says done only after done', () => {
    const { cache } = open();
    assert.deepEqual([cache.claim('k'), cache.claim('k')], ['claimed', 'in_flight']);
    cache.done('k');
    assert.equal(cache.claim('k'), 'done');
  });

  it('treats a key as new after its claim was given up', () => {
    const { cache } = open();
    cache.claim('k');
    cache.release('k');
    assert.equal(cache.claim('k'), 'claimed');
  });

  it('keeps what is stored when a later claim is given up', () => {
    const { cache } = open();
    cache.claim('k');
    cache.done('k');
    cache.release('k');
    assert.equal(cache.claim('k'), 'done');
  });

  it('remembers for at least as long as a signature can come again, and not for ever', () => {
    const { cache, clock } = open();
    cache.done('k');
    clock.ms += 2 * TOLERANCE_SEC * 1_000 - 1;
    assert.equal(cache.claim('k'), 'done');
    clock.ms += REPLAY_TTL_MS;
    assert.equal(cache.claim('k'), 'claimed');
  });

  it('holds no more than it may, and forgets the oldest', () => {
    const { cache } = open(3);
    for (const key of ['a', 'b', 'c', 'd']) cache.done(key);
    assert.equal(cache.size, 3);
    assert.deepEqual(
      ['d', 'c', 'b', 'a'].map((key) => cache.claim(key)),
      ['done', 'done', 'done', 'claimed'],
    );
  });
});

describe('a shared replay cache that may be away', () => {
  /** A shared cache whose trouble a test switches on and off. */
  const open = () => {
    const clock = { ms: 1_000 };
    const behind = new MemoryReplayCache(() => clock.ms);
    const shared = { trouble: 'none' as 'none' | 'down' | 'silent', asked: 0 };
    const meet = <T>(answer: () => T): T | Promise<T> => {
      shared.asked++;
      if (shared.trouble === 'down') return Promise.reject(new Error('connection refused'));
      return shared.trouble === 'silent' ? new Promise<T>(() => undefined) : answer();
    };
    const port: ReplayCache = {
      claim: (key) => meet((): Claim => behind.claim(key)),
      done: (key) => meet(() => behind.done(key)),
      release: (key) => meet(() => behind.release(key)),
    };
    const log = memoryLog();
    const own = new MemoryReplayCache(() => clock.ms);
    return {
      clock,
      shared,
      log,
      cache: new GuardedReplayCache({ shared: port, own, now: () => clock.ms, log }),
    };
  };

  for (const trouble of ['down', 'silent'] as const) {
    it(`${trouble}: this process goes by what it knows itself`, async () => {
      const { cache, shared } = open();
      await cache.done('stored before');
      shared.trouble = trouble;
      assert.equal(await cache.claim('new'), 'claimed');
      assert.equal(await cache.claim('new'), 'in_flight');
      assert.equal(await cache.claim('stored before'), 'done');
      assert.equal(cache.state, 'fallback');
    });
  }

  it('is left alone after a failure, asked again later, and each change is told once', async () => {
    const { cache, shared, log, clock } = open();
    shared.trouble = 'down';
    for (let time = 0; time < 10; time++) await cache.claim(`k${time}`);
    assert.equal(shared.asked, 1);
    clock.ms += 60_000;
    shared.trouble = 'none';
    await cache.claim('later');
    await cache.claim('later still');
    assert.equal(shared.asked, 3);
    assert.equal(cache.state, 'shared');
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info'],
    );
  });

  it('is tried by one caller at a time while it is suspect', async () => {
    const { cache, shared, clock } = open();
    shared.trouble = 'down';
    await cache.claim('k');
    clock.ms += 60_000;
    shared.trouble = 'silent';
    await Promise.all(Array.from({ length: 20 }, (_, at) => cache.claim(`k${at}`)));
    assert.equal(shared.asked, 2);
  });

  it('that was flushed knows nothing, and says nothing wrong', async () => {
    const { cache, clock } = open();
    await cache.done('k');
    clock.ms += 2 * REPLAY_TTL_MS;
    assert.equal(await cache.claim('k'), 'claimed');
  });
});

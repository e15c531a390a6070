import assert from 'node:assert/strict';
import { afterEach, describe, it, mock } from 'node:test';
import { AnswerCache } from '#core/answer_cache.ts';
import { MissingNames } from '#core/missing_names.ts';

const coded = (code: string) => Object.assign(new Error(`failed with ${code}`), { code });

/** Each question waits until the test answers it, unless `atOnce` does. */
function open(atOnce?: (key: string) => string | undefined, staleMs?: number) {
  const world = { nowMs: 0, asked: [] as string[] };
  const waiting: { resolve(answer: string | undefined): void; reject(error: Error): void }[] = [];
  const cache = new AnswerCache<string | undefined>(
    (key) => {
      world.asked.push(key);
      if (atOnce !== undefined) return Promise.resolve(atOnce(key));
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    () => world.nowMs,
    staleMs,
  );
  return { world, waiting, cache };
}

describe('an answer', () => {
  it('is asked for once a second for each key, also where the answer is undefined', async () => {
    const { world, cache } = open((key) => (key === 'none' ? undefined : `answer to ${key}`));
    const got = await Promise.all(['a', 'a', 'none', 'none'].map((key) => cache.get(key)));
    assert.deepEqual(got, ['answer to a', 'answer to a', undefined, undefined]);
    world.nowMs = 999;
    await cache.get('a');
    await cache.get('none');
    assert.deepEqual(world.asked, ['a', 'none']);
    world.nowMs = 1_000;
    await cache.get('a');
    assert.deepEqual(world.asked, ['a', 'none', 'a']);
  });

  it('is waited for together, however long it takes, and is good for a second from when it came', async () => {
    const { world, waiting, cache } = open();
    const first = cache.get('a');
    world.nowMs = 60_000;
    const second = cache.get('a');
    waiting[0]?.resolve('late');
    assert.deepEqual([await first, await second], ['late', 'late']);
    world.nowMs = 60_999;
    assert.equal(await cache.get('a'), 'late');
    assert.deepEqual(world.asked, ['a']);
  });

  it('that failed rejects every waiting call, and is then asked for again', async () => {
    const { world, waiting, cache } = open();
    const both = [cache.get('a'), cache.get('a')];
    waiting[0]?.reject(coded('08006'));
    for (const one of both) await assert.rejects(one, /08006/);
    const again = cache.get('a');
    waiting[1]?.resolve('here');
    assert.equal(await again, 'here');
    assert.deepEqual(world.asked, ['a', 'a']);
  });

  it('is the oldest to be forgotten where a thousand others were asked for', async () => {
    const { world, cache } = open((key) => key);
    for (let key = 0; key < 1_000; key++) await cache.get(`key ${key}`);
    world.nowMs = 1_000;
    // Asked for again: no longer the oldest.
    await cache.get('key 0');
    await cache.get('one more');
    world.asked.length = 0;
    world.nowMs = 999;
    await cache.get('key 0');
    await cache.get('key 2');
    assert.deepEqual(world.asked, []);
    await cache.get('key 1');
    assert.deepEqual(world.asked, ['key 1']);
  });

  it('is not forgotten for a thousand keys that there is nothing for, nor for questions under way', async () => {
    const { world, cache } = open((key) => (key === 'here' ? key : undefined));
    await cache.get('here');
    await Promise.all(Array.from({ length: 2_000 }, (_, key) => cache.get(`made up ${key}`)));
    world.asked.length = 0;
    world.nowMs = 999;
    assert.equal(await cache.get('here'), 'here');
    assert.equal(await cache.get('made up 0'), undefined);
    assert.deepEqual(world.asked, []);
  });

  it('that there is none is believed for a second, for ten thousand keys', async () => {
    const world = { nowMs: 0 };
    const names = new MissingNames(() => world.nowMs);
    for (let name = 0; name <= 10_000; name++) names.add(`name ${name}`);
    assert.deepEqual([names.has('name 0'), names.has('name 1'), names.has('another')], [false, true, false]);
    world.nowMs = 1_000;
    assert.equal(names.has('name 1'), false);
  });
});

describe('an answer that has grown old', () => {
  const PATIENCE_MS = 100;
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  afterEach(() => mock.timers.reset());

  async function openOld() {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { world, waiting, cache } = open(undefined, 5_000);
    const first = cache.get('a');
    waiting[0]?.resolve('old');
    await first;
    world.nowMs = 1_000;
    return { world, waiting, cache };
  }

  it('is given where the next one takes long, to all who ask meanwhile, and asked for once', async () => {
    const { world, waiting, cache } = await openOld();
    const both = [cache.get('a'), cache.get('a')];
    mock.timers.tick(PATIENCE_MS);
    assert.deepEqual(await Promise.all(both), ['old', 'old']);
    assert.equal(await cache.get('a'), 'old');
    waiting[1]?.resolve('new');
    await settle();
    assert.equal(await cache.get('a'), 'new');
    assert.deepEqual(world.asked, ['a', 'a']);
  });

  it('is not given where the next one comes soon, nor where the question fails soon', async () => {
    const { waiting, cache } = await openOld();
    const changed = cache.get('a');
    mock.timers.tick(PATIENCE_MS - 1);
    waiting[1]?.reject(coded('08006'));
    await assert.rejects(changed, /08006/);
    const again = cache.get('a');
    waiting[2]?.resolve('new');
    assert.equal(await again, 'new');
  });

  it('is given again where the question fails late', async () => {
    const { waiting, cache } = await openOld();
    const late = cache.get('a');
    mock.timers.tick(PATIENCE_MS);
    assert.equal(await late, 'old');
    waiting[1]?.reject(coded('08006'));
    await settle();
    const again = cache.get('a');
    mock.timers.tick(PATIENCE_MS);
    assert.equal(await again, 'old');
  });

  it('is too old in the end', async () => {
    const { world, waiting, cache } = await openOld();
    world.nowMs = 6_000;
    const waited = cache.get('a');
    mock.timers.tick(PATIENCE_MS);
    waiting[1]?.resolve('new');
    assert.equal(await waited, 'new');
  });
});

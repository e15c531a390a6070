import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { grown, neverAborted, ProcessWorld, SUCCESS, takenEvent } from './process_support.ts';

describe('the sets of an SQL handler', () => {
  const sizesOf = async (msPerEvent: number, sets: number, batchSize?: number, msPerSet = 0) => {
    const world = new ProcessWorld();
    const processor = world.processor(batchSize);
    world.process = (ids) => {
      world.nowMs += msPerSet + ids.length * msPerEvent;
      return new Map(ids.map((id) => [id, SUCCESS]));
    };
    world.events = Array.from({ length: 4_000 }, (_, index) => takenEvent(`${index}`));
    for (let set = 0; set < sets; set++) await processor.step(neverAborted);
    return world.sets.map(({ length }) => length);
  };

  it('double while they are fast, up to the batch', async () => {
    assert.deepEqual(await sizesOf(1, 8), [2, 4, 8, 16, 32, 64, 100, 100]);
    assert.deepEqual(await sizesOf(1, 4, 5), [2, 4, 5, 5]);
    assert.deepEqual(await sizesOf(1, 2, 1), [1, 1]);
  });

  it('take about a second where an event takes long, and one at least', async () => {
    assert.deepEqual(await sizesOf(100, 5), [2, 4, 8, 10, 10]);
    assert.deepEqual(await sizesOf(500, 3), [2, 2, 2]);
    assert.deepEqual(await sizesOf(5_000, 3), [2, 1, 1]);
  });

  it('grow although the commit of each takes long: it takes no longer for more events', async () => {
    for (const msPerSet of [600, 1_200, 3_000]) {
      const sizes = await sizesOf(5, 30, 100, msPerSet);
      assert.deepEqual([sizes.at(-1), msPerSet], [100, msPerSet], `${sizes}`);
    }
  });

  it('stay short where a larger one is tried in vain now and then', async () => {
    const sizes = (await sizesOf(500, 40)).slice(20);
    assert.ok(sizes.filter((size) => size === 2).length >= 16, `${sizes}`);
    assert.ok(Math.max(...sizes) <= 4, `${sizes}`);
  });

  it('shrink at once when it becomes slow, and say nothing by a suspect', async () => {
    const world = new ProcessWorld();
    const processor = await grown(world);
    world.process = (ids) => {
      world.nowMs += 8_000;
      return new Map(ids.map((id) => [id, SUCCESS]));
    };
    world.events = [{ ...takenEvent('s'), takeovers: 1 }];
    await processor.step(neverAborted);
    world.events = Array.from({ length: 20 }, (_, index) => takenEvent(`${index}`));
    for (let set = 0; set < 2; set++) await processor.step(neverAborted);
    assert.deepEqual(
      world.sets.map(({ length }) => length),
      [1, 8, 1],
    );
  });
});

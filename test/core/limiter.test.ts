import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mapSome } from '#core/limiter.ts';

describe('some of many at a time', () => {
  it('answer in the order of the items, and never more of them at once', async () => {
    let [running, most] = [0, 0];
    const doubled = await mapSome([5, 4, 3, 2, 1], 2, async (item) => {
      most = Math.max(most, ++running);
      for (let turn = 0; turn < item; turn++) await Promise.resolve();
      running--;
      return item * 2;
    });
    assert.deepEqual([doubled, most], [[10, 8, 6, 4, 2], 2]);
  });

  it('begin none after one has failed', async () => {
    const begun: number[] = [];
    const failed = mapSome([0, 1, 2, 3, 4, 5], 2, async (item) => {
      begun.push(item);
      await Promise.resolve();
      if (item === 0) throw new Error('the first');
    });
    await assert.rejects(failed, /the first/);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(begun, [0, 1]);
  });
});

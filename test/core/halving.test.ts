import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { byHalves } from '#core/halving.ts';

/** Sets that hold one of `bad` fail. Tells which sets were tried, done and failed, in order. */
async function halved(members: readonly number[], bad: readonly number[], mayBeOne = true) {
  const told: string[] = [];
  await byHalves(members, {
    async work(set) {
      if (set.some((member) => bad.includes(member))) {
        told.push(`tried ${set}`);
        throw new Error('spoiled');
      }
      told.push(`done ${set}`);
    },
    mayBeOneMembers: () => mayBeOne,
    fail: (set, error) => void told.push(`failed ${set}: ${(error as Error).message}`),
  });
  return told;
}

describe('a set that fails', () => {
  it('is done at once where nothing spoils it', async () => {
    assert.deepEqual(await halved([1, 2, 3], []), ['done 1,2,3']);
  });

  it('is halved until the member that spoils it stands alone', async () => {
    assert.deepEqual(await halved([1, 2, 3, 4, 5], [4]), [
      'tried 1,2,3,4,5',
      'done 1,2',
      'tried 3,4,5',
      'done 3',
      'tried 4,5',
      'tried 4',
      'failed 4: spoiled',
      'done 5',
    ]);
  });

  it('fails as a whole where no member can have caused it', async () => {
    assert.deepEqual(await halved([1, 2, 3], [2], false), ['tried 1,2,3', 'failed 1,2,3: spoiled']);
  });

  it('ends with the failure that its own end throws, and tries no other half', async () => {
    const tried: number[][] = [];
    const end = byHalves([1, 2], {
      async work(set) {
        tried.push([...set]);
        throw new Error('spoiled');
      },
      mayBeOneMembers: () => true,
      fail: () => {
        throw new Error('the end');
      },
    });
    await assert.rejects(end, /the end/);
    assert.deepEqual(tried, [[1, 2], [1]]);
  });
});

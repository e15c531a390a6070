import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { judge } from '../../src/demo/judge.ts';
import { type Box, claimOf, openBox } from './support.ts';

const STARTED_MS = 1_000_000;
const COUNTED_FOR_MS = 60_000;

/** What the demo finds wrong, and how long it waited, by a clock that moves only while it waits. */
async function judged(
  t: TestContext,
  claimed: number,
  box: Omit<Box, 'buyers' | 'available'> & { available: (ms: number) => number },
) {
  let now = STARTED_MS;
  const waitedMs = () => now - STARTED_MS;
  const clock = {
    now: () => now,
    wait: async (ms: number) => {
      now += ms;
    },
  };
  const trial = await openBox({ ...box, buyers: claimed, available: () => box.available(waitedMs()) });
  t.after(trial.close);
  trial.tally.claims.push(...Array.from({ length: claimed }, (_, at) => claimOf(at)));
  trial.tally.tickets = claimed;
  await judge(trial, clock);
  return { problems: trial.tally.problems, waitedMs: waitedMs() };
}

describe('the demo counts the seats that are left', () => {
  it('and waits for a count of thousands that is up to a minute old', async (t) => {
    const available = (ms: number) => (ms < COUNTED_FOR_MS ? 3_000 : 2_950);
    const { problems, waitedMs } = await judged(t, 50, { seats: 3_000, available });
    assert.deepEqual(problems, []);
    assert(waitedMs >= COUNTED_FOR_MS && waitedMs < COUNTED_FOR_MS + 1_000, `${waitedMs} ms`);
  });

  it('and does not wait where the count is the expected one', async (t) => {
    const { problems, waitedMs } = await judged(t, 50, { seats: 3_000, available: () => 2_950 });
    assert.deepEqual([problems, waitedMs], [[], 0]);
  });

  it('and waits no minute for a number that the server counts exactly', async (t) => {
    const others = [claimOf(90), claimOf(91)];
    const { problems, waitedMs } = await judged(t, 50, { seats: 100, available: () => 48, others });
    assert.deepEqual(problems, []);
    assert(waitedMs < 10_000, `${waitedMs} ms`);
  });

  it('and says where more are left than there can be', async (t) => {
    const more = await judged(t, 50, { seats: 3_000, available: () => 3_000 });
    assert.deepEqual(more.problems, [
      '3000 of 3000 seats are left while buyers hold 50: more are left than there can be',
    ]);
    const others = [claimOf(90), claimOf(91)];
    const withOthers = await judged(t, 50, { seats: 100, available: () => 49, others });
    assert.deepEqual(withOthers.problems, [
      '49 of 100 seats are left while buyers hold 52: more are left than there can be',
    ]);
  });

  it('and says how many are gone that no buyer holds', async (t) => {
    const { problems } = await judged(t, 50, { seats: 100, available: () => 40, others: [claimOf(90)] });
    assert.deepEqual(problems, ['10 seats are gone, and other buyers hold only 1 of them']);
  });
});

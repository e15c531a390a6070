// A server that ends takes back what it told of missing secrets, and does not wait for a ledger that is silent.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { CallFunction } from '#core/call_function.ts';
import { inTime } from '#core/deadline.ts';
import { startIssueWatch } from '../../src/issues/watch.ts';
import type { NewMark } from '../../src/samples/outages.ts';
import { memoryLog } from '../core/support.ts';

const ENDPOINT = { name: 'shop', provider: 'stripe', is_active: true, secret_names: ['SHOP_SECRET'] };

/** Ends in time, or the test fails. */
const inThreeSeconds = (work: Promise<void>) => inTime(3_000, work, () => new Error('it waits'));

function watch(onTold: (told: number) => Promise<void>) {
  const told: (number | null | undefined)[] = [];
  const db2 = (async (_: string, args: { p_marks: NewMark[] }) => {
    told.push(args.p_marks[0]?.ended_ms === null ? null : 1);
    await onTold(told.length);
    return [];
  }) as unknown as CallFunction;
  const loop = startIssueWatch({
    databases: [],
    db2,
    webhook: (async () => [ENDPOINT]) as unknown as CallFunction,
    secrets: { faultOf: async () => 'SHOP_SECRET is not set.' },
    log: memoryLog(),
  });
  return { told, loop };
}

describe('a server that ends', () => {
  it('says that it misses no secret any more', async () => {
    const { told, loop } = watch(async () => undefined);
    await turn();
    await loop.stop();
    assert.deepEqual(told, [null, 1]);
  });

  it('waits two seconds for a ledger that is silent, and no longer', async () => {
    const { told, loop } = watch(async (times) => (times > 1 ? new Promise(() => undefined) : undefined));
    await turn();
    await inThreeSeconds(loop.stop());
    assert.deepEqual(told, [null, 1]);
  });

  it('does not ask a ledger that has just failed', async () => {
    const { told, loop } = watch(() => Promise.reject(new Error('away')));
    await turn();
    await inThreeSeconds(loop.stop());
    assert.deepEqual(told, [null]);
  });
});

// What others say about a message must not hurt its neighbours.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finish } from '#core/bridge/ports.ts';
import { createLedger } from '#core/bridge/store.ts';
import { databaseError, payload, poolConfig, World } from './support.ts';

test('every reason of a delivery is short and can be stored, wherever it comes from', async () => {
  const world = new World();
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  const odd = `x${'😀'.repeat(600)}`;
  const failed = world.send(payload(1, { pool_id: 'own' }));
  const spent = world.send(payload(2, { last_error: odd }), { attempts: 9 });
  world.callCustom = () => {
    throw databaseError('P0001', odd);
  };
  await world.step();
  for (const id of [failed, spent]) assert.equal([...(world.endOf(id)?.reason ?? '')].length, 500);
  assert.ok(encodeURIComponent(`${world.endOf(failed)?.reason}${world.endOf(spent)?.reason}`));
});

/** Three messages of one pool: one for the ledger, one whose data it refuses, one that is to be tried again. */
async function refusedFinish(code: string, isRefused: (finishes: readonly Finish[]) => boolean) {
  const world = new World();
  const ids = [1, 2, 3].map((n) => world.send(payload(n)));
  world.finalizeBatch = (payloads) => {
    const users = payloads.map(({ user_id }) => user_id);
    if (users.includes('user 2')) throw databaseError('22000', 'no');
    if (users.includes('user 3')) throw databaseError('P0001', 'no');
    return payloads.map(() => 'committed');
  };
  const calls: string[][] = [];
  world.onFinish = (finishes) => {
    calls.push(finishes.map(({ verdict }) => verdict));
    if (isRefused(finishes)) throw databaseError(code, 'not that text');
  };
  const report = await world.step().catch((error: unknown) => error as Error);
  return { world, ids, calls, report };
}
const hasReason = (finishes: readonly Finish[]): boolean =>
  finishes.some(({ reason }) => reason === 'P0001: no');

for (const code of ['PGRST102', '22P05', '22021']) {
  test(`a finish refused for its text (${code}) is halved, and only the one refused loses its reason`, async () => {
    const { world, ids, calls, report } = await refusedFinish(code, hasReason);
    assert.deepEqual(calls, [
      ['committed', 'dead_letter', 'retry'],
      ['committed'],
      ['dead_letter', 'retry'],
      ['dead_letter'],
      ['retry'],
      ['retry'],
    ]);
    assert.deepEqual(!(report instanceof Error) && report.outcomes, {
      committed: 1,
      retry: 1,
      dead_letter: 1,
    });
    assert.deepEqual(
      ids.map((id) => world.endOf(id)?.reason),
      [null, '22000: no', 'the reason could not be stored'],
    );
    assert.ok(
      world.log.some(({ level, message }) => level === 'error' && message === 'a finish was refused'),
    );
  });
}

for (const code of ['55P03', '40P01', '57014']) {
  test(`a finish that meets ${code} is halved, and tried again under its lease`, async () => {
    let refusals = 0;
    const { world, ids, report } = await refusedFinish(
      code,
      (finishes) => finishes.some(({ verdict }) => verdict === 'retry') && ++refusals <= 4,
    );
    assert.deepEqual(!(report instanceof Error) && report.outcomes, {
      committed: 1,
      dead_letter: 1,
      retry: 1,
    });
    assert.equal(refusals, 5, 'the whole, its half, the message alone, and once more');
    assert.equal(world.endOf(ids[2] ?? 0)?.reason, 'P0001: no');
  });
}

test('a finish that fails for another cause is not tried in parts', async () => {
  const { calls, report } = await refusedFinish('08006', () => true);
  assert.equal(calls.length, 1);
  assert.ok(report instanceof Error);
});

test('what is finished without its reason and refused again leaves the others finished', async () => {
  const { world, ids, report } = await refusedFinish('22P05', (finishes) =>
    finishes.some(({ verdict }) => verdict === 'retry'),
  );
  assert.ok(report instanceof Error);
  assert.equal(world.endOf(ids[0] ?? 0)?.verdict, 'committed');
});

for (const [name, rows] of Object.entries({
  'an unknown outcome': [
    { ordinal: 1, outcome: 'failed' },
    { ordinal: 2, outcome: 'committed' },
  ],
  'two answers for one payload': [
    { ordinal: 1, outcome: 'committed' },
    { ordinal: 1, outcome: 'committed' },
  ],
  'an answer too few': [{ ordinal: 2, outcome: 'committed' }],
  'an answer too many': [1, 2, 3].map((ordinal) => ({ ordinal, outcome: 'committed' })),
  'no outcome at all': [{ ordinal: 1 }, { ordinal: 2, outcome: 'committed' }],
})) {
  test(`a ledger that gives ${name} has committed nothing, as far as we know`, async () => {
    const ledger = createLedger(async () => rows as never);
    const payloads = [1, 2].map((n) => payload(n)) as never;
    await assert.rejects(ledger.finalizeBatch(payloads), /2 payloads gave/);
  });
}

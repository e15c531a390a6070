import assert from 'node:assert/strict';
import test from 'node:test';
import { movePool } from '../../src/fleet/move.ts';
import { caller, contentsOf, furnishPool, query, startFleet } from './support.ts';

const EMPTY = {
  config: null,
  slots: null,
  claims: null,
  cache: null,
  letters: null,
  requests: null,
  total: null,
  parcels: 0,
};
const NOTHING_MORE = { actor: 'test', reason: null };

test('a pool moves with every slot, claim, rule, request and dead letter, and nothing of it stays behind', async (t) => {
  const { a, b } = await startFleet(t, { withLedger: false });
  await furnishPool(a.url, 'night');
  await furnishPool(a.url, 'other');
  const before = await contentsOf(a.url, 'night');
  const other = await contentsOf(a.url, 'other');
  assert.equal((before.claims as unknown[]).length, 12);
  assert.equal((before.letters as unknown[]).length, 2);

  const move = {
    poolId: 'night',
    source: caller(t, a.url),
    target: caller(t, b.url),
    to: 'b',
    ...NOTHING_MORE,
  };
  await movePool(move);
  assert.deepEqual(await contentsOf(b.url, 'night'), before);
  assert.deepEqual(await contentsOf(a.url, 'night'), EMPTY);
  assert.deepEqual(await contentsOf(a.url, 'other'), other, 'the pool beside it stays as it was');
  const sold = await query(b.url, `select public.claim_resource_and_queue('night', 'late')`).catch(
    (e) => e.code,
  );
  assert.equal(sold, 'SL003', 'it arrives closed');

  // Again, by a mover that does not know how far it came: the target has the pool and the source has nothing to give.
  await assert.rejects(movePool(move), { code: 'SL002' });
  assert.deepEqual(await contentsOf(b.url, 'night'), before);
});

test('a mover that is killed at any step is run again, and the pool is there once', async (t) => {
  const { a, b } = await startFleet(t, { withLedger: false });
  await furnishPool(a.url, 'night');
  const before = await contentsOf(a.url, 'night');
  let [from, to] = [
    { name: 'a', url: a.url, call: caller(t, a.url) },
    { name: 'b', url: b.url, call: caller(t, b.url) },
  ];
  for (const killedAt of ['carry', 'unpack', 'sent'] as const) {
    const move = { poolId: 'night', source: from.call, target: to.call, to: to.name, ...NOTHING_MORE };
    const onStep = (step: string) => {
      if (step === killedAt) throw new Error('killed');
    };
    await assert.rejects(movePool({ ...move, onStep }), /killed/);
    const refused = await query(from.url, `select public.claim_resource_and_queue('night', 'x')`).catch(
      (e) => e.code,
    );
    assert.equal(refused, 'SL002', `killed before ${killedAt}, the source has no such pool`);
    await assert.rejects(
      query(from.url, `insert into public.inventory_slots (pool_id) values ('night')`),
      { code: 'SL018' },
      'and does not begin one',
    );
    if (killedAt !== 'sent')
      assert.equal(
        (await contentsOf(to.url, 'night')).config,
        null,
        'the target does not have it before the end',
      );
    await movePool(move);
    assert.deepEqual(await contentsOf(to.url, 'night'), before, killedAt);
    assert.deepEqual(await contentsOf(from.url, 'night'), EMPTY, killedAt);
    await assert.rejects(
      query(from.url, `insert into public.inventory_slots (pool_id) values ('night')`),
      { code: 'SL019' },
      'the source knows that the pool lives elsewhere',
    );
    [from, to] = [to, from];
  }
});

test('a pool that is open, has messages or ending claims is not moved, and nothing of it changes', async (t) => {
  const { a, b } = await startFleet(t, { withLedger: false });
  const move = { source: caller(t, a.url), target: caller(t, b.url), to: 'b', ...NOTHING_MORE };
  const refuse = async (poolId: string, code: string) => {
    const before = await contentsOf(a.url, poolId);
    await assert.rejects(movePool({ ...move, poolId }), { code });
    assert.deepEqual(await contentsOf(a.url, poolId), before);
  };
  await query(a.url, `select public.pool_create('open', 3, '{}', 'test')`);
  await refuse('open', 'SL022');
  await query(a.url, `insert into public.inventory_slots (pool_id) values ('bare')`);
  await refuse('bare', 'SL022');
  await query(a.url, `select public.claim_resource_and_queue('open', 'ann')`);
  await query(a.url, `select public.pool_change('open', '{"is_active": false}', 0, 'test')`);
  await refuse('open', 'SL022');
  await refuse('missing', 'SL002');
  await assert.rejects(movePool({ ...move, poolId: 'open', to: 'a' }), { code: 'SL001' });
});

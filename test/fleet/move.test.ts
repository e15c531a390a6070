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
  details: null,
  orders: null,
  payments: null,
  checkouts: null,
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

const PAID = {
  confirm_by: 'payment',
  price: 1_000,
  currency: 'eur',
  payment_tenant: 'stripe',
  hold_sec: 600,
  max_quantity: 2,
};
const payment = (order: string, user: string, id: string) => ({
  payment_key: `stripe/${id}`,
  tenant: 'stripe',
  livemode: true,
  claim_id: order,
  user_id: user,
  amount: 2_000,
  currency: 'eur',
});

test('orders go with their pool: what was decided stays decided, and what was paid can be voided there', async (t) => {
  const { a, b } = await startFleet(t, { withLedger: false });
  const move = {
    poolId: 'gala',
    source: caller(t, a.url),
    target: caller(t, b.url),
    to: 'b',
    ...NOTHING_MORE,
  };
  const settle = async (url: string, fact: object, isFinal = false) => {
    const [answer] = await query<{ decision: string; reason: string }>(
      url,
      'select decision, reason from public.settle_payment($1, $2)',
      [fact, isFinal],
    );
    return `${answer?.decision} ${answer?.reason}`;
  };
  await query(a.url, `select public.pool_create('gala', 8, $1, 'test')`, [PAID]);
  await query(a.url, `select public.set_pool_details('gala', '{"title": "Gala"}', 'test')`);
  await query(
    a.url,
    `update public.inventory_slots set label = 'seat ' || sale_order where pool_id = 'gala'`,
  );
  const order = async (user: string): Promise<string> => {
    const [row] = await query<{ claim_id: string }>(
      a.url,
      `select claim_id from public.claim_batch('{gala}', array[$1], '{null}', p_quantities => '{2}')`,
      [user],
    );
    return String(row?.claim_id);
  };
  const [ann, bob, cid] = [await order('ann'), await order('bob'), await order('cid')];
  await query(a.url, `select public.begin_checkout($1, 'ann', 'https://example.com')`, [ann]);
  assert.equal(await settle(a.url, payment(ann, 'ann', 'pi_1')), 'funds in_time');
  assert.equal(await settle(a.url, { ...payment(bob, 'bob', 'pi_2'), amount: 1 }), 'refund amount');
  await query(a.url, `select public.pool_change('gala', '{"is_active": false}', 0, 'test')`);
  await assert.rejects(movePool(move), { code: 'SL022' }, 'with claims on their way');
  await query(
    a.url,
    `select public.bridge_finish(array_agg(msg_id), array_agg(0), array_agg('committed'::text), array_agg(null::text), array_agg(0))
     from pgmq.q_intake_queue`,
  );
  await query(a.url, `select public.release_own_claim($1, 'bob')`, [bob]);
  await assert.rejects(movePool(move), { code: 'SL022' }, 'with an order that is held');
  await query(a.url, 'update public.orders set hold_until = now() where order_id = $1', [cid]);
  await query(a.url, 'select public.expire_holds()');
  await assert.rejects(movePool(move), { code: 'SL022' }, 'with a session that is not closed');
  await query(
    a.url,
    `select public.close_checkout(k.order_id, k.n, k.lease_token, 'complete', 'pi_1') from public.take_closing(9, 60, true) k`,
  );
  const before = await contentsOf(a.url, 'gala');
  assert.deepEqual(
    ['orders', 'payments', 'checkouts'].map((name) => (before[name] as unknown[]).length),
    [3, 2, 1],
  );

  // While the pool moves, neither cell may say that the order does not exist.
  const onStep = (step: string) => {
    if (step === 'unpack') throw new Error('killed');
  };
  await assert.rejects(movePool({ ...move, onStep }), /killed/);
  assert.equal(await settle(a.url, payment(cid, 'cid', 'pi_3')), 'unknown no_order');
  await assert.rejects(
    query(a.url, 'select * from public.void_targets($1, null, false)', [payment(ann, 'ann', 'pi_1')]),
    {
      code: 'SL008',
    },
  );
  await movePool(move);
  assert.deepEqual(await contentsOf(b.url, 'gala'), before);
  assert.deepEqual(await contentsOf(a.url, 'gala'), EMPTY);

  assert.equal(await settle(b.url, payment(ann, 'ann', 'pi_1')), 'funds in_time');
  assert.equal(await settle(b.url, payment(bob, 'bob', 'pi_2')), 'refund amount');
  await query(b.url, `select public.pool_change('gala', '{"is_active": true}', 0, 'test')`);
  assert.equal(await settle(b.url, payment(cid, 'cid', 'pi_3')), 'funds late');
  const targets = await query<{ claim_id: string }>(b.url, 'select * from public.void_targets($1, null)', [
    payment(ann, 'ann', 'pi_1'),
  ]);
  assert.equal(targets.length, 2);
  const ids = targets.map(({ claim_id }) => claim_id);
  assert.deepEqual(await query(b.url, `select public.finish_void($1, 'refunded')`, [ids]), [
    { finish_void: 2 },
  ]);
});

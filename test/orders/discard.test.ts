// The dead letter of a claim that was paid for ends by a void: tombstone, slot, refund. It is never just thrown away.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Stripe from 'stripe';
import { createEndingStore } from '#core/dead_letters.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { ADMIN_KEY, ask, bearer } from '../server/support.ts';
import { OrderWorld, PRICE } from './world.ts';

describe('discarding the dead letter of a paid claim', () => {
  let world: OrderWorld;
  before(async () => {
    world = await OrderWorld.start();
  });
  after(() => world?.stop());

  /** A paid claim that no worker could carry. */
  const letter = async () => {
    const pool = await world.pool(1);
    const buyer = await world.claim(pool);
    const { payment_intent } = await world.standIn.control.pay(await world.session(buyer));
    await world.delivered();
    await world.events();
    await world.orders();
    const sql = `select public.intake_route_to_dlq(q.msg_id, q.message || '{"reason": "test"}', 0)
      from pgmq.q_intake_queue q where q.message ->> 'claim_id' = $1`;
    const { rows } = await world.db1.query(sql, [buyer.claim_id]);
    assert.equal((await world.show(buyer)).status, 'dead_letter');
    return { pool, buyer, payment: String(payment_intent), msgId: Number(rows[0].intake_route_to_dlq) };
  };
  const discard = async (msgId: number, more = {}) => {
    const { status, json } = await ask(`${world.server.url}/admin/dlq/discard`, {
      method: 'POST',
      headers: bearer(ADMIN_KEY),
      body: { msg_ids: [msgId], reason: 'test', ...more },
    });
    assert.equal(status, 200);
    return json.results[0].outcome;
  };

  it('voids it, puts the seat on sale and refunds it, once', async () => {
    const { pool, buyer, payment, msgId } = await letter();
    assert.equal(await discard(msgId, { dry_run: true }), 'would_void');
    assert.equal(await discard(msgId), 'voiding');
    assert.equal(await discard(msgId), 'voiding');
    assert.equal((await world.show(buyer)).status, 'dead_letter');
    await world.work();
    await world.work();
    assert.equal((await world.show(buyer)).status, 'voided');
    assert.equal(await world.free(pool), 1);
    assert.equal(await discard(msgId), 'not_found');
    const refunds = await world.standIn.control.books<Stripe.Refund>('refund');
    assert.deepEqual(
      refunds.filter((refund) => refund.payment_intent === payment).map(({ amount }) => amount),
      [PRICE],
    );
    const audited = `select count(*)::int as n from audit.audit_logs where action = 'ticket_void' and subject = $1`;
    assert.equal((await world.db2.query(audited, [`claim ${buyer.claim_id}`])).rows[0].n, 2);
  });

  it('changes nothing while the ledger is away', async () => {
    const { buyer, msgId } = await letter();
    const db1 = createDatabase({
      url: world.databases.db1.url,
      max: 1,
      applicationName: 'test',
      log: createLog('silent'),
    });
    try {
      const away = () => Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }));
      const store = createEndingStore(
        (name, args) => db1.call(`public.${name}`, args),
        away,
        createLog('silent'),
      );
      const action = { msgIds: [msgId], actor: 'test', reason: null, dryRun: false };
      const [result] = await store.discard(action);
      assert.equal(result?.outcome, 'paid');
      assert.equal((await world.show(buyer)).status, 'dead_letter');
    } finally {
      await db1.end();
    }
  });
});

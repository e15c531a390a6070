import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { paymentEvent, WebhookWorld } from './world.ts';

describe('payments in one batch with an event that cannot take effect', () => {
  let world: WebhookWorld;
  before(async () => {
    world = await WebhookWorld.start();
    await world.addEndpoint('queued', 'stripe', 'queued');
  });
  after(() => world?.stop());

  it('are credited all the same, each once', async () => {
    for (const [id, currency] of [
      ['evt_n1', 'eur'],
      ['evt_n2', null],
      ['evt_n3', 'eur'],
    ] as const) {
      const body = paymentEvent(id, { currency, metadata: { user_id: 'ann' } });
      assert.equal((await world.send('queued', 'stripe', body)).status, 200);
    }
    assert.deepEqual((await world.process()).totals, { success: 2, dead_letter: 1 });
    assert.deepEqual(await world.credited('ann'), { rows: 2, sum: 200 });
  });

  it('are credited also when the ledger itself refused the other one', async () => {
    const about = { payment_intent: 'pi_evt_d0', metadata: {} };
    const disputed = (id: string, type: string, amount: number) => {
      const moved = [{ id: 'txn_1', amount: -amount, currency: 'eur' }];
      return paymentEvent(id, {
        ...about,
        id: 'dp_1',
        type: `charge.dispute.${type}`,
        balance_transactions: moved,
      });
    };
    const post = (body: string) => world.send('queued', 'stripe', body);
    await post(paymentEvent('evt_d0', { metadata: { user_id: 'bob' } }));
    await post(disputed('evt_d1', 'created', 50));
    assert.deepEqual((await world.process()).totals, { success: 2 });
    // The same balance transaction with another amount contradicts what is known.
    await post(disputed('evt_d2', 'funds_withdrawn', 70));
    await post(paymentEvent('evt_d3', { metadata: { user_id: 'cyd' } }));
    assert.deepEqual((await world.process()).totals, { success: 1, dead_letter: 1 });
    assert.deepEqual(await world.credited('bob'), { rows: 2, sum: 50 });
    assert.deepEqual(await world.credited('cyd'), { rows: 1, sum: 100 });
  });
});

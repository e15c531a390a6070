import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { databaseError, payload, poolConfig, uuid, World } from '../bridge/support.ts';

const BREAKER = 'sluice_bridge_breaker_open';
const DELIVERIES = 'sluice_bridge_deliveries_total';

describe('the bridge counts', () => {
  it('what became of a batch, in one go, and what the ledger said', async () => {
    const world = new World();
    for (const n of [1, 2, 3]) world.send(payload(n));
    world.send('no message of ours');
    world.finalizeBatch = (payloads) => payloads.map((_, n) => (n === 2 ? 'conflict' : 'committed'));
    await world.step();
    assert.deepEqual(Object.fromEntries(world.counted), {
      [`${DELIVERIES} committed`]: 2,
      [`${DELIVERIES} dead_letter`]: 2,
      'sluice_ledger_tickets_total committed': 2,
      'sluice_ledger_tickets_total conflict': 1,
    });
  });

  it('a target that is down, until it answers again, once however often it is tried', async () => {
    const world = new World();
    world.send(payload(1));
    const works = world.finalizeBatch;
    world.finalizeBatch = () => {
      throw databaseError('57P01');
    };
    for (let tries = 0; tries < 3; tries++) {
      await world.step();
      assert.equal(world.counted.get(`${BREAKER} ledger`), 1);
      world.nowMs += 60_000;
    }
    world.finalizeBatch = works;
    await world.step();
    assert.equal(world.counted.get(`${BREAKER} ledger`), 0);
    assert.equal(world.counted.get(`${DELIVERIES} committed`), 1);
  });

  it('a webhook by its host alone: the rest of the address may be a secret', async () => {
    const world = new World();
    const commit_webhook_url = 'https://user:pass@shop.example:8443/hook?token=secret';
    world.pools.set('pool', poolConfig('pool', { commit_webhook_url }));
    world.send(payload(1));
    world.answer = () => 503;
    await world.step();
    assert.equal(world.counted.get(`${BREAKER} shop.example:8443`), 1);
    assert.doesNotMatch(JSON.stringify([[...world.counted], world.spans]), /secret|pass/);
  });
});

describe('the bridge traces', () => {
  it('each message by its claim, and by its slot where it has none', async () => {
    const world = new World();
    world.send(payload(1));
    world.send(payload(2, { claim_id: undefined }));
    world.send('no message of ours');
    await world.step();
    assert.deepEqual(
      world.spans.map(({ name, subject, failure }) => [name, subject, failure]),
      [
        ['ledger', uuid(1), undefined],
        ['ledger', uuid(1_000_002), undefined],
        ['bridge', uuid(1), undefined],
        ['bridge', uuid(1_000_002), undefined],
      ],
    );
  });

  it('an outage as a failure of both, and no word about who the buyer is', async () => {
    const world = new World();
    world.send(payload(7));
    world.finalizeBatch = () => {
      throw databaseError('57P01', 'the ledger shuts down');
    };
    await world.step();
    assert.deepEqual(
      world.spans.map(({ name, failure }) => [name, failure]),
      [
        ['ledger', 'the ledger shuts down'],
        ['bridge', 'ledger unavailable'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(world.spans), /user 7/);
  });
});

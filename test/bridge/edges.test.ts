// The edges between one verdict and the next.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { databaseError, payload, poolConfig, uuid, World } from './support.ts';

const HOOK = 'https://hook.example/c';

describe('a pool with a function of its own', () => {
  it('is handed back, and left alone, while its sessions are lost', async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { commit_rpc_name: 'book' }));
    const cause = databaseError('08006');
    world.callCustom = () => {
      throw cause;
    };
    const ids = [1, 2].map((n) => world.send(payload(n)));
    const { outcomes, pausedUntilMs } = await world.step();
    assert.deepEqual([outcomes, pausedUntilMs], [{ outage: 2 }, 1_000_500]);
    assert.equal(world.customCalls.length, 2, 'both were called for at once');
    for (const id of ids) assert.equal(world.endOf(id)?.reason, 'book unavailable');
    world.nowMs += 499;
    assert.equal((await world.step()).total, 0);
    const [line] = world.log.filter(({ level }) => level === 'warn');
    assert.deepEqual(
      [line?.message, line?.claim_id, line?.cause],
      ['a commit function is unavailable', uuid(1), cause],
    );
  });

  it('is counted and traced ticket by ticket', async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { commit_rpc_name: 'book' }));
    for (const n of [1, 2]) world.send(payload(n));
    await world.step();
    assert.equal(world.counted.get('sluice_ledger_tickets_total committed'), 2);
    assert.deepEqual(
      world.spans.filter(({ name }) => name === 'ledger').map(({ subject }) => subject),
      [uuid(1), uuid(2)],
    );
  });
});

describe('a failure of the ledger', () => {
  for (const [code, outcome, reason] of [
    ['23514', 'dead_letter', '23514: planted'],
    ['SL020', 'dead_letter', 'SL020: planted'],
    // Classes are the first two characters, wherever else the same may stand.
    ['P0022', 'retry', 'P0022: planted'],
    ['XXSL0', 'retry', 'XXSL0: planted'],
  ] as const)
    it(`with ${code} ends in ${outcome}`, async () => {
      const world = new World();
      world.finalizeBatch = () => {
        throw databaseError(code);
      };
      const id = world.send(payload(1));
      assert.deepEqual((await world.step()).outcomes, { [outcome]: 1 });
      assert.equal(world.endOf(id)?.reason, reason);
    });

  it('without a code is told as an error', async () => {
    const world = new World();
    world.finalizeBatch = () => {
      throw new TypeError('odd');
    };
    const id = world.send(payload(1));
    await world.step();
    assert.equal(world.endOf(id)?.reason, 'error: odd');
  });

  it('that meets who is used up says so in the log, and in their reasons', async () => {
    const world = new World();
    const cause = databaseError('42P01');
    world.ticketOf = () => {
      throw cause;
    };
    const id = world.send(payload(1), { attempts: 9 });
    await world.step();
    assert.equal(world.endOf(id)?.reason, 'ledger unavailable');
    assert.deepEqual(
      world.log.filter(({ level }) => level === 'warn'),
      [{ level: 'warn', message: 'the ledger is unavailable', messages: 1, cause }],
    );
  });

  it('that meets one message after another is the reason of each', async () => {
    const world = new World();
    world.finalizeBatch = () => {
      throw databaseError('XX000');
    };
    const ids = [1, 2, 3].map((n) => world.send(payload(n)));
    assert.deepEqual((await world.step()).outcomes, { outage: 3 });
    for (const id of ids) assert.equal(world.endOf(id)?.reason, 'its target fails one message after another');
  });
});

describe('the answer of a hook', () => {
  for (const [status, outcome] of [
    [199, 'retry'],
    [200, 'committed'],
    [299, 'committed'],
    [300, 'retry'],
    [399, 'retry'],
    [500, 'retry'],
  ] as const)
    it(`${status} is ${outcome}`, async () => {
      const world = new World();
      world.pools.set('pool', poolConfig('pool', { commit_webhook_url: HOOK }));
      world.answer = () => status;
      world.send(payload(1));
      assert.deepEqual((await world.step()).outcomes, { [outcome]: 1 });
    });
});

describe('a yes that cannot be remembered', () => {
  it('fails the step, although the database is back a moment later', async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { validation_webhook_url: HOOK }));
    world.send(payload(1));
    world.onFinish = (finishes) => {
      if (finishes.some(({ verdict }) => verdict === 'validated')) throw databaseError('08006');
    };
    await assert.rejects(world.step(), { code: '08006' });
    assert.deepEqual([world.ledgerCalls, world.finishes.size], [[], 0]);
  });
});

describe('a message', () => {
  it('whose slot or claim has more around its uuid is a dead letter', async () => {
    for (const [change, reason] of [
      [{ resource_id: `x${uuid(1)}` }, 'malformed: resource_id'],
      [{ claim_id: `x${uuid(1)}` }, 'malformed: claim_id'],
    ] as const) {
      const world = new World();
      const id = world.send(payload(1, change));
      await world.step();
      assert.equal(world.endOf(id)?.reason, reason);
    }
  });
});

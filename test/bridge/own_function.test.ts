// A pool's own commit function: its calls wait for their turn, and what became of the ledger or of it meanwhile counts.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { databaseError, payload, poolConfig, World } from './support.ts';

const settle = async () => {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
};

function ownWorld(messages: number): { world: World; ids: number[] } {
  const world = new World();
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  const ids = Array.from({ length: messages }, (_, n) => world.send(payload(n, { pool_id: 'own' })));
  return { world, ids };
}

describe('calls of a pool’s own function', () => {
  it('are four at a time; those that wait when it turns out to be gone are not made', async () => {
    const { world, ids } = ownWorld(10);
    world.callCustom = async () => {
      await settle();
      throw Object.assign(databaseError('57P01', 'terminated'), { severity: 'FATAL' });
    };
    assert.deepEqual((await world.step()).outcomes, { outage: 10 });
    assert.equal(world.customCalls.length, 4);
    assert.deepEqual([...new Set(ids.map((id) => world.endOf(id)?.reason))], ['my_commit unavailable']);
  });

  it('say why they cannot be made, and nothing of what the function itself says', async () => {
    const { world } = ownWorld(1);
    world.callCustom = () => {
      throw databaseError('PGRST202', 'my_commit is not in the schema cache');
    };
    await world.step();
    assert.deepEqual(world.outages, [['ledger my_commit', 'PGRST202: my_commit is not in the schema cache']]);
    const failing = ownWorld(4).world;
    failing.callCustom = () => {
      throw databaseError('XX000', 'user 1 is unknown');
    };
    await failing.step();
    assert.deepEqual(failing.outages, []);
  });

  it('are not made while the ledger is found down by another pool', async () => {
    const { world, ids } = ownWorld(10);
    const waiting: (() => void)[] = [];
    world.callCustom = () =>
      new Promise<void>((_, reject) => void waiting.push(() => reject(databaseError('P0001'))));
    world.finalizeBatch = () => {
      throw databaseError('ECONNREFUSED');
    };
    world.send(payload(99));
    const step = world.step();
    await settle();
    for (const fail of waiting) fail();
    const { outcomes } = await step;
    assert.deepEqual([outcomes, world.customCalls.length], [{ retry: 4, outage: 7 }, 4]);
    assert.deepEqual(
      new Set(ids.map((id) => world.endOf(id)?.reason)),
      new Set(['P0001: planted', 'ledger unavailable']),
    );
  });

  it('that wait when the worker is told to stop are handed back', async () => {
    const { world } = ownWorld(10);
    const stopping = new AbortController();
    world.callCustom = () => stopping.abort();
    const { outcomes } = await world.step(stopping.signal);
    assert.deepEqual(outcomes, {
      committed: world.customCalls.length,
      untried: 10 - world.customCalls.length,
    });
    assert.ok(world.customCalls.length <= 4);
  });

  it('are counted as tickets', async () => {
    const { world } = ownWorld(3);
    await world.step();
    assert.equal(world.counted.get('sluice_ledger_tickets_total committed'), 3);
  });

  it('that PostgREST does not serve are an outage, whatever it says of them', async () => {
    for (const code of ['PGRST106', 'PGRST202']) {
      const { world } = ownWorld(1);
      world.callCustom = () => {
        throw databaseError(code, 'not in the schema cache');
      };
      assert.deepEqual((await world.step()).outcomes, { outage: 1 }, code);
    }
  });

  for (const code of ['XX000', '42703', 'PGRST102', '42P01', '42883', '42501', '08006'])
    it(`that fail with ${code} count for one message alone, and for none where all fail`, async () => {
      const alone = ownWorld(1);
      const fail = () => {
        throw Object.assign(databaseError(code, 'elsewhere'), { severity: 'ERROR' });
      };
      alone.world.callCustom = fail;
      assert.deepEqual((await alone.world.step()).outcomes, { retry: 1 });
      const all = ownWorld(4);
      all.world.callCustom = fail;
      assert.deepEqual((await all.world.step()).outcomes, { outage: 4 });
    });

  for (const code of ['SL030', 'SL034', '22P02', '23514', 'SL001'])
    it(`that fail with ${code} leave a dead letter at once`, async () => {
      const { world } = ownWorld(1);
      world.callCustom = () => {
        throw databaseError(code);
      };
      assert.deepEqual((await world.step()).outcomes, { dead_letter: 1 });
    });
});

describe('a set that meets locks', () => {
  const eight = () => {
    const world = new World();
    const ids = Array.from({ length: 8 }, (_, n) => world.send(payload(n)));
    return { world, reasons: () => [...new Set(ids.map((id) => world.endOf(id)?.reason))].sort() };
  };

  it('is given up after five seconds', async () => {
    const { world, reasons } = eight();
    world.finalizeBatch = () => {
      world.nowMs += 5_001;
      throw databaseError('55P03');
    };
    assert.deepEqual((await world.step()).outcomes, { outage: 8 });
    assert.deepEqual([world.ledgerCalls.length, reasons()], [1, ['55P03: planted']]);
  });

  it('is halved until then, and its rest is told why it was not tried', async () => {
    const { world, reasons } = eight();
    world.finalizeBatch = () => {
      world.nowMs += 2_500;
      throw databaseError('55P03');
    };
    await world.step();
    assert.deepEqual(
      [world.ledgerCalls.length, reasons()],
      [3, ['55P03: planted', 'other messages of its set met locks']],
    );
  });

  it('and one that is slow without any are not the same: bad data is looked for to the end', async () => {
    const { world } = eight();
    world.finalizeBatch = (payloads) => {
      world.nowMs += 6_000;
      if (payloads.some(({ user_id }) => user_id === 'user 5')) throw databaseError('23514');
      return payloads.map(() => 'committed');
    };
    assert.deepEqual((await world.step()).outcomes, { committed: 7, dead_letter: 1 });
  });

  it('says of a ledger that is away that it is unavailable', async () => {
    const { world, reasons } = eight();
    world.finalizeBatch = () => {
      throw databaseError('ECONNREFUSED');
    };
    await world.step();
    assert.deepEqual(reasons(), ['ledger unavailable']);
  });
});

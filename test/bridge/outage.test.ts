// What happens when something is down, when the ledger is metered, and when the worker is told to stop.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { createLedger } from '#core/bridge/store.ts';
import { databaseError, LEASE_SEC, neverAborted, payload, poolConfig, uuid, World } from './support.ts';

const ALL_GOOD = (payloads: readonly unknown[]) => payloads.map(() => 'committed' as const);

test('an outage of the ledger uses up no message’s attempts, however long it lasts', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { max_retries: 2 }));
  for (let n = 1; n <= 5; n++) world.send(payload(n));
  world.finalizeBatch = () => {
    throw databaseError('ECONNREFUSED');
  };
  for (let minute = 0; minute < 60; minute++) {
    await world.step();
    world.nowMs += 60_000;
  }
  assert.ok(world.queue.every((message) => message.attempts === 0 && message.read_ct === 60));
  world.finalizeBatch = ALL_GOOD;
  assert.deepEqual((await world.step()).outcomes, { committed: 5 });
});

const OUTAGES: Record<string, Error> = {
  ...Object.fromEntries(
    ['08006', '53300', '57P01', '57P03', '25006', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE'].map(coded),
  ),
  // The login is refused, the database is not there, its disk fails.
  ...Object.fromEntries(['28000', '28P01', '3D000', '58030', '58P01'].map(coded)),
  // The ledger has not answered: neither Postgres nor PostgREST has such a code.
  ...Object.fromEntries(['CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN', 'EPROTO', 'EPERM', ''].map(coded)),
  'an error without a code': new Error('SASL: client password must be a string'),
  'a text instead of an error': 'gone' as unknown as Error,
  // Supabase's pooler: "Tenant or user not found".
  'a session refused with XX000': Object.assign(databaseError('XX000'), { severity: 'FATAL' }),
};

function coded(code: string): [string, Error] {
  return [code, databaseError(code)];
}

for (const [name, error] of Object.entries(OUTAGES)) {
  test(`${name} from the ledger is an outage and not bisected`, async () => {
    const world = new World();
    for (let n = 1; n <= 8; n++) world.send(payload(n));
    world.finalizeBatch = () => {
      throw error;
    };
    assert.deepEqual((await world.step()).outcomes, { outage: 8 });
    assert.equal(world.ledgerCalls.length, 1);
  });
}

for (const code of ['42883', '42501', '28000', '08001']) {
  test(`${code} that a pool’s own function raises itself is about the message, which does not stay for ever`, async () => {
    const world = new World();
    world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit', max_retries: 3 }));
    const refused = world.send(payload(1, { pool_id: 'own' }));
    world.callCustom = () => {
      throw Object.assign(databaseError(code, 'not for this user'), { severity: 'ERROR' });
    };
    for (let minute = 0; minute < 4; minute++) {
      await world.step();
      world.nowMs += 60_000;
    }
    assert.equal(world.endOf(refused)?.verdict, 'dead_letter');
    assert.equal(world.counted.get('sluice_bridge_breaker_open ledger'), undefined);
  });
}

for (const code of ['42883', '42P01', '42501', 'PGRST106', 'PGRST202']) {
  test(`${code} from the ledger’s own function is an outage: no message can help it`, async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { max_retries: 2 }));
    world.send(payload(1));
    world.send(payload(2));
    world.finalizeBatch = () => {
      throw databaseError(code);
    };
    assert.deepEqual((await world.step()).outcomes, { outage: 2 });
    assert.equal(world.ledgerCalls.length, 1);
    world.nowMs += 60_000;
    world.finalizeBatch = ALL_GOOD;
    assert.deepEqual((await world.step()).outcomes, { committed: 2 });
  });
}

for (const code of ['42883', '42501', 'PGRST106', 'PGRST202']) {
  test(`${code} about a pool’s own function is an outage of that pool, and of no other`, async () => {
    const world = new World();
    world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit', max_retries: 2 }));
    world.pools.set('other', poolConfig('other', { commit_rpc_name: 'another' }));
    world.callCustom = (functionName) => {
      if (functionName === 'my_commit') throw databaseError(code, 'permission denied for function my_commit');
    };
    const waiting = world.send(payload(1, { pool_id: 'own' }));
    world.send(payload(2));
    world.send(payload(3, { pool_id: 'other' }));
    assert.deepEqual((await world.step()).outcomes, { outage: 1, committed: 2 });
    assert.equal(world.endOf(waiting)?.reason, 'my_commit unavailable');
    assert.deepEqual(
      [
        world.counted.get('sluice_bridge_breaker_open ledger my_commit'),
        world.counted.get('sluice_bridge_breaker_open ledger'),
      ],
      [1, undefined],
    );
    for (let minute = 0; minute < 10; minute++) {
      world.send(payload(10 + minute));
      assert.deepEqual((await world.step()).outcomes, { committed: 1 }, 'the pool is paused alone');
      assert.deepEqual(world.leftAlone.at(-1), ['own']);
      world.nowMs += 60_000;
      assert.deepEqual((await world.step()).outcomes, { outage: 1 });
    }
    world.callCustom = () => undefined;
    world.nowMs += 60_000;
    assert.deepEqual((await world.step()).outcomes, { committed: 1 });
    assert.equal(world.counted.get('sluice_bridge_breaker_open ledger my_commit'), 0);
  });
}

test('a pool’s own function that is always busy is left alone, and no other pool with it', async () => {
  const world = new World();
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  world.callCustom = () => {
    throw databaseError('57014');
  };
  for (let n = 1; n <= 4; n++) world.send(payload(n, { pool_id: 'own' }));
  assert.deepEqual((await world.step()).outcomes, { outage: 4 });
  world.send(payload(5));
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
});

for (const error of [new RangeError('Maximum call stack size exceeded'), new TypeError('not a row')]) {
  test(`a message that our own code stumbles over (${error.name}) stands alone, and counts`, async () => {
    const world = new World();
    const bad = world.send(payload(1));
    for (let n = 2; n <= 9; n++) world.send(payload(n));
    world.finalizeBatch = (payloads) => {
      if (payloads.some((one) => one.claim_id === uuid(1))) throw error;
      return ALL_GOOD(payloads);
    };
    assert.deepEqual((await world.step()).outcomes, { retry: 1, committed: 8 });
    assert.equal(world.endOf(bad)?.reason, `error: ${error.message}`);
  });
}

test('a ledger that gives odd answers to one message after another is down, and kills none', async () => {
  const world = new World();
  const { finalizeBatch } = createLedger(async () => []);
  world.finalizeBatch = finalizeBatch;
  for (let n = 1; n <= 100; n++) world.send(payload(n));
  assert.deepEqual((await world.step()).outcomes, { outage: 100 });
  assert.ok(world.ledgerCalls.length <= 12, `${world.ledgerCalls.length} calls`);
});

/** A defect pauses the ledger; a lock does not, and is tried by halves for a while. */
for (const [code, most] of Object.entries({
  57014: 32,
  '55P03': 32,
  '40P01': 32,
  40001: 32,
  42703: 12,
  XX000: 12,
  XX002: 12,
})) {
  test(`a ledger that answers ${code} to one message after another is left alone, and kills none`, async () => {
    const world = new World();
    world.pools.set('pool', poolConfig('pool', { max_retries: 4 }));
    for (let n = 1; n <= 100; n++) world.send(payload(n));
    world.finalizeBatch = () => {
      throw databaseError(code);
    };
    await world.step();
    // Down to single messages once, three of those, and then no call until the pause is over.
    assert.ok(world.ledgerCalls.length <= most, `${world.ledgerCalls.length} calls`);
    for (let minute = 0; minute < 30; minute++) {
      world.nowMs += 60_000;
      await world.step();
    }
    assert.equal(world.queue.length, 100);
    world.nowMs += 60_000;
    world.finalizeBatch = ALL_GOOD;
    assert.deepEqual((await world.step()).outcomes, { committed: 100 });
  });
}

test('one message that makes the ledger busy is tried alone, later, and not counted', async () => {
  const world = new World();
  const slow = world.send(payload(1));
  for (let n = 2; n <= 9; n++) world.send(payload(n));
  world.finalizeBatch = (payloads) => {
    if (payloads.some((one) => one.claim_id === uuid(1))) throw databaseError('57014');
    return ALL_GOOD(payloads);
  };
  assert.deepEqual((await world.step()).outcomes, { outage: 1, committed: 8 });
  assert.deepEqual(world.endOf(slow), {
    msg_id: slow,
    read_ct: 1,
    verdict: 'outage',
    reason: '57014: planted',
    delay_ms: 1_000,
  });
  world.nowMs += 1_000;
  await world.step();
  assert.equal(world.endOf(slow)?.delay_ms, 2_000);
});

test('a ledger whose locks hold up every message of a pool is tried by halves for a while, and no pool is paused', async () => {
  const world = new World();
  world.pools.set('other', poolConfig('other'));
  for (let n = 1; n <= 500; n++) world.send(payload(n));
  world.send(payload(501, { pool_id: 'other' }));
  world.finalizeBatch = (payloads) => {
    if (payloads.some((one) => one.pool_id === 'pool')) throw databaseError('55P03');
    return ALL_GOOD(payloads);
  };
  const { outcomes, pausedUntilMs } = await world.step();
  assert.deepEqual([outcomes, pausedUntilMs], [{ outage: 500, committed: 1 }, 0]);
  assert.ok(world.ledgerCalls.length <= 33, `${world.ledgerCalls.length} calls`);
});

test('the pause doubles with each probe that fails, up to 15 s, and ends with the first success', async () => {
  const world = new World();
  world.send(payload(1));
  world.finalizeBatch = () => {
    throw databaseError('08006');
  };
  const pauses: number[] = [];
  for (let probe = 0; probe < 8; probe++) {
    const { total, pausedUntilMs } = await world.step();
    assert.equal(total, 1, 'the breaker lets a probe through by itself');
    pauses.push(pausedUntilMs - world.nowMs);
    world.nowMs = pausedUntilMs - 1;
    assert.equal((await world.step()).total, 0, 'while it is open nothing is taken');
    assert.deepEqual(world.leftAlone.at(-1), ['pool']);
    world.nowMs = pausedUntilMs;
  }
  assert.deepEqual(pauses, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
  world.finalizeBatch = ALL_GOOD;
  assert.deepEqual(await world.step(), { total: 1, outcomes: { committed: 1 }, pausedUntilMs: 0 });
});

test('a pool that does not need what is down goes on', async () => {
  const world = new World();
  world.pools.set('hook', poolConfig('hook', { commit_webhook_url: 'https://hook.example/c' }));
  world.send(payload(1));
  world.send(payload(2, { pool_id: 'hook' }));
  world.finalizeBatch = () => {
    throw databaseError('08006');
  };
  assert.deepEqual((await world.step()).outcomes, { outage: 1, committed: 1 });
  world.send(payload(3, { pool_id: 'hook' }));
  assert.deepEqual((await world.step()).outcomes, { committed: 1 });
});

test('while the ledger is left alone a pool never seen before does not call it either', async () => {
  const world = new World();
  world.pools.set('late', poolConfig('late'));
  world.pools.set('own', poolConfig('own', { commit_rpc_name: 'my_commit' }));
  world.send(payload(1));
  world.finalizeBatch = () => {
    throw databaseError('08006');
  };
  await world.step();
  world.send(payload(2, { pool_id: 'late' }));
  world.send(payload(3, { pool_id: 'own' }));
  assert.deepEqual((await world.step()).outcomes, {}, 'their messages wait in their lanes');
  assert.equal(world.ledgerCalls.length, 1);
  assert.equal(world.customCalls.length, 0);
});

test('who is told to stop before the commit hands everything back', async () => {
  const world = new World();
  for (let n = 1; n <= 3; n++) world.send(payload(n));
  assert.deepEqual((await world.step(AbortSignal.abort())).outcomes, { untried: 3 });
  assert.deepEqual(world.ledgerCalls, []);
  assert.equal(world.endOf(1)?.reason, 'handed back');
  assert.equal(world.queue[0]?.attempts, 0);
});

test('who is told to stop during the hook calls keeps what is decided and hands back the rest', async () => {
  const world = new World();
  world.pools.set('pool', poolConfig('pool', { commit_webhook_url: 'https://hook.example/c' }));
  for (let n = 1; n <= 40; n++) world.send(payload(n));
  const stopping = new AbortController();
  world.answer = async (_, one, signal) => {
    if (one.user_id === 'user 3') stopping.abort();
    if (signal.aborted) throw signal.reason;
    return 200;
  };
  const { outcomes } = await world.step(stopping.signal);
  // The call that was under way when the stop came may have arrived.
  assert.deepEqual(outcomes, { committed: 2, outage: 1, untried: 29 });
  assert.equal(world.posts.length, 3);
  assert.equal(
    world.log.filter(({ level }) => level === 'warn').length,
    0,
    'a stop does not count as an outage of the hook',
  );
});

test('a heartbeat on the wire has arrived before the step finishes', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const world = new World();
    world.send(payload(1));
    let arrive: () => void = () => undefined;
    world.extending = new Promise((resolve) => {
      arrive = resolve;
    });
    world.finalizeBatch = () => {
      mock.timers.tick(LEASE_SEC * 1_000);
      throw databaseError('08006');
    };
    const step = world.step();
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.equal(world.extended.length, 3);
    assert.equal(world.endOf(1), undefined, 'not handed back while a heartbeat could hide it again');
    arrive();
    assert.deepEqual((await step).outcomes, { outage: 1 });
  } finally {
    mock.timers.reset();
  }
});

test('the lease is extended three times a lease while a step works, and no longer', async () => {
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const world = new World();
    const id = world.send(payload(1));
    world.finalizeBatch = (payloads) => {
      mock.timers.tick(LEASE_SEC * 1_000);
      return ALL_GOOD(payloads);
    };
    await world.step(neverAborted);
    assert.deepEqual(
      world.extended.map((messages) => messages.map(({ msg_id, read_ct }) => [msg_id, read_ct])),
      Array(3).fill([[id, 1]]),
    );
    mock.timers.tick(LEASE_SEC * 10_000);
    assert.equal(world.extended.length, 3);
  } finally {
    mock.timers.reset();
  }
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  createEndPorts,
  ENDS_AT_ONCE,
  Ender,
  type EndingClaim,
  type EndOutcome,
  HOLDS_AT_ONCE,
} from '#core/bridge/ends.ts';
import { databaseError, neverAborted, uuid } from './support.ts';

const claim = (n: number, in_ledger = true): EndingClaim => ({
  claim_id: uuid(n),
  resource_id: uuid(n + 1_000_000),
  pool_id: 'pool',
  user_id: `user ${n}`,
  verified: true,
  cause: 'expired',
  in_ledger,
});
const claims = (count: number): EndingClaim[] => Array.from({ length: count }, (_, n) => claim(n));

/** An intake and a ledger in memory. */
class World {
  due: EndingClaim[] = [];
  holds = 0;
  readonly calls: string[] = [];
  readonly ended = new Map<string, EndOutcome>();
  readonly errors: unknown[] = [];
  answer: (claim: EndingClaim) => EndOutcome | undefined = () => 'voided';
  fail: (claims: readonly EndingClaim[]) => Error | undefined = () => undefined;
  readonly ender = new Ender({
    expire: async (limit) => {
      this.calls.push(`expire ${limit}`);
      const ended = Math.min(limit, this.holds);
      this.holds -= ended;
      return ended;
    },
    take: async (limit, leaseSec) => {
      this.calls.push(`take ${limit} ${leaseSec}`);
      return this.due.splice(0, limit);
    },
    voidTickets: async (some) => {
      this.calls.push(`void ${some.length}`);
      const failure = this.fail(some);
      if (failure) throw failure;
      const told = some.map((one) => [one.claim_id, this.answer(one)] as const);
      return new Map(told.filter((pair): pair is [string, EndOutcome] => pair[1] !== undefined));
    },
    finish: async (some, outcomes) => {
      this.calls.push(`finish ${some.length}`);
      for (const [at, one] of some.entries()) this.ended.set(one.claim_id, outcomes[at] as EndOutcome);
      return some.length;
    },
    log: {
      debugEnabled: false,
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (_, fields) => void this.errors.push(fields?.claim_id),
    },
  });
}

describe('the ender', () => {
  test('asks the ledger before it ends a claim, and ends each as the ledger says', async () => {
    const world = new World();
    world.due = claims(3);
    world.answer = ({ user_id }) => (user_id === 'user 1' ? 'ticket' : 'voided');
    assert.equal(await world.ender.end(neverAborted), 3);
    assert.deepEqual(world.calls, [`take ${ENDS_AT_ONCE} 10`, 'void 3', 'finish 3']);
    assert.deepEqual([...world.ended.values()], ['voided', 'ticket', 'voided']);
  });

  test('does nothing more where nothing is due', async () => {
    const world = new World();
    assert.equal(await world.ender.end(neverAborted), 0);
    assert.deepEqual(world.calls, [`take ${ENDS_AT_ONCE} 10`]);
  });

  test('ends those of pools with a commit hook without the ledger, also while that is away', async () => {
    const world = new World();
    world.due = [claim(1), claim(2, false)];
    world.fail = () => databaseError('08006');
    await assert.rejects(world.ender.end(neverAborted), { code: '08006' });
    assert.deepEqual([...world.ended], [[uuid(2), 'voided']]);
    world.fail = () => undefined;
    assert.equal(await world.ender.end(neverAborted), 1);
    assert.deepEqual(
      world.calls.slice(-2),
      ['void 1', 'finish 1'],
      'what it had is tried first, and not taken again',
    );
    assert.equal(world.ended.size, 2);
    await world.ender.end(neverAborted);
    assert.equal(world.calls.at(-1), `take ${ENDS_AT_ONCE} 10`, 'then it takes again');
  });

  test('never asks the ledger for hook pools alone', async () => {
    const world = new World();
    world.due = [claim(1, false)];
    assert.equal(await world.ender.end(neverAborted), 1);
    assert.ok(!world.calls.some((call) => call.startsWith('void')));
  });

  test('goes on until fewer come than it asked for, or the signal', async () => {
    const world = new World();
    world.due = claims(ENDS_AT_ONCE * 2 + 1);
    assert.equal(await world.ender.end(neverAborted), ENDS_AT_ONCE * 2 + 1);
    world.due = claims(ENDS_AT_ONCE * 2);
    assert.equal(await world.ender.end(AbortSignal.abort()), ENDS_AT_ONCE);
  });

  for (const code of ['55P03', '40P01', '57014', '22023', '23514', 'XX000', '54000', 'PGRST102'])
    test(`leaves the one that fails with ${code} for later, says so, and ends its neighbours`, async () => {
      const world = new World();
      world.due = claims(4);
      world.fail = (some) =>
        some.some(({ claim_id }) => claim_id === uuid(2)) ? databaseError(code) : undefined;
      assert.equal(await world.ender.end(neverAborted), 3);
      assert.deepEqual([...world.ended.keys()], [uuid(0), uuid(1), uuid(3)]);
      assert.deepEqual(world.errors, [uuid(2)]);
      await world.ender.end(neverAborted);
      assert.equal(world.calls.at(-1), `take ${ENDS_AT_ONCE} 10`, 'its lease has to run out first');
    });

  for (const code of ['08006', '57P01', '42883', '42501', 'ECONNREFUSED', 'ERR_SSL'])
    test(`keeps all where the ledger refuses every call (${code}), and asks it once`, async () => {
      const world = new World();
      world.due = claims(4);
      world.fail = () => databaseError(code);
      await assert.rejects(world.ender.end(neverAborted), { code });
      assert.deepEqual(world.calls, [`take ${ENDS_AT_ONCE} 10`, 'void 4']);
      assert.deepEqual(world.errors, []);
      world.fail = () => undefined;
      assert.equal(await world.ender.end(neverAborted), 4);
    });

  test('stops halving when the ledger goes away in the midst of it, and keeps what it has not ended', async () => {
    const world = new World();
    world.due = claims(4);
    let asked = 0;
    world.fail = () => databaseError(['55P03', '08006'][asked++] ?? '');
    await assert.rejects(world.ender.end(neverAborted), { code: '08006' });
    assert.deepEqual(world.calls.slice(1), ['void 4', 'void 2']);
    world.fail = () => undefined;
    assert.equal(await world.ender.end(neverAborted), 4);
  });

  test('does not end what the ledger says nothing about', async () => {
    const world = new World();
    world.due = claims(2);
    world.answer = ({ claim_id }) => (claim_id === uuid(0) ? undefined : 'voided');
    assert.equal(await world.ender.end(neverAborted), 1);
    assert.deepEqual([...world.ended.keys()], [uuid(1)]);
  });

  test('ends holds in parts, until fewer were due than a part or the signal', async () => {
    const world = new World();
    world.holds = 2 * HOLDS_AT_ONCE + 7;
    assert.equal(await world.ender.expire(neverAborted), 2 * HOLDS_AT_ONCE + 7);
    assert.deepEqual(world.calls, Array(3).fill(`expire ${HOLDS_AT_ONCE}`));
    world.holds = 2 * HOLDS_AT_ONCE;
    assert.equal(await world.ender.expire(AbortSignal.abort()), HOLDS_AT_ONCE);
  });
});

test('the ports of the ender call the functions of both databases by name', async () => {
  const calls: unknown[] = [];
  const answering =
    (side: string, rows: unknown[][]) =>
    async <Row>(name: string, args: Record<string, unknown>) => {
      calls.push([side, name, args]);
      return (rows.shift() ?? []) as Row[];
    };
  const log = {} as never;
  const ports = createEndPorts(
    answering('db1', [[{ expire_holds: 3 }], [], [claim(1)], [{ finish_ends: 1 }], []]),
    () => answering('db2', [[{ claim_id: uuid(1), outcome: 'ticket' }]]),
    log,
  );
  assert.equal(ports.log, log);
  assert.equal(await ports.expire(7), 3);
  assert.equal(await ports.expire(7), 0);
  assert.deepEqual(await ports.take(5, 9), [claim(1)]);
  assert.deepEqual([...(await ports.voidTickets([claim(1)]))], [[uuid(1), 'ticket']]);
  assert.equal(await ports.finish([claim(1)], ['ticket']), 1);
  assert.equal(await ports.finish([], []), 0);
  assert.deepEqual(calls, [
    ['db1', 'expire_holds', { p_limit: 7 }],
    ['db1', 'expire_holds', { p_limit: 7 }],
    ['db1', 'take_ends', { p_limit: 5, p_lease_sec: 9 }],
    ['db2', 'void_tickets', { p_claims: [claim(1)] }],
    ['db1', 'finish_ends', { p_claim_ids: [uuid(1)], p_outcomes: ['ticket'] }],
    ['db1', 'finish_ends', { p_claim_ids: [], p_outcomes: [] }],
  ]);
});

// Lanes beside each other: what one holds costs another nothing, and takes that meet neither wait nor share a message.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { interleave, type Session } from '../support/sessions.ts';
import { useDatabase } from '../support/suite.ts';

/** Messages of a lane that nothing disturbs, and of the lanes below and above it. */
const HEALTHY = 200;
const FEW = 1_000;
const MANY = 50_000;
const GROWTH_MAX = 1.5;

const { worker, other, observer } = useDatabase('db1', ['worker', 'other', 'observer'], {
  settings: { autovacuum: 'off' },
});
let pools = 0;

const newPool = async (claims: number, rules: Record<string, unknown> = {}): Promise<string> => {
  const pool = `lane_${++pools}`;
  await putOnSale(worker.client, pool, claims, rules);
  for (let user = 0; user < claims; user++) await worker.claim(pool, `user ${user}`);
  return pool;
};

const take = async (session: Session, pool: string, wanted: number): Promise<string[]> => {
  const taken = await session.rows<{ user_id: string }>(
    `select message ->> 'user_id' as user_id from public.bridge_take(array[intake.lane_of($1)], array[$2::int], 600)`,
    [pool, wanted],
  );
  return taken.map(({ user_id }) => user_id);
};

/** `call` in a transaction of `session` that stays open while `check` runs. */
const meanwhile = async (session: Session, call: () => Promise<unknown>, check: () => Promise<void>) => {
  await session.client.query('begin');
  try {
    await call();
    // What waits for the open transaction would wait for ever: this ends it.
    await other.client.query(`set lock_timeout = '5 s'`);
    await check();
  } finally {
    await session.client.query('rollback');
  }
};

describe('the cost of a take', () => {
  const send = (pool: string, from: number, to: number) =>
    worker.rows(
      `insert into pgmq.q_intake_queue (msg_id, vt, read_ct, message) overriding system value
       select (intake.lane_of($1)::bigint << 40) + n, clock_timestamp() + n % 2 * interval '1 hour', n % 2,
         jsonb_build_object('pool_id', $1::text, 'user_id', 'x')
       from generate_series($2::bigint, $3::bigint) n`,
      [pool, from, to],
    );

  /** Blocks that a call reads, once the plans are made, and what it answers with. */
  const costOf = async (call: string): Promise<{ blocks: number; rows: number }> => {
    let last = { blocks: 0, rows: 0 };
    for (let round = 0; round < 3; round++) {
      await worker.client.query('begin');
      const [plan] = await worker.value<[{ Plan: Record<string, number> }]>(
        `explain (analyze, buffers, format json) select * from ${call}`,
      );
      await worker.client.query('rollback');
      const { Plan } = plan;
      last = {
        blocks: (Plan['Shared Hit Blocks'] ?? 0) + (Plan['Shared Read Blocks'] ?? 0),
        rows: Plan['Actual Rows'] ?? 0,
      };
    }
    return last;
  };

  test('is the same beside 1,000 and 50,000 messages of other lanes', async () => {
    const [below, healthy, above] = [await newPool(0), await newPool(0), await newPool(0)];
    await send(healthy, 1, HEALTHY);
    const lane = await worker.value<number>('select intake.lane_of($1)', [healthy]);
    const calls = {
      take: `public.bridge_take(array[${lane}], array[${HEALTHY}], 600)`,
      suspect: `public.bridge_take_suspect(array[${lane}], 600)`,
      lanes: 'public.bridge_lanes()',
    };
    const costs = async () => {
      const found: Record<string, Awaited<ReturnType<typeof costOf>>> = {};
      for (const [name, call] of Object.entries(calls)) found[name] = await costOf(call);
      return found;
    };
    for (const pool of [below, above]) await send(pool, 1, FEW);
    await worker.client.query('vacuum analyze pgmq.q_intake_queue');
    const few = await costs();
    assert.equal(few.take?.rows, HEALTHY / 2, 'half of them wait for another attempt');
    for (const pool of [below, above]) await send(pool, FEW + 1, MANY);
    const many = await costs();
    for (const name of Object.keys(calls)) {
      const [before, now] = [few[name]?.blocks ?? 0, many[name]?.blocks ?? Number.NaN];
      assert.equal(many[name]?.rows, few[name]?.rows, name);
      assert.ok(now <= before * GROWTH_MAX, `${name}: ${before} blocks beside ${FEW}, ${now} beside ${MANY}`);
    }
    // The other way round: what reads the lane itself is seen to grow.
    const own = await costOf(`public.bridge_take(array[intake.lane_of('${below}')], array[${MANY}], 600)`);
    assert.ok(own.blocks > (many.take?.blocks ?? 0) * 10, `a take of all of it reads ${own.blocks} blocks`);
    await worker.client.query('truncate pgmq.q_intake_queue');
  });
});

describe('two takes at once', () => {
  test('share the messages of a lane, and neither waits', async () => {
    const pool = await newPool(10);
    let first: string[] = [];
    await meanwhile(
      worker,
      async () => {
        first = await take(worker, pool, 4);
      },
      async () => {
        const second = await take(other, pool, 10);
        assert.equal(second.length, 6);
        assert.equal(new Set([...first, ...second]).size, 10);
      },
    );
    assert.deepEqual(await take(other, pool, 10), first, 'what the first gave up is there for the next');
  });

  test('of a pool with a ceiling take no more than that together', async () => {
    const pool = await newPool(10, { commit_rate_per_sec: 3 });
    await worker.client.query('begin');
    assert.equal((await take(worker, pool, 10)).length, 3);
    await other.client.query(`set lock_timeout = '5 s'`);
    const frozen = `update intake.pool_allowances set filled_at = clock_timestamp() + interval '1 hour' where pool_id = $1`;
    await worker.rows(frozen, [pool]);
    const waiting = take(other, pool, 10);
    await worker.client.query('commit');
    assert.deepEqual(await waiting, [], 'the very first bucket is waited for');
    assert.deepEqual(await take(other, pool, 10), []);
    await worker.rows('update intake.pool_allowances set tokens = 2 where pool_id = $1', [pool]);
    await meanwhile(
      worker,
      () => take(worker, pool, 1),
      async () =>
        assert.deepEqual(
          await take(other, pool, 10),
          [],
          'while one take has the bucket, the other does not wait',
        ),
    );
    await worker.rows(frozen, [pool]);
    assert.equal((await take(other, pool, 10)).length, 2);
  });

  test('of suspects take one each', async () => {
    const pool = await newPool(3);
    await worker.rows(`update pgmq.q_intake_queue set read_ct = 2 where message ->> 'pool_id' = $1`, [pool]);
    const suspect = (session: Session) =>
      session.value<string>(
        `select message ->> 'user_id' from public.bridge_take_suspect(array[intake.lane_of($1)], 600)`,
        [pool],
      );
    await meanwhile(
      worker,
      async () => assert.equal(await suspect(worker), 'user 0'),
      async () => assert.equal(await suspect(other), 'user 1'),
    );
  });
});

describe('a message that has to move to the lane of its pool', () => {
  /** A pool that got its first rules after its claim. */
  const lateRules = async (): Promise<string> => {
    const pool = `late_${++pools}`;
    await worker.rows('insert into public.inventory_slots (pool_id) values ($1)', [pool]);
    await worker.claim(pool, 'ann');
    await worker.rows('insert into public.engine_config (pool_id) values ($1)', [pool]);
    return pool;
  };
  const takeLane0 = (session: Session) =>
    session.rows(`select * from public.bridge_take('{0}', '{100}', 600)`);
  const isMoved = (pool: string) =>
    other.value<boolean>(
      `select q.msg_id >> 40 = intake.lane_of($1) and c.msg_id = q.msg_id
       from public.claims c join pgmq.q_intake_queue q on q.message ->> 'claim_id' = c.claim_id::text where c.pool_id = $1`,
      [pool],
    );

  test('stays while another transaction works on its claim, and the taker does not wait', async () => {
    const pool = await lateRules();
    await meanwhile(
      worker,
      () => worker.rows('select from public.claims where pool_id = $1 for update', [pool]),
      async () => {
        assert.deepEqual(await takeLane0(other), []);
        assert.equal(await isMoved(pool), false);
      },
    );
    assert.deepEqual(await takeLane0(other), []);
    assert.equal(await isMoved(pool), true);
    assert.deepEqual(await take(other, pool, 1), ['ann']);
  });

  test('is found by a release that waited for the move', async () => {
    const pool = await lateRules();
    const { second } = await interleave(
      observer,
      { session: worker, run: () => takeLane0(worker), end: 'commit' },
      {
        session: other,
        run: () =>
          other.value<string>(
            `select (public.release_own_claim(c.claim_id, 'ann')).state from public.claims c where c.pool_id = $1`,
            [pool],
          ),
      },
    );
    assert.equal(second, 'released');
    const left = 'select count(*)::int from pgmq.q_intake_queue where message ->> $1 = $2';
    assert.equal(await other.value(left, ['pool_id', pool]), 0, 'with its message');
  });

  test('stays while its pool begins to validate', async () => {
    const pool = await lateRules();
    await meanwhile(
      worker,
      () =>
        worker.rows(
          `update public.engine_config set validation_webhook_url = 'https://example.com/' where pool_id = $1`,
          [pool],
        ),
      async () => {
        assert.deepEqual(await takeLane0(other), []);
        assert.equal(await isMoved(pool), false);
      },
    );
  });

  test('is moved by one of two takes that meet it', async () => {
    const pool = await lateRules();
    await meanwhile(
      worker,
      () => takeLane0(worker),
      async () => assert.deepEqual(await takeLane0(other), []),
    );
    assert.equal(await isMoved(pool), false, 'what is rolled back was not moved');
    await takeLane0(other);
    assert.equal(await isMoved(pool), true);
    assert.equal(
      await other.value(`select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = $1`, [
        pool,
      ]),
      1,
    );
  });
});

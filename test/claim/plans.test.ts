// However full the pool is and whatever the statistics say: no hot statement reads a whole table.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { scannedBy } from '../support/scans.ts';
import { openSession, type Session } from '../support/sessions.ts';

const SLOTS = 50_000;
const BATCH = 100;
/** Measured: 39 to 52 blocks a claim, 23 to 29 in a batch; one that walks over sold slots touches thousands. */
const BLOCKS_PER_CLAIM_MAX = 150;
const BLOCKS_PER_BATCHED_CLAIM_MAX = 60;
/** Reads of the small tables (a handful of pools) may be sequential, and a table that is all but empty too. */
const ROWS_READ_MAX = 100;

/** After five calls Postgres may keep one plan for all that follow. */
const CALLS_UNTIL_PLANS_STAY = 7;

const TABLES = ['public.inventory_slots', 'public.claims', 'pgmq.q_intake_queue'];
async function blocksOf(session: Session, sql: string, args: unknown[]): Promise<number> {
  const [plan] = await session.value<[{ Plan: Record<string, number> }]>(
    `explain (analyze, buffers, format json) ${sql}`,
    args,
  );
  return (plan.Plan['Shared Hit Blocks'] ?? 0) + (plan.Plan['Shared Read Blocks'] ?? 0);
}

describe('the plans of the hot statements', () => {
  let databases: TestDatabases;
  let session: Session;
  let requests = 0;

  before(async () => {
    databases = await startDatabases({ db2: false, settings: { autovacuum: 'off' } });
    session = await openSession(databases.db1.url);
  });
  after(async () => {
    await session?.close();
    await databases?.stop();
  });

  const batchOf = (pool: string, size: number) =>
    Array.from({ length: size }, () => ({ pool, user: `user ${++requests}`, request: `r${requests}` }));
  const releaseOne = async (pool: string) => {
    const [answer] = await session.batch(batchOf(pool, 1));
    assert(answer?.claim_id, String(answer?.outcome));
    return session.rows('select * from intake.give_back_claim($1)', [answer.claim_id]);
  };
  const expireSome = async (pool: string) => {
    const answers = await session.batch(batchOf(pool, 3));
    await session.client.query(
      `update public.claims set hold_until = now() - interval '1 second' where claim_id = any ($1)`,
      [answers.map((answer) => answer.claim_id)],
    );
    assert.equal(await session.value('select public.expire_holds()'), 3);
  };

  const hot: Record<string, (pool: string) => Promise<unknown>> = {
    'the single claim': (pool) => session.claim(pool, `user ${++requests}`),
    'the single claim with a request id': (pool) => session.claim(pool, `user ${++requests}`, `r${requests}`),
    'the batch with request ids': (pool) => session.batch(batchOf(pool, BATCH)),
    'the release': releaseOne,
    'the pool’s status': (pool) => session.rows('select * from public.pool_status($1)', [pool]),
    'the expiry of holds': expireSome,
  };

  async function assertNothingIsScanned(pool: string, when: string): Promise<void> {
    for (const [what, run] of Object.entries(hot)) {
      for (let call = 0; call < CALLS_UNTIL_PLANS_STAY; call++) {
        for (const [table, rows] of Object.entries(await scannedBy(session, () => run(pool), TABLES))) {
          assert(rows <= ROWS_READ_MAX, `${what}, ${when}: ${rows} rows of ${table} read in sequence`);
        }
      }
    }
  }

  async function assertBlocksAreBounded(pool: string, when: string): Promise<void> {
    const single = 'select public.claim_resource_and_queue($1, $2, $3)';
    // The first call after ANALYZE plans anew and reads the catalogs; that is not what is measured.
    await session.claim(pool, `user ${++requests}`, `r${requests}`);
    await session.batch(batchOf(pool, 1));
    const user = `user ${++requests}`;
    const one = await blocksOf(session, single, [pool, user, `r${requests}`]);
    assert(one <= BLOCKS_PER_CLAIM_MAX, `a claim ${when} touched ${one} blocks`);
    const batch = batchOf(pool, BATCH);
    const many = await blocksOf(session, 'select * from public.claim_batch($1, $2, $3)', [
      batch.map(() => pool),
      batch.map((request) => request.user),
      batch.map((request) => request.request),
    ]);
    assert(
      many / BATCH <= BLOCKS_PER_BATCHED_CLAIM_MAX,
      `a batched claim ${when} touched ${many / BATCH} blocks`,
    );
  }

  const sellUpTo = async (pool: string, share: number) => {
    const left = () =>
      session.value<number>(
        `select count(*)::int from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE'`,
        [pool],
      );
    const target = Math.round(SLOTS * (1 - share));
    for (let free = await left(); free > target; free = await left())
      await session.batch(batchOf(pool, Math.min(1_000, free - target)));
  };

  for (const [statistics, analyse] of [
    ['with fresh statistics', () => session.client.query('analyze')],
    ['with no statistics at all', async () => undefined],
  ] as const) {
    for (const limit of [null, 50]) {
      test(`scan nothing from the first slot to the last, ${statistics}, limit ${limit}`, async () => {
        const pool = `plans ${statistics} ${limit}`;
        await putOnSale(session.client, pool, SLOTS, limit ? { max_per_user: limit } : {});
        for (const share of [0, 0.1, 0.5, 0.96]) {
          await sellUpTo(pool, share);
          await analyse();
          await assertNothingIsScanned(pool, `at ${share * 100} % sold`);
          await assertBlocksAreBounded(pool, `at ${share * 100} % sold`);
        }
        await sellUpTo(pool, 0.99);
        await analyse();
        await assertBlocksAreBounded(pool, 'at 99 % sold');
        await sellUpTo(pool, 1);
        await analyse();
        assert.equal(await session.claim(pool, 'too late'), null);
        const reads = await scannedBy(
          session,
          async () => {
            assert.equal(await session.claim(pool, 'too late'), null);
            await session.batch(batchOf(pool, BATCH));
          },
          TABLES,
        );
        assert.deepEqual(reads, Object.fromEntries(TABLES.map((table) => [table, 0])));
      });
    }
  }

  test('stay good in a session that made them while the tables were empty', async () => {
    const fresh = await startDatabases({ db2: false, settings: { autovacuum: 'off' } });
    const kept = session;
    try {
      session = await openSession(fresh.db1.url);
      await putOnSale(session.client, 'small', 2 * BATCH * 10);
      // The release and the expiry first: they find next to nothing, and plan for that.
      for (const run of Object.values(hot).toReversed())
        for (let call = 0; call < CALLS_UNTIL_PLANS_STAY; call++) await run('small');
      await putOnSale(session.client, 'large', SLOTS);
      await sellUpTo('large', 0.5);
      await assertNothingIsScanned('large', 'with old plans');
    } finally {
      await session.close();
      session = kept;
      await fresh.stop();
    }
  });

  test('are needed: the plain design reads the whole table for one claim', async () => {
    await session.client.query(
      readFileSync(new URL('../../bench/sql/baseline.sql', import.meta.url), 'utf8'),
    );
    await session.client.query(
      `insert into plain.inventory_slots (pool_id, status)
       select 'plain', case when n % 10 = 0 then 'AVAILABLE' else 'RESERVED' end::public.slot_status
       from generate_series($1::int, 1, -1) n order by n % 10 desc`,
      [SLOTS],
    );
    await session.client.query('analyze plain.inventory_slots');
    const claimPlain = async () => {
      for (let call = 0; call < CALLS_UNTIL_PLANS_STAY; call++)
        await session.value(`select plain.claim_resource_and_queue('plain', 'buyer')`);
    };
    const reads = await scannedBy(session, claimPlain, ['plain.inventory_slots']);
    const read = reads['plain.inventory_slots'] ?? 0;
    assert(read > SLOTS / 2, `it read ${read} rows`);
  });
});

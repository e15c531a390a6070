// One backend killed with -9 makes Postgres restart and empties every UNLOGGED table. Twenty times in a row, while
// buyers go on buying; and the same against the plain design, which must be seen to lose.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { startProxy } from '../../chaos/proxy.ts';
import { createRandom } from '../../chaos/random.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../support/databases.ts';
import { brokenPromises, type ClaimRow, type ClaimsRun, type SlotRow } from '../support/history.ts';
import { openSession } from '../support/sessions.ts';
import { type Shop, startShop } from './shop.ts';

const KILLS = 20;
const CAPACITY = 4_000;
const SALES_BETWEEN_KILLS = 60;
const BUYERS = 4;
const BATCH = 5;

/** Kills the backend of one buyer and waits for selling to go on. The time it took, in ms. */
async function killOneBackend(database: TestDatabase, shop: Shop): Promise<number> {
  const client = await openClient(database.url);
  client.on('error', () => undefined);
  const { rows } = await client.query<{ pid: number }>(
    `select pid from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 1`,
  );
  assert(rows[0], 'no buyer is connected');
  const ended = new Promise((resolve) => client.once('end', resolve));
  const killedAt = performance.now();
  process.kill(rows[0].pid, 'SIGKILL');
  // Every connection of the server ends with that one; only then are new sales sales after the crash.
  await ended;
  await shop.answers(SALES_BETWEEN_KILLS);
  return performance.now() - killedAt;
}

describe('a crash of the intake database under load', () => {
  let databases: TestDatabases;
  let database: TestDatabase;
  before(async () => {
    databases = await startDatabases({ db2: false });
    database = databases.db1;
  });
  after(() => databases?.stop());

  async function historyOf(shop: Shop, pool: string): Promise<ClaimsRun> {
    const session = await openSession(database.url);
    try {
      return {
        capacity: CAPACITY,
        told: shop.told,
        claims: await session.rows<ClaimRow>(
          `select claim_id as "claimId", request_id as "requestId", slot_id as "slotId", freed_at is null as live
           from public.claims where pool_id = $1`,
          [pool],
        ),
        slots: await session.rows<SlotRow>(
          'select id as "slotId", status from public.inventory_slots where pool_id = $1',
          [pool],
        ),
        queued: (
          await session.rows<{ claim_id: string }>(
            `select message ->> 'claim_id' as claim_id from pgmq.q_intake_queue where message ->> 'pool_id' = $1`,
            [pool],
          )
        ).map((row) => row.claim_id),
      };
    } finally {
      await session.close();
    }
  }

  test(`${KILLS} times kill -9 of one backend: nothing acknowledged is lost, nothing sold twice, no false "sold out"`, async (t) => {
    const pool = 'crash';
    const setup = await openClient(database.url);
    await putOnSale(setup, pool, CAPACITY);
    await setup.end();
    const shop = startShop({
      url: () => database.url,
      buyers: BUYERS,
      // One buyer in four is a server that claims for several people at once.
      ask: async (session, requestIds) => {
        if (requestIds.length === 1) return [await session.claim(pool, 'buyer', requestIds[0])];
        const answers = await session.batch(requestIds.map((request) => ({ pool, user: 'buyer', request })));
        return answers.map(({ outcome, resource_id }) => (outcome === 'busy' ? undefined : resource_id));
      },
      batchSize: (buyer) => (buyer === 0 ? BATCH : 1),
    });
    const outages: number[] = [];
    try {
      await shop.answers(SALES_BETWEEN_KILLS);
      for (let kill = 0; kill < KILLS; kill++) outages.push(await killOneBackend(database, shop));
      assert(shop.told.length < CAPACITY, 'the pool must last until the end of the kills');
      await shop.soldOut;
    } finally {
      await shop.close();
    }
    t.diagnostic(`selling again after at most ${Math.round(Math.max(...outages))} ms`);
    const history = await historyOf(shop, pool);
    assert.deepEqual(brokenPromises(history), {});
    assert.equal(history.claims.length, CAPACITY, 'in the end everything was sold');
  });

  test('the plain design loses in the same run, and the checkers see it', async () => {
    const setup = await openClient(database.url);
    await setup.query(readFileSync(new URL('../../bench/sql/baseline.sql', import.meta.url), 'utf8'));
    await setup.query(
      `insert into plain.inventory_slots (pool_id) select 'plain' from generate_series(1, $1::int)`,
      [CAPACITY],
    );
    await setup.end();
    const shop = startShop({
      url: () => database.url,
      buyers: BUYERS,
      // It knows no request ids; the buyer's name stands for one.
      ask: async (session, [requestId]) => [
        await session.value(`select plain.claim_resource_and_queue('plain', $1)`, [requestId]),
      ],
      batchSize: () => 1,
    });
    try {
      await shop.answers(SALES_BETWEEN_KILLS);
      await killOneBackend(database, shop);
    } finally {
      await shop.close();
    }
    const session = await openSession(database.url);
    const slots = await session.rows<SlotRow & { user: string }>(
      'select id as "slotId", status, locked_by as user from plain.inventory_slots',
    );
    await session.close();
    const claims = slots
      .filter((slot) => slot.status === 'RESERVED')
      .map(({ slotId, user }) => ({ claimId: slotId, requestId: user, slotId, live: true }));
    const broken = brokenPromises({ capacity: CAPACITY, told: shop.told, claims, slots, queued: [] });
    assert(broken.I1, 'acknowledged claims must be gone');
    const slotTrouble = broken.I5?.join('\n') ?? '';
    assert.match(slotTrouble, /"sold out"/, 'buyers must have been told "sold out" though slots remained');
    assert.match(slotTrouble, /slots instead of/, 'slots must be gone');
  });

  test('an immediate stop and a restart under load keep every promise too', async () => {
    const pool = 'restart';
    const setup = await openClient(database.url);
    await putOnSale(setup, pool, CAPACITY);
    await setup.end();
    const shop = startShop({
      url: () => database.url,
      buyers: BUYERS,
      ask: async (session, [requestId]) => [await session.claim(pool, 'buyer', requestId)],
      batchSize: () => 1,
    });
    try {
      await shop.answers(SALES_BETWEEN_KILLS);
      await database.stop('immediate');
      database = await database.restart();
      await shop.answers(SALES_BETWEEN_KILLS);
      await database.stop('immediate');
      database = await database.restart();
      await shop.soldOut;
    } finally {
      await shop.close();
    }
    assert.deepEqual(brokenPromises(await historyOf(shop, pool)), {});
  });

  for (const [when, claimsBefore] of [
    ['before the commit', 0],
    ['after the commit', 1],
  ] as const) {
    test(`a claim whose connection was cut ${when} is exactly one claim after the retry`, async () => {
      const pool = `cut ${when}`;
      const direct = await openSession(database.url);
      const wire = await startProxy(() => database.port, createRandom(0));
      const mine = () =>
        direct.rows<{ slot_id: string }>('select slot_id from public.claims where pool_id = $1', [pool]);
      try {
        await putOnSale(direct.client, pool, 5);
        const cut = await openSession(database.url.replace(/:\d+\//, `:${wire.port}/`));
        if (claimsBefore === 0) await cut.client.query('begin');
        wire.begin({ kind: 'cut-after-request', probability: 1 });
        await assert.rejects(cut.claim(pool, 'buyer', 'in doubt'), /terminated/);
        assert.equal((await mine()).length, claimsBefore);
        // The server has to notice that its client is gone; the row lock of the open claim tells when it has.
        const slot = await direct.claim(pool, 'buyer', 'in doubt');
        assert.equal(await direct.claim(pool, 'buyer', 'in doubt'), slot);
        assert.deepEqual(await mine(), [{ slot_id: slot }]);
      } finally {
        await wire.close();
        await direct.close();
      }
    });
  }
});

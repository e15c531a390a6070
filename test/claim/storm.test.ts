// Many sessions do everything at once; afterwards all that is free is sold, and nothing was sold twice.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { chooseSeed, type Random, seededRandom } from '../support/load.ts';
import { ASKING, askUntilAnswered, closeAll, openSessions, type Session } from '../support/sessions.ts';

const SESSIONS = 10;
const CAPACITY = 60;
const STEPS = 150;
const BATCH = 8;
const ROUNDS = 150;

/** Waits for all work, also after the first failure: none of it may still run when the next test begins. */
async function allOf<T>(work: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

describe('a storm', () => {
  let databases: TestDatabases;
  let observer: Session;
  let crowd: Session[] = [];

  before(async () => {
    databases = await startDatabases({ db2: false });
    [observer, ...crowd] = (await openSessions(databases.db1.url, SESSIONS + 1)) as [Session, ...Session[]];
  });
  after(async () => {
    await closeAll([observer, ...crowd].filter((session) => session !== undefined));
    await databases?.stop();
  });

  const count = (sql: string, pool: string) => observer.value<number>(sql, [pool]);
  const assertSoldOnce = async (pool: string, capacity: number) => {
    const live = 'from public.claims where pool_id = $1 and freed_at is null';
    assert.equal(await count(`select count(*)::int ${live}`, pool), capacity, 'live claims');
    assert.equal(await count(`select count(distinct slot_id)::int ${live}`, pool), capacity, 'slots sold');
    assert.equal(
      await count(`select count(*)::int from pgmq.q_intake_queue where message ->> 'pool_id' = $1`, pool),
      capacity,
      'messages',
    );
    assert.equal(
      await count(
        `select count(*)::int from public.inventory_slots where pool_id = $1 and status = 'RESERVED'`,
        pool,
      ),
      capacity,
      'reserved slots',
    );
  };

  /** Any live claim; several sessions may pick the same one. */
  const someClaim = (pool: string) => `(select c.claim_id from public.claims c
    where c.pool_id = '${pool}' and c.freed_at is null offset $1 limit 1)`;

  async function step(session: Session, pool: string, random: Random): Promise<void> {
    const dice = random();
    const user = `user ${random.below(1000)}`;
    if (dice < 0.3) {
      await ASKING.single(session, pool, user, `r${random.below(200)}-${user}`);
    } else if (dice < 0.45) {
      await session.client.query('begin');
      await ASKING.single(session, pool, user).finally(() => session.client.query('rollback'));
    } else if (dice < 0.6) {
      const rollsBack = random() < 0.3;
      await session.client.query('begin');
      const requests = Array.from({ length: 1 + random.below(BATCH) }, () => ({ pool, user }));
      await session.batch(requests).finally(() => session.client.query(rollsBack ? 'rollback' : 'commit'));
    } else if (dice < 0.9) {
      await session.rows(`select intake.give_back_claim(${someClaim(pool)})`, [random.below(CAPACITY)]).catch(
        // The claim was gone before the call arrived.
        (error) => assert.equal(error.code, 'SL008', error.message),
      );
    } else if (dice < 0.95) {
      await session.client.query(
        `update public.claims set hold_until = now() - interval '1 second'
         where claim_id = ${someClaim(pool)} and freed_at is null`,
        [random.below(CAPACITY)],
      );
      await session.value('select public.expire_holds(5)');
    } else {
      await session.value('select public.reap_orphaned_slots()');
    }
  }

  test('of claims, rollbacks, releases, expiries and batches leaves every free slot for sale, once', async (t) => {
    const seed = chooseSeed();
    t.diagnostic(`SLUICE_TEST_SEED=${seed}`);
    const pool = 'storm';
    await putOnSale(observer.client, pool, CAPACITY);
    await allOf(
      crowd.map(async (session, at) => {
        const random = seededRandom(seed + at);
        for (let done = 0; done < STEPS; done++) await step(session, pool, random);
      }),
    );
    while ((await ASKING.single(observer, pool, 'last')).slot !== null);
    await assertSoldOnce(pool, CAPACITY);
  });

  test('of batches and single claims at the end of a pool sells it all and never deadlocks', async () => {
    const slots = 8;
    for (let round = 0; round < ROUNDS; round++) {
      const pool = `end_${round}`;
      await putOnSale(observer.client, pool, slots);
      const outcomes = await allOf(
        crowd.slice(0, 8).map(async (session, at) => {
          // Some ask for the same request as others, as a buyer does who clicks twice.
          const request = (n: number) => `r${(at * 3 + n) % 20}`;
          if (at < 2) {
            const requests = Array.from({ length: 6 }, (_, n) => ({ pool, user: 'u', request: request(n) }));
            return (await session.batch(requests)).map((answer) => answer.outcome);
          }
          return [(await ASKING.single(session, pool, 'u', request(0))).outcome];
        }),
      );
      for (const outcome of outcomes.flat())
        assert(['claimed', 'same', 'busy', 'sold_out'].includes(outcome), outcome);
      for (let more = 0; more < slots; more++)
        await askUntilAnswered(() => ASKING.single(observer, pool, 'u', `more ${more}`));
      await assertSoldOnce(pool, slots);
    }
  });
});

// Who holds one lock and wants another must want them in the same order as everybody else.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { putOnSale } from '../door/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, openSessions, type Session, waitsFor } from '../support/sessions.ts';

describe('a batch over several pools', () => {
  let databases: TestDatabases;
  let observer: Session;
  let batcher: Session;
  let expirer: Session;
  let third: Session;

  before(async () => {
    databases = await startDatabases({ db2: false });
    [observer, batcher, expirer, third] = (await openSessions(databases.db1.url, 4)) as [
      Session,
      Session,
      Session,
      Session,
    ];
  });
  after(async () => {
    await closeAll([observer, batcher, expirer, third].filter((session) => session !== undefined));
    await databases?.stop();
  });

  test('declares them sold out while holds in all of them expire, and neither is a deadlock', async () => {
    await putOnSale(observer.client, 'b', 1, { max_per_user: 5 });
    await putOnSale(observer.client, 'a', 1);
    for (const pool of ['a', 'b']) {
      await observer.claim(pool, 'owner');
      // The hold of pool b runs out first, so that an expiry meets it first.
      await observer.client.query(
        `update public.claims set hold_until = now() - case pool_id when 'a' then '1 s' else '2 s' end::interval
         where pool_id = $1`,
        [pool],
      );
    }
    // Stops the batch between the two pools: it has then declared a, and not yet looked at b.
    await third.client.query('begin');
    await third.client.query(`select pg_advisory_xact_lock(intake.user_lock_key('b', 'buyer'))`);
    const batch = batcher.batch([
      { pool: 'a', user: 'buyer' },
      { pool: 'b', user: 'buyer' },
    ]);
    const batchSettled = Promise.allSettled([batch]);
    await waitsFor(observer, batcher, third);
    const expiry = expirer.value<number>('select public.expire_holds()');
    const expirySettled = Promise.allSettled([expiry]);
    await waitsFor(observer, expirer, batcher);
    await third.client.query('commit');
    await Promise.all([batchSettled, expirySettled]);
    assert.equal(await expiry, 2);
    assert.equal((await batch).find((answer) => answer.ordinal === 1)?.outcome, 'sold_out');
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { scannedBy } from '../support/scans.ts';
import { openSession, type Session } from '../support/sessions.ts';

const MINUTES = 43_200;
/** Seen: 17. An hour of 50 pools, and 30 days of minutes with four pools that sell all the time. */
const MOST_MB = 20;

describe('what sampling costs', () => {
  let databases: TestDatabases;
  let db1: Session;
  let db2: Session;
  before(async () => {
    databases = await startDatabases();
    [db1, db2] = [await openSession(databases.db1.url), await openSession(databases.db2.url)];
    await db1.rows(`insert into public.inventory_slots (pool_id)
      select 'pool ' || i from generate_series(1, 50) i, generate_series(1, 1000)`);
    await db1.rows(`select public.claim_batch(array_fill('pool ' || i, array[200]), array_agg('u' || n), array_agg('r' || i || '-' || n))
      from generate_series(1, 50) i, generate_series(1, 200) n group by i`);
    await db2.rows(`insert into public.confirmed_tickets (resource_id, pool_id, user_id, claim_id)
      select gen_random_uuid(), 'pool ' || i % 50, 'u', gen_random_uuid() from generate_series(1, 200000) i`);
    for (const db of [db1, db2]) await db.rows('vacuum analyze');
  });
  after(async () => {
    await Promise.all([db1?.close(), db2?.close()]);
    await databases?.stop();
  });

  const take = `select count(public.take_sample('[]', timestamptz '2026-03-01 10:00:00+00' + i * interval '2 seconds'))
    from generate_series($1::int, $2::int) i`;

  it('reads no large table from end to end', async () => {
    const intake = ['public.claims', 'public.inventory_slots', 'public.slot_manifest', 'audit.audit_logs'];
    const scanned = await scannedBy(db1, () => db1.rows(take, [100, 105]), intake);
    assert.deepEqual(
      Object.values(scanned),
      intake.map(() => 0),
    );
    const ledger = ['public.webhook_events', 'audit.audit_logs'];
    assert.deepEqual(Object.values(await scannedBy(db2, () => db2.rows(take, [100, 105]), ledger)), [0, 0]);
    const control = await scannedBy(db1, () => db1.rows('select count(end_reason) from public.claims'), [
      'public.claims',
    ]);
    assert((control['public.claims'] ?? 0) >= 10_000, 'which it would see');
  });

  it('is a few megabytes for an hour and 30 days', async (t) => {
    const client = await openClient(databases.db1.url);
    try {
      await client.query('truncate audit.minute_samples, audit.samples');
      await client.query(take, [1, 1_800]);
      await client.query(
        `insert into audit.minute_samples
         select timestamptz '2026-01-01' + i * interval '1 minute', 30, i, i, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
           jsonb_build_object('pool a', array[i, 1, 2], 'pool b', array[i, 1, 2], 'lane 1', array[i, 2], 'lane 2', array[i, 2])
         from generate_series(1, $1::int) i`,
        [MINUTES],
      );
      const { rows } = await client.query(
        `select round((pg_total_relation_size('audit.minute_samples') + pg_total_relation_size('audit.samples')) / 1e6)::int as mb`,
      );
      t.diagnostic(`${rows[0].mb} MB`);
      assert(rows[0].mb <= MOST_MB, `${rows[0].mb} MB`);
    } finally {
      await client.end();
    }
  });
});

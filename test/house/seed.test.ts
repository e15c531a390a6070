import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import pg from 'pg';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const SEED = readFileSync(new URL('../../db1/supabase/seed.sql', import.meta.url), 'utf8');

let databases: TestDatabases;
let client: pg.Client;

before(async () => {
  databases = await startDatabases({ db2: false, seed: true });
  client = new pg.Client({ connectionString: databases.db1.url });
  await client.connect();
});

after(async () => {
  await client.end();
  await databases.stop();
});

async function slotsEverPutOnSale(): Promise<number> {
  const { rows } = await client.query<{ count: number }>('select count(*)::int from public.slot_manifest');
  return rows[0]?.count ?? 0;
}

test('a fresh database has the demo pool with 1,000 slots for sale', async () => {
  const { rows } = await client.query(
    'select pool_id, status, count(*)::int from public.inventory_slots group by 1, 2',
  );
  assert.deepEqual(rows, [{ pool_id: 'demo_concert_2026', status: 'AVAILABLE', count: 1000 }]);
});

test('the seed run again adds nothing', async () => {
  await client.query(SEED);
  assert.equal(await slotsEverPutOnSale(), 1000);
});

test('the seed run on a pool whose slots a crash has emptied adds no second set of slots', async () => {
  await client.query('truncate public.inventory_slots');
  await client.query(SEED);
  assert.equal(await slotsEverPutOnSale(), 1000);
});

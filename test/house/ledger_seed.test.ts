import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import pg from 'pg';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const SEED = readFileSync(new URL('../../db2/supabase/seed.sql', import.meta.url), 'utf8');

let databases: TestDatabases;
let client: pg.Client;

before(async () => {
  databases = await startDatabases({ db1: false, seed: true });
  client = new pg.Client({ connectionString: databases.db2.url });
  await client.connect();
});

after(async () => {
  await client.end();
  await databases.stop();
});

async function ticketsOf(user: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'select count(*)::int from public.confirmed_tickets where user_id = $1',
    [user],
  );
  return rows[0]?.count ?? 0;
}

test('the sample ticket of the seed is there once its comment is taken off, and not before', async () => {
  assert.equal(await ticketsOf('test_user_1'), 0);
  const sample = SEED.slice(SEED.indexOf('-- insert')).replaceAll(/^-- /gm, '');
  assert.match(sample, /^insert into/);
  await client.query(sample);
  assert.equal(await ticketsOf('test_user_1'), 1);
});

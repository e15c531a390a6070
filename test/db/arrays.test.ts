// Lists arrive in Postgres as they were, whatever their members hold.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const PLAIN = [
  '',
  'ann',
  ' spaces ',
  'a,b',
  '{a}',
  "it's",
  'NULL',
  'null',
  'Jörg',
  '注文',
  '\u2028',
  '\u007f',
  '👍',
];
const ESCAPED = ['"quoted"', 'back\\slash', '\\n', 'line\nfeed', 'tab\t', '\u0001'];

let databases: TestDatabases;
let database: Database;
let client: pg.Client;

before(async () => {
  databases = await startDatabases({ db2: false });
  const { url } = databases.db1;
  client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const type of ['text', 'bigint', 'boolean'])
    await client.query(
      `create function public.echo_${type}(p_list ${type}[]) returns setof ${type} language sql as 'select unnest(p_list)'`,
    );
  database = createDatabase({ url, max: 1, applicationName: 'test', log: createLog('error') });
});

after(async () => {
  await Promise.all([database.end(), client.end()]);
  await databases.stop();
});

async function echo(type: string, list: readonly unknown[]): Promise<unknown[]> {
  const rows = await database.call<Record<string, unknown>>(`public.echo_${type}`, { p_list: list });
  return rows.map((row) => row[`echo_${type}`]);
}

test('texts arrive as they were, with and without characters that need an escape', async () => {
  for (const list of [PLAIN, ESCAPED, [...PLAIN, ...ESCAPED, null], [null], []])
    assert.deepEqual(await echo('text', list), list);
});

test('without the look for escapes a line feed would arrive as a letter', async () => {
  const { rows } = await client.query('select public.echo_text($1)', [
    `{${JSON.stringify(['line\nfeed']).slice(1, -1)}}`,
  ]);
  assert.deepEqual(rows, [{ echo_text: 'linenfeed' }]);
});

test('numbers and booleans arrive as they were', async () => {
  const numbers = [0, -1, 1_099_511_627_776, Number.MAX_SAFE_INTEGER, null];
  assert.deepEqual(await echo('bigint', numbers), numbers);
  assert.deepEqual(await echo('boolean', [true, false, null]), [true, false, null]);
});

test('what is not a number is refused and does not become null', async () => {
  for (const number of [Number.NaN, Number.POSITIVE_INFINITY])
    await assert.rejects(echo('bigint', [number]), /invalid input syntax/);
});

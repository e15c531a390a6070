import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import { LEFT_BEHIND, SEQUENCES, TABLES } from '../../src/transfer/tables.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('the lists of what an export carries', () => {
  let databases: TestDatabases;

  before(async () => {
    databases = await startDatabases();
  });
  after(() => databases.stop());

  for (const side of ['db1', 'db2'] as const) {
    test(`name every table and sequence of ${side}, as carried or as left behind`, async () => {
      const { rows } = await withClient(databases[side].url, (client) =>
        client.query(
          `select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
           where c.relkind in ('r', 'p', 'S')
             and (n.nspname in ('public', 'intake', 'audit', 'webhook', 'calls') or c.relname ~ '^[qa]_(intake|event_inbox)')`,
        ),
      );
      const found: string[] = rows.map(({ name }) => name);
      // A table that this checkout has under an earlier name counts as found where it stands.
      const carried = TABLES[side].map(({ homes }) => homes.find((home) => found.includes(home)));
      const named = [...carried, ...SEQUENCES[side], ...Object.keys(LEFT_BEHIND[side])];
      assert.deepEqual(named.sort(), found.sort());
    });
  }
});

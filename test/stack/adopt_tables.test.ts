// What `migrate --adopt` makes of an existing table is what the migrations make of none.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { findTable, labelsOf } from '../../src/migrate/adopt/catalog.ts';
import { lookAtAdoption } from '../../src/migrate/adopt/look.ts';
import { ADOPTED_TABLES, STATUS_TYPE, STATUSES } from '../../src/migrate/adopt/tables.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('the tables that can be adopted', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  before(async () => {
    databases = await startDatabases({ db1: false });
    client = await openClient(databases.db2.url);
  });
  after(async () => {
    await client.end();
    await databases.stop();
  });

  for (const { name, columns, unique, checks } of ADOPTED_TABLES)
    it(`${name} has the columns and rules that the migrations give it`, async () => {
      const there = await findTable(client, name);
      assert.deepEqual(
        columns.map(({ name: column, type, isRequired = false }) => [column, type, isRequired]).sort(),
        there?.columns.map(({ name: column, type, isRequired }) => [column, type, isRequired]).sort(),
      );
      const rules = there?.constraints
        .filter(({ kind }) => kind === 'c' || kind === 'u')
        .map((one) => one.name);
      const keys = Object.entries(unique).filter(([, { isIndex }]) => !isIndex);
      assert.deepEqual([...Object.keys(checks), ...keys.map(([key]) => key)].sort(), rules?.sort());
    });

  it('have the statuses of the migration', async () => {
    assert.deepEqual(await labelsOf(client, STATUS_TYPE), [...STATUSES]);
  });

  it('need no step where they are ours already, but for the functions that the migrations make', async () => {
    const { steps, obstacles } = await lookAtAdoption(client);
    assert.deepEqual(obstacles, []);
    assert.deepEqual(
      steps.filter(({ what }) => !what.startsWith('function ')).map(({ what }) => what),
      // Defaults that keep writers of the requirement working.
      ['actor', 'action', 'subject'].map((column) => `audit.audit_logs: column ${column} gets a default`),
    );
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import { findHomes, insertRows } from '../../src/transfer/store.ts';
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

  test('take the rest of a hold out of the total of refunds of an earlier version, and no other total', async () => {
    const told = { provider: 'stripe', told: 'succeeded', occurred_at: '2026-01-01', arrival: '1' };
    const paid = { last_event_id: 'evt_1', currency: 'usd', captured: '600', amount: '600', held: '1000' };
    const rows: Record<string, string | null>[] = [
      {
        ...told,
        ...paid,
        object_id: 'pi_1',
        refund_told: '500',
        refund_told_at: '2026-01-02',
        refunded: '100',
      },
      {
        ...told,
        ...paid,
        object_id: 'pi_2',
        refund_told: '500',
        refund_told_at: '2026-01-02',
        refunded: '500',
        held: null,
      },
    ];
    const names = Object.keys(rows[0] ?? {});
    await withClient(databases.db2.url, async (client) => {
      const totalsOf = async (version: Record<string, string>) => {
        const columns = [...names, ...Object.keys(version)];
        const table = rows.map((row) => columns.map((name) => ({ ...row, ...version })[name] ?? null));
        await client.query('begin');
        const home = (await findHomes(client, TABLES.db2)).find(({ table: { name } }) => name === 'payments');
        assert.ok(home);
        await insertRows(client, home, columns, table);
        const found = await client.query(
          'select refund_told::int as total from public.payments order by object_id',
        );
        await client.query('rollback');
        return found.rows.map(({ total }) => total);
      };
      assert.deepEqual(await totalsOf({}), [100, 500]);
      assert.deepEqual(await totalsOf({ adopted: '0' }), [500, 500]);
    });
  });
});

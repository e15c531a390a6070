// docs/personal_data.md against the catalogs of both databases.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { OF_NOBODY, type Side, tablesWithText, WITHOUT_USERS } from './personal_tables.ts';

const PAGE = readFileSync(join(PROJECT, 'docs', 'personal_data.md'), 'utf8');
const HEAD = '| what | where | about a person | why | for how long |';

/** The second cell of each row of the table. */
const PLACES = (PAGE.split(`${HEAD}\n`)[1]?.split('\n\n')[0] ?? '')
  .split('\n')
  .slice(1)
  .map((row) => row.split('|')[2] ?? '');
const WITHOUT_PERSONS =
  /^These tables hold nothing about a person: [\s\S]*?\n\n/m.exec(PAGE)?.[0] ?? 'the paragraph is gone';
const namesIn = (text: string): string[] => [...text.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name);
/** As the page writes it. */
const written = (table: string): string => table.replace(/^public\./, '');

describe('the page about personal data', () => {
  let databases: TestDatabases;
  const tables: Record<Side, string[]> = { db1: [], db2: [] };
  before(async () => {
    databases = await startDatabases();
    for (const side of ['db1', 'db2'] as const) {
      const client = await openClient(databases[side].url);
      tables[side] = await tablesWithText(client);
      await client.end();
    }
  });
  after(() => databases?.stop());

  const isOfNobody = (side: Side, table: string): boolean => OF_NOBODY.has(WITHOUT_USERS[side][table] ?? '');

  for (const side of ['db1', 'db2'] as const) {
    it(`says of each table of ${side} with something about a person what it is, why and for how long`, () => {
      const ofSide = PLACES.filter((where) => new RegExp(`^ (both|${side.toUpperCase()})\\b`).test(where));
      const told = ofSide.flatMap(namesIn);
      const held = tables[side].filter((table) => !isOfNobody(side, table)).map(written);
      assert(held.length > 10);
      assert.deepEqual(told.toSorted(), held.toSorted());
    });

    it(`names every other table of ${side} as one that holds nothing about a person`, () => {
      const told = new Set(namesIn(WITHOUT_PERSONS));
      const others = tables[side].filter((table) => isOfNobody(side, table)).map(written);
      assert.deepEqual(
        others.filter((table) => !told.has(table)),
        [],
      );
    });
  }

  it('names no table there that neither database has', () => {
    const known = new Set([...tables.db1, ...tables.db2].map(written));
    // Which versions of the extensions have it differs.
    const optional = ['pgmq.notify_insert_throttle', 'pgmq.topic_bindings'];
    assert.deepEqual(
      namesIn(WITHOUT_PERSONS).filter((name) => !known.has(name) && !optional.includes(name)),
      [],
    );
  });
});

// Supabase's advisors, said again as queries of our own: each rule in advisors/ is a query that must return no rows, on both
// databases, and each is shown a database that breaks it.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { sqlBeside } from './matrix.ts';
import { OFFENCES, type Side } from './offences.ts';

const SIDES: readonly Side[] = ['db1', 'db2'];
/** Rules about what only one database has. */
const ONLY: Record<string, Side> = { secret_in_work_tables: 'db1' };

const rules = readdirSync(new URL('./advisors', import.meta.url)).map((file) => file.replace(/\.sql$/, ''));

const offencesFound = async (session: Session, rule: string): Promise<string[]> =>
  (await session.rows<{ offence: string }>(sqlBeside(`./advisors/${rule}.sql`))).map(
    ({ offence }) => offence,
  );

describe('the advisors', () => {
  let databases: TestDatabases;
  const session = {} as Record<Side, Session>;

  before(async () => {
    databases = await startDatabases();
    for (const side of SIDES) session[side] = await openSession(databases[side].url);
  });
  after(async () => {
    for (const side of SIDES) await session[side]?.close();
    await databases?.stop();
  });

  test('every rule has an offence to prove it by', () => {
    assert.deepEqual(Object.keys(OFFENCES).toSorted(), rules.toSorted());
  });

  for (const rule of rules) {
    for (const side of SIDES.filter((each) => (ONLY[rule] ?? each) === each)) {
      test(`no ${rule.replaceAll('_', ' ')} in ${side}`, async () => {
        assert.deepEqual(await offencesFound(session[side], rule), []);
      });

      const offences = (OFFENCES[rule] ?? []).filter(({ only }) => (only ?? side) === side);
      for (const [at, { breaks, names }] of offences.entries()) {
        test(`the rule against ${rule.replaceAll('_', ' ')} finds offence ${at + 1} in ${side}`, async () => {
          await session[side].client.query('begin');
          try {
            await session[side].client.query(breaks);
            const found = await offencesFound(session[side], rule);
            assert(
              found.some((offence) => names.test(offence)),
              `it found ${JSON.stringify(found)} after: ${breaks}`,
            );
          } finally {
            await session[side].client.query('rollback');
          }
        });
      }
    }
  }

  test('what was broken to prove the rules is whole again', async () => {
    for (const rule of rules) {
      for (const side of SIDES.filter((each) => (ONLY[rule] ?? each) === each))
        assert.deepEqual([rule, side, await offencesFound(session[side], rule)], [rule, side, []]);
    }
  });
});

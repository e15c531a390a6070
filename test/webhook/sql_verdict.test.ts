// The error table has two halves, TypeScript's and SQL's: they must say the same of every SQLSTATE.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ERROR_KINDS } from '#core/errors.ts';
import { MEANINGS, meaningOf } from '#core/failure.ts';
import { verdictOf } from '#core/webhook/verdict.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession } from '../support/sessions.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Every SL code that a migration raises, or catches. */
function raisedInSql(): Set<string> {
  const states = new Set<string>();
  for (const side of ['db1', 'db2']) {
    const folder = join(ROOT, side, 'supabase', 'migrations');
    for (const file of readdirSync(folder))
      for (const [, state = ''] of readFileSync(join(folder, file), 'utf8').matchAll(
        /(?:errcode = |sqlstate )'(SL\w{3})'/g,
      ))
        states.add(state);
  }
  return states;
}

const ownStates = [...MEANINGS.keys()].filter((state) => /^SL\d{3}$/.test(state));

describe('the error table', () => {
  it('has every SQLSTATE of our own that SQL raises, and no other', () => {
    // SL034 is for handlers that users write: ours wait for nothing.
    assert.deepEqual([...raisedInSql(), 'SL034'].sort(), ownStates.sort());
    for (const state of ['SL034', 'SL099']) assert.ok(ownStates.includes(state), state);
  });

  it('names an answer that exists for each', () => {
    for (const [state, { answer }] of MEANINGS) assert.ok(ERROR_KINDS[answer], `${state}: ${answer}`);
  });
});

describe('the verdict on an event', () => {
  let databases: TestDatabases;
  before(async () => {
    databases = await startDatabases({ db1: false });
  });
  after(() => databases.stop());

  it('is the same in SQL and in TypeScript, for each entry of the table and its neighbours', async () => {
    const session = await openSession(databases.db2.url);
    // As a statement says it: a refused login is nothing that a handler in SQL can meet.
    const states = [...MEANINGS.keys()]
      .filter((state) => !state.startsWith('PGRST'))
      .flatMap((state) => ['0', 'P', 'Z', '1'].map((fill) => state.padEnd(5, fill)));
    states.push('28000', '3D000', 'P0001', '0A000', '00000', '25001', '57000', '40002', '55000');
    const rows = await session.rows<{ state: string; verdict: string }>(
      'select s as state, webhook.verdict(s) as verdict from unnest($1::text[]) s',
      [states],
    );
    await session.close();
    assert.equal(rows.length, states.length);
    for (const { state, verdict } of rows) {
      const error = Object.assign(new Error('x'), { code: state, severity: 'ERROR' });
      assert.equal(verdictOf(error), verdict, `${state}, blamed on: ${meaningOf(error).blame}`);
    }
  });
});

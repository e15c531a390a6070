import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import type { Outcome } from '../run/outcome.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { runTapFile } from './run_file.ts';

let databases: TestDatabases;
let folder: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-pgtap-'));
  databases = await startDatabases({ db1: false });
  await withClient(databases.db2.url, (client) =>
    client.query('create extension if not exists pgtap with schema extensions'),
  );
});

after(async () => {
  await databases.stop();
  rmSync(folder, { recursive: true });
});

function run(sql: string): Promise<Outcome> {
  writeFileSync(join(folder, 'a.test.sql'), sql);
  return runTapFile(folder, 'a.test.sql', databases.db2.url);
}

test('a file written for supabase test db passes, and leaves nothing behind', async () => {
  const file = `begin;
select plan(2);
create table public.left_behind ();
select has_table('public', 'left_behind', 'the table is there');
select throws_ok($$ select 1 / 0; $$, '22012');
select * from finish();
rollback;
`;
  assert.deepEqual(await run(file), { passed: 2, failures: [], skips: [] });
  assert.deepEqual(await run(file), { passed: 2, failures: [], skips: [] });
});

test('a failing test is reported with its line and what pgTAP says about it', async () => {
  const { passed, failures } = await run(`begin;
select plan(2);
select ok(true, 'fine');

select is(1, 2, 'one is two');
select * from finish();
rollback;
`);
  assert.equal(passed, 1);
  assert.equal(failures.length, 1);
  assert.equal(failures[0]?.name, 'a.test.sql:5: one is two');
  assert.match(failures[0]?.detail ?? '', /have: 1[\s\S]*want: 2/);
});

test('an error names its line, SQLSTATE and statement, and the tests that did not run are missed', async () => {
  const { passed, failures } = await run(`begin;
select plan(2);
select ok(true, 'fine');
select no_such_function();
select ok(true, 'never reached');
rollback;
`);
  assert.equal(passed, 1);
  assert.deepEqual(
    failures.map((failure) => failure.name),
    ['a.test.sql:4', 'a.test.sql: plan'],
  );
  assert.match(failures[0]?.detail ?? '', /SQLSTATE 42883[\s\S]*select no_such_function\(\);/);
});

test('a connection that is cut is a failure, not a hang', async () => {
  const { failures } = await run(`select plan(1);
select pg_terminate_backend(pg_backend_pid());
select ok(true, 'never reached');
`);
  assert.equal(failures[0]?.name, 'a.test.sql:2');
});

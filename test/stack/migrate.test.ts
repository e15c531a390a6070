import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import pg from 'pg';
import { StackError } from '../../src/failure.ts';
import { migrate } from '../../src/migrate/migrate.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('migrate', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let url: string;
  let project: string;
  let count = 0;

  before(async () => {
    databases = await startDatabases({ db1: false });
  });
  after(async () => {
    await client.end();
    await databases.stop();
    rmSync(project, { recursive: true });
  });
  beforeEach(async () => {
    if (client) {
      await client.end();
      rmSync(project, { recursive: true });
    }
    count++;
    await withClient(databases.db2.url, (each) => each.query(`create database try_${count}`));
    url = databases.db2.url.replace(/\/postgres$/, `/try_${count}`);
    client = new pg.Client({ connectionString: url });
    await client.connect();
    project = mkdtempSync(join(tmpdir(), 'sluice-migrate-'));
    mkdirSync(join(project, 'supabase', 'migrations'), { recursive: true });
  });

  const write = (name: string, sql: string) => writeFileSync(join(project, 'supabase', name), sql);

  test('files are applied oldest first and recorded as the Supabase CLI records them', async () => {
    write('migrations/20260102000000_second.sql', 'alter table public.things add column b int;');
    write('migrations/20260101000000_first.sql', 'create table public.things (a int);');
    assert.deepEqual(await migrate(client, project), {
      applied: ['20260101000000_first.sql', '20260102000000_second.sql'],
      seeded: false,
    });
    const { rows } = await client.query(
      'select * from supabase_migrations.schema_migrations order by version',
    );
    assert.deepEqual(rows[0], {
      version: '20260101000000',
      statements: ['create table public.things (a int);'],
      name: 'first',
    });
    assert.equal(rows.length, 2);
  });

  test('a second run applies nothing', async () => {
    write('migrations/1_first.sql', 'create table public.things (a int);');
    await migrate(client, project);
    assert.deepEqual((await migrate(client, project)).applied, []);
  });

  test('runs at the same time take turns: each file is applied once', async () => {
    write('migrations/1_first.sql', 'create table public.things (a int);');
    const results = await Promise.all(
      [1, 2, 3, 4].map(() => withClient(url, (each) => migrate(each, project))),
    );
    assert.deepEqual(
      results.flatMap(({ applied }) => applied),
      ['1_first.sql'],
    );
  });

  test('a file that changed after it was applied is reported, not ignored', async () => {
    write('migrations/1_first.sql', 'create table public.things (a int);');
    await migrate(client, project);
    write('migrations/1_first.sql', 'create table public.things (a bigint);');
    await assert.rejects(migrate(client, project), (error: StackError) => {
      assert.match(error.message, /1_first\.sql differs from the one that was applied/);
      assert.match(error.hint, /sluice export/);
      return true;
    });
  });

  test('a file the Supabase CLI applied, cut into statements, counts as unchanged', async () => {
    write('migrations/1_first.sql', 'create table public.a ();\n\n-- why\ncreate table public.b ();\n');
    await migrate(client, project);
    await client.query(
      `update supabase_migrations.schema_migrations
       set statements = array['create table public.a ()', e'-- why\\ncreate table public.b ()']`,
    );
    assert.deepEqual((await migrate(client, project)).applied, []);
  });

  test('a failing file leaves nothing behind and names the line', async () => {
    write('migrations/1_first.sql', 'create table public.kept ();');
    write('migrations/2_second.sql', 'create table public.gone ();\n\nselect nothing_here;\n');
    await assert.rejects(migrate(client, project), (error: StackError) => {
      assert.ok(error instanceof StackError);
      assert.match(error.message, /2_second\.sql:3: column "nothing_here" does not exist \(42703\)/);
      return true;
    });
    const { rows } = await client.query(
      `select to_regclass('public.kept') is not null as kept, to_regclass('public.gone') is null as gone,
        (select array_agg(version) from supabase_migrations.schema_migrations) as versions`,
    );
    assert.deepEqual(rows[0], { kept: true, gone: true, versions: ['1'] });
  });

  test('the seed runs once in the life of a database, and only when asked for', async () => {
    write('migrations/1_first.sql', 'create table public.things (a int);');
    write('seed.sql', 'insert into public.things values (1);');
    assert.equal((await migrate(client, project)).seeded, false);
    assert.equal((await migrate(client, project, { seed: true })).seeded, true);
    assert.equal((await migrate(client, project, { seed: true })).seeded, false);
    const { rows } = await client.query(
      `select (select count(*)::int from public.things) as things, (select path from supabase_migrations.seed_files)`,
    );
    assert.deepEqual(rows[0], { things: 1, path: 'supabase/seed.sql' });
  });

  test('a file that is not named like a migration is refused', async () => {
    write('migrations/first.sql', 'create table public.things (a int);');
    await assert.rejects(migrate(client, project), /not named like a migration/);
  });
});

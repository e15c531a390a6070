import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { startCluster } from '../../src/stack/postgres.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('the platform', () => {
  let databases: TestDatabases;
  let client: pg.Client;

  before(async () => {
    databases = await startDatabases({ db1: false });
    client = new pg.Client({ connectionString: databases.db2.url });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await databases.stop();
  });

  test('the roles of the API have the attributes Supabase gives them', async () => {
    const { rows } = await client.query(
      `select rolname, rolcanlogin, rolinherit, rolbypassrls from pg_roles
       where rolname in ('anon', 'authenticated', 'service_role', 'authenticator') order by rolname`,
    );
    assert.deepEqual(
      rows.map((row) => Object.values(row)),
      [
        ['anon', false, false, false],
        ['authenticated', false, false, false],
        ['authenticator', true, false, false],
        ['service_role', false, false, true],
      ],
    );
  });

  test('authenticator can become any of the three and nothing else', async () => {
    await withClient(databases.db2.authenticatorUrl, async (authenticator) => {
      for (const role of ['anon', 'authenticated', 'service_role'])
        await authenticator.query(`set role ${role}`);
      await assert.rejects(authenticator.query('set role postgres'), /permission denied/);
    });
  });

  test('many sessions in two databases of one bare cluster may apply it at once', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-platform-'));
    giveToServer(dir);
    const bare = await startCluster({ dir, password: 'test' });
    try {
      await withClient(bare.url, (each) => each.query('create database second'));
      const second = bare.url.replace(/\/postgres$/, '/second');
      const urls = [bare.url, second, bare.url, second, bare.url, second];
      await Promise.all(urls.map((url) => withClient(url, (each) => applyPlatform(each))));
      const { rows } = await withClient(second, (each) =>
        each.query(
          `select to_regprocedure('auth.uid()') is not null as auth, pg_has_role('authenticator', 'anon', 'set') as member,
            to_regprocedure('cron.unschedule(text)') is not null as cron, to_regclass('net._http_response') is not null as net`,
        ),
      );
      assert.deepEqual(rows[0], { auth: true, member: true, cron: true, net: true });
    } finally {
      await bare.stop('immediate');
      rmSync(dir, { recursive: true });
    }
  });

  test('the caller is read from the claims of the token, and is null without one', async () => {
    const sub = '5f0c5bb4-6d0e-4c07-9a4b-0d2f3f1c7a11';
    await client.query('begin');
    assert.deepEqual((await client.query('select auth.uid(), auth.role(), auth.jwt()')).rows[0], {
      uid: null,
      role: null,
      jwt: null,
    });
    const claims = { sub, role: 'authenticated' };
    await client.query(`select set_config('request.jwt.claims', $1, true)`, [JSON.stringify(claims)]);
    assert.deepEqual((await client.query('select auth.uid(), auth.role(), auth.jwt()')).rows[0], {
      uid: sub,
      role: 'authenticated',
      jwt: claims,
    });
    await client.query('rollback');
    await client.query('begin');
    await client.query(`select set_config('request.jwt.claim.sub', $1, true)`, [sub]);
    assert.equal((await client.query('select auth.uid()')).rows[0].uid, sub);
    await client.query('rollback');
  });

  test('a new table is open to anon under the old defaults only', async () => {
    const anonMayRead = async () => {
      await client.query('create table public.probe ()');
      const { rows } = await client.query(
        `select has_table_privilege('anon', 'public.probe', 'select') as may`,
      );
      await client.query('drop table public.probe');
      return rows[0].may;
    };
    assert.equal(await anonMayRead(), false);
    await applyPlatform(client, { defaults: 'old' });
    assert.equal(await anonMayRead(), true);
  });
});

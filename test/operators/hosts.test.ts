import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { callOver } from '#core/edge/rpc.ts';
import { runHere } from '../cli/support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

describe('the list of private hosts', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  const hosts = (...words: string[]) =>
    runHere(['hosts', ...words], { DB1_URL: databases.db1.url, USER: 'root' });
  before(async () => {
    databases = await startDatabases({ seed: false });
    db1 = await openClient(databases.db1.url);
  });
  after(async () => {
    await db1?.end();
    await databases?.stop();
  });

  it('is changed by the owner with one command, and read where a URL is stored and where it is called', async () => {
    const store = `insert into public.engine_config (pool_id, commit_webhook_url) values ('gig', 'http://10.1.2.3:8080/')`;
    await assert.rejects(db1.query(store), { code: 'SL001', hint: /sluice hosts allow/ });
    assert.match((await hosts('list')).stdout, /No private host/);
    assert.match(
      (await hosts('allow', '10.1.2.3:8080', '--reason', 'our shop')).stdout,
      /may have hooks now/,
    );
    assert.match((await hosts('allow', '10.1.2.3:8080')).stdout, /on the list already/);
    await db1.query(store);
    assert.deepEqual(JSON.parse((await hosts('list', '--json')).stdout), { hosts: ['10.1.2.3:8080'] });
    const { rows } = await db1.query(`select allowed_hosts from public.bridge_config('{gig}')`);
    assert.deepEqual(rows[0].allowed_hosts, ['10.1.2.3:8080'], 'what Node and Deno call by');
    assert.match((await hosts('remove', '10.1.2.3:8080')).stdout, /no hooks any more/);
    const audit = await db1.query(
      `select actor, action, reason from audit.audit_logs where subject = 'hook host 10.1.2.3:8080' order by id`,
    );
    assert.deepEqual(audit.rows, [
      { actor: 'owner (root)', action: 'hook_host_allow', reason: 'our shop' },
      { actor: 'owner (root)', action: 'hook_host_disallow', reason: null },
    ]);
    const wrong = await hosts('allow', 'http://10.1.2.3');
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /as in a URL/);
  });

  it('is closed to service_role, which gets no private host past it', async () => {
    const api = await openClient(databases.db1.authenticatorUrl);
    await api.query('set role service_role');
    await assert.rejects(api.query(`select public.allow_hook_host('127.0.0.1', 'me')`), { code: '42501' });
    await assert.rejects(
      api.query(
        `insert into public.engine_config (pool_id, commit_webhook_url) values ('x', 'http://127.0.0.1/')`,
      ),
      { code: 'SL001' },
    );
    await api.end();
    const denied = await runHere(['hosts', 'allow', '127.0.0.1'], {
      DB1_URL: databases.db1.authenticatorUrl,
    });
    assert.equal(denied.code, 1);
    assert.match(denied.stderr, /only the owner of DB1/);
  });
});

describe('the function that a pool commits by', () => {
  let databases: TestDatabases;
  before(async () => {
    databases = await startDatabases({ db2: false, seed: false });
  });
  after(() => databases?.stop());

  it('is an identifier, and no path', async () => {
    const db1 = await openClient(databases.db1.url);
    const store = 'insert into public.engine_config (pool_id, commit_rpc_name) values ($1, $2)';
    for (const name of ['../../../auth/v1/admin/users', 'a/b', 'a b', '', '1a', 'a'.repeat(64), 'a%2fb', 'ä'])
      await assert.rejects(db1.query(store, ['bad', name]), {
        code: '23514',
        constraint: 'commit_rpc_name_is_identifier',
      });
    for (const name of ['finalize_transaction', 'myCommit', '_a1']) await db1.query(store, [name, name]);
    await db1.end();
  });

  it('is encoded where it becomes a path', async () => {
    const asked: string[] = [];
    const call = callOver(() => ({
      rpc: async (name) => {
        asked.push(name);
        return { data: null, error: null, status: 200 };
      },
    }));
    await call('../../../auth/v1/admin/users', {});
    await call('finalize_transaction', {});
    assert.deepEqual(asked, ['..%2F..%2F..%2Fauth%2Fv1%2Fadmin%2Fusers', 'finalize_transaction']);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { runHere } from '../cli/support.ts';
import { openStream } from '../console/support.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  openClient,
  putOnSale,
  startTestServer,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const ZOE = 'Zoë 李 Müller';

describe("an operator's key", () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let db2: pg.Client;
  let env: Record<string, string>;
  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url, USER: 'root' };
    await putOnSale(db1, 'gig', 3);
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await server?.stop();
    await databases?.stop();
  });

  const sluice = (...words: string[]) => runHere(['operators', ...words], env);
  const statusWith = async (key: string) =>
    (await ask(`${server.url}/admin/pools`, { headers: bearer(key) })).status;

  /** Servers know a change within a second. */
  async function until(key: string, status: number): Promise<void> {
    while ((await statusWith(key)) !== status) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  async function newKey(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await sluice(...words, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout).key;
  }

  async function signIn(key: string): Promise<string> {
    const answer = await ask(`${server.url}/admin/session`, { method: 'POST', body: { key } });
    assert.equal(answer.status, 204, answer.text);
    return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  }

  it('is printed once and stored as a hash, and names its holder in the audit log', async () => {
    const key = await newKey('add', ZOE, '--role', 'operator');
    assert.match(key, /^slo_[\w-]{43}$/);
    for (const db of [db1, db2]) {
      const { rows } = await db.query('select o::text as row from audit.operators o');
      assert.equal(rows.length, 1);
      assert(!rows[0].row.includes(key));
    }
    await until(key, 200);
    const change = { method: 'POST', headers: bearer(key), body: { max_per_user: 2, reason: 'fair' } };
    assert.equal((await ask(`${server.url}/admin/pools/gig`, change)).status, 200);
    const forged = { ...change, headers: { ...bearer(key), 'x-operator': 'eve' }, body: { max_per_user: 3 } };
    assert.equal((await ask(`${server.url}/admin/pools/gig`, forged)).status, 200);
    await ask(`${server.url}/admin/pools/gig`, {
      ...forged,
      headers: bearer(ADMIN_KEY),
      body: { max_per_user: 1 },
    });
    const { rows } = await db1.query(
      `select actor from audit.audit_logs where action = 'pool_change' order by id`,
    );
    assert.deepEqual(
      rows.map(({ actor }) => actor),
      [ZOE, ZOE, 'admin'],
    );
  });

  it('is told from others by who the console says is there', async () => {
    const key = await newKey('rotate', ZOE);
    await until(key, 200);
    const cookie = await signIn(key);
    const { json } = await ask(`${server.url}/admin/session`, { headers: { cookie } });
    assert.deepEqual(json, { name: ZOE, role: 'operator' });
  });

  it('ends with its sessions and streams when it is rotated or revoked', async () => {
    const key = await newKey('rotate', ZOE);
    await until(key, 200);
    const cookie = await signIn(key);
    const [byKey, bySession] = await Promise.all([
      openStream(`${server.url}/admin/live`, bearer(key)),
      openStream(`${server.url}/admin/live`, { cookie }),
    ]);
    assert.equal(byKey.response.statusCode, 200);
    const revoked = await sluice('revoke', ZOE, '--yes');
    assert.equal(revoked.code, 0, revoked.stderr);
    await until(key, 401);
    assertRefusal(await ask(`${server.url}/admin/session`, { headers: { cookie } }), 401, 'auth_required');
    for (const stream of [byKey, bySession]) while ((await stream.next()) !== undefined);
    assert.match((await sluice('revoke', ZOE, '--yes')).stdout, /revoked before/);
    assert.match((await sluice('list')).stdout, /Zoë 李 Müller\s+revoked/);
  });

  it('is given anew to one who comes back, with another role; not to a second person of the name', async () => {
    const key = await newKey('add', ZOE, '--role', 'viewer');
    await until(key, 200);
    const second = await sluice('add', ZOE, '--role', 'admin');
    assert.equal(second.code, 1);
    assert.match(second.stderr, /there is an operator/);
    for (const name of ['admin', 'Owner', 'owner (root)', ' x', 'a\nb', '', 'x'.repeat(101)]) {
      const { code, stderr } = await sluice('add', name, '--role', 'viewer');
      assert.notEqual(code, 0, name);
      assert.match(stderr, /hint: /, name);
    }
    assert.equal((await sluice('add', 'ann', '--role', 'king')).code, 2);
    assert.equal((await sluice('rotate', 'unknown')).code, 1);
  });

  it('is known when it was last used, to the minute', async () => {
    const { rows } = await db1.query('select last_used_at from audit.operators');
    assert.notEqual(rows[0].last_used_at, null);
    await db1.query('select public.operator_used($1)', [ZOE]);
    const again = await db1.query('select last_used_at from audit.operators');
    assert.deepEqual(again.rows, rows, 'written once a minute at most');
  });

  it('counts at commands that reach DB2 alone, by the copy there, whose age is told', async () => {
    const key = await newKey('rotate', ZOE);
    const alone = { DB2_URL: databases.db2.url, SLUICE_OPERATOR_KEY: key };
    const list = await runHere(['webhooks', 'list'], alone);
    assert.equal(list.code, 0, list.stderr);
    assert.equal(list.stderr, '');
    const refused = await runHere(['webhooks', 'prune', '--yes'], alone);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /webhooks prune needs the role admin; the key of Zoë 李 Müller has the role viewer/,
    );
    const wrong = await runHere(['webhooks', 'list'], { ...alone, SLUICE_OPERATOR_KEY: 'guess' });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /not the key of an operator/);
    await server.stop();
    await db2.query(`update audit.operators set copied_at = now() - interval '5 minutes'`);
    assert.match((await runHere(['webhooks', 'list'], alone)).stderr, /copy of the operators is 300 s old/);
    server = await startTestServer(databases);
  });

  it('names its holder where the command asks a database itself; without a key that is the owner', async () => {
    const key = await newKey('add', 'Ada', '--role', 'admin');
    const allow = ['webhooks', 'secrets', 'allow'];
    assert.equal((await runHere([...allow, 'ONE_SECRET'], { ...env, SLUICE_OPERATOR_KEY: key })).code, 0);
    assert.equal((await runHere([...allow, 'TWO_SECRET'], env)).code, 0);
    const { rows } = await db2.query(
      `select actor from audit.audit_logs where action = 'secret_name_allow' and subject ~ 'ONE|TWO' order by id`,
    );
    assert.deepEqual(
      rows.map(({ actor }) => actor),
      ['Ada', 'owner (root)'],
    );
  });

  it('is still known while the intake is away', async () => {
    const key = await newKey('rotate', ZOE);
    await until(key, 200);
    await db1.end();
    await databases.db1.stop('immediate');
    assert.equal((await ask(`${server.url}/admin/session`, { headers: bearer(key) })).status, 200);
    assertRefusal(
      await ask(`${server.url}/admin/session`, { headers: bearer('guess') }),
      401,
      'auth_required',
    );
    const list = await runHere(['webhooks', 'list'], { ...env, SLUICE_OPERATOR_KEY: key });
    assert.equal(list.code, 0, list.stderr);
  });
});

// Operators over the admin API, as the console changes them: two servers of the owner, and one with a role of its own.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { ADMIN_KEY, ask, assertRefusal, bearer, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addOperator } from './support.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

const ZOE = 'Zoë 李 / Müller';
const placeOf = (name: string): string => `/admin/operators/${encodeURIComponent(name)}`;

describe('/admin/operators', () => {
  let databases: TestDatabases;
  let one: Server;
  let other: Server;
  let db1: pg.Client;
  let db2: pg.Client;
  before(async () => {
    databases = await startDatabases();
    one = await startTestServer(databases);
    other = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end()]);
    await Promise.all([one?.stop(), other?.stop()]);
    await databases?.stop();
  });

  const post = (server: Server, path: string, body: unknown, key = ADMIN_KEY) =>
    ask(server.url + path, { method: 'POST', headers: bearer(key), body });
  const statusWith = async (server: Server, key: string) =>
    (await ask(`${server.url}/admin/pools`, { headers: bearer(key) })).status;
  /** Servers know a change within a second. */
  async function until(server: Server, key: string, status: number): Promise<void> {
    while ((await statusWith(server, key)) !== status)
      await new Promise((resolve) => setTimeout(resolve, 50));
  }

  it('adds a person whose key is told once, and is good at another server', async () => {
    const added = await post(one, '/admin/operators', { name: ZOE, role: 'viewer', reason: 'new here' });
    assert.equal(added.status, 201, added.text);
    assert.deepEqual(Object.keys(added.json), ['name', 'key']);
    assert.match(added.json.key, /^slo_[\w-]{43}$/);
    assert.equal(added.headers['cache-control'], 'no-store');
    await until(other, added.json.key, 200);
    assertRefusal(
      await post(other, '/admin/operators', { name: 'eve', role: 'admin' }, added.json.key),
      403,
      'role_refused',
    );
    const listed = await ask(`${other.url}/admin/operators`, { headers: bearer(added.json.key) });
    assert.deepEqual(
      listed.json.items.map(({ name, role, revoked_at }: Record<string, unknown>) => [
        name,
        role,
        revoked_at,
      ]),
      [[ZOE, 'viewer', null]],
    );
    const everything = JSON.stringify((await db1.query('select o::text from audit.operators o')).rows);
    assert(!`${everything}${listed.text}`.includes(added.json.key));
    const again = await post(one, '/admin/operators', { name: ZOE, role: 'admin' });
    assertRefusal(again, 422, 'invalid_input');
    assert.match(again.json.error.hint, /there is an operator Zoë/);
  });

  it('rotates and revokes at one server, and the other knows it within a second', async () => {
    const first = await addOperator(db1, 'Ada', 'operator');
    await until(other, first, 200);
    const { json } = await post(one, `${placeOf('Ada')}/rotate`, { reason: 'lost telephone' });
    await until(other, json.key, 200);
    await until(other, first, 401);
    assert.deepEqual((await post(one, `${placeOf('Ada')}/revoke`, {})).json, { name: 'Ada', revoked: true });
    await until(other, json.key, 401);
    assert.deepEqual((await post(one, `${placeOf('Ada')}/revoke`, {})).json, { name: 'Ada', revoked: false });
    for (const act of ['rotate', 'revoke'])
      assertRefusal(await post(one, `${placeOf('nobody here')}/${act}`, {}), 422, 'invalid_input');
    const { rows } = await db1.query(
      `select actor, action, reason from audit.audit_logs where subject = 'operator Ada' and actor <> 'owner' order by id`,
    );
    assert.deepEqual(rows, [
      { actor: 'admin', action: 'operator_rotate', reason: 'lost telephone' },
      { actor: 'admin', action: 'operator_revoke', reason: null },
    ]);
    const copied = async () =>
      (await db2.query(`select from audit.operators where name = 'Ada' and is_revoked`)).rowCount === 1;
    while (!(await copied())) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  it('takes a name with a slash in its path, and refuses one that cannot be', async () => {
    assert.equal((await post(one, `${placeOf(ZOE)}/rotate`, {})).status, 200);
    assertRefusal(await post(one, `${placeOf('x'.repeat(101))}/rotate`, {}), 422, 'invalid_input');
    for (const body of [
      { name: 'admin', role: 'viewer' },
      { name: 'Bob', role: 'king' },
      { name: 'Bob' },
      {},
    ])
      assertRefusal(await post(one, '/admin/operators', body), 422, 'invalid_input');
  });

  it('is refused to a server whose role is not the owner’s, until the owner grants it', async () => {
    for (const db of [db1, db2])
      await db.query(`create role clerk login password 'clerk' bypassrls in role service_role`);
    const as = (address: string) => {
      const url = new URL(address);
      url.username = 'clerk';
      url.password = 'clerk';
      return { url: url.href };
    };
    const clerk = await startTestServer({ db1: as(databases.db1.url), db2: as(databases.db2.url) });
    try {
      const headers = bearer(ADMIN_KEY);
      assert.equal((await ask(`${clerk.url}/admin/operators`, { headers })).status, 200);
      const before = (await db1.query('select o::text from audit.operators o order by name')).rows;
      for (const [path, body] of [
        ['/admin/operators', { name: 'Bob', role: 'viewer' }],
        [`${placeOf(ZOE)}/rotate`, {}],
        [`${placeOf(ZOE)}/revoke`, {}],
      ] as const) {
        const refused = await post(clerk, path, body);
        assert.deepEqual([refused.status, refused.json.error.code], [403, 'owner_required'], refused.text);
      }
      assert.deepEqual((await db1.query('select o::text from audit.operators o order by name')).rows, before);
      // As docs/secure.md says.
      await db1.query('grant usage on schema audit to clerk');
      await db1.query(
        `grant execute on function audit.add_operator(text, text, bytea, text, text),
           audit.rotate_operator(text, bytea, text, text), audit.revoke_operator(text, text, text) to clerk`,
      );
      const added = await post(clerk, '/admin/operators', { name: 'Bob', role: 'viewer' });
      assert.equal(added.status, 201, added.text);
      await until(one, added.json.key, 200);
      const { rows } = await db1.query(
        `select actor, written_by from audit.audit_logs where subject = 'operator Bob'`,
      );
      assert.deepEqual(rows, [{ actor: 'admin', written_by: 'clerk' }]);
    } finally {
      await clerk.stop();
    }
  });
});

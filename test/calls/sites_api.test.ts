// Call sites over the admin API: what the console does with them, at two servers.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { ADMIN_KEY, ask, assertRefusal, bearer, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { allowSecrets } from '../webhook/world.ts';
import { callBody, SECRET, signedRequest } from './support.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

describe('/admin/sites', () => {
  let databases: TestDatabases;
  let server: Server;
  let other: Server;
  let db2: pg.Client;
  const values: Record<string, string> = { OLD: SECRET, NEW: `${SECRET} too`, SHORT: 'x' };
  const headers = bearer(ADMIN_KEY);
  before(async () => {
    databases = await startDatabases();
    const secretOf = (name: string) => values[name];
    server = await startTestServer(databases, { secretOf });
    other = await startTestServer(databases, { secretOf });
    db2 = await openClient(databases.db2.url);
    await allowSecrets(db2, ['OLD', 'NEW', 'SHORT', 'GONE']);
  });
  after(async () => {
    await db2?.end();
    await Promise.all([server?.stop(), other?.stop()]);
    await databases?.stop();
  });

  const get = (path: string) => ask(`${server.url}/admin/sites${path}`, { headers });
  const post = (path: string, body: unknown) =>
    ask(`${server.url}/admin/sites${path}`, { method: 'POST', headers, body });
  /** A call signed with the value of this secret, to the other server. */
  const call = async (secret: string): Promise<number> => {
    const signed = signedRequest(callBody({ event_id: crypto.randomUUID() }), {
      site: 'branch-7',
      secret: values[secret] ?? '',
    });
    return (await ask(`${other.url}/call-events`, { method: 'POST', ...signed })).status;
  };
  /** Servers know a change within a second. */
  const until = async (secret: string, status: number): Promise<void> => {
    while ((await call(secret)) !== status) await new Promise((resolve) => setTimeout(resolve, 50));
  };

  it('adds a site that another server takes calls of, and not twice', async () => {
    const body = { site_id: 'branch-7', secret_names: ['OLD'], kinds: ['ring'], reason: 'opening' };
    const added = await post('', body);
    assert.equal(added.status, 201, added.text);
    const { created_at: _, ...site } = added.json;
    assert.deepEqual(site, {
      site_id: 'branch-7',
      secret_names: ['OLD'],
      require_signature: true,
      kinds: ['ring'],
      is_active: true,
      on_outage: 'refuse',
      secret_fault: null,
    });
    await until('OLD', 200);
    assertRefusal(await post('', body), 409, 'site_exists');
    assert.deepEqual((await get('')).json.items, [added.json]);
    assert.deepEqual((await get('/branch-7')).json, added.json);
  });

  it('rotates: both secrets are good until the old one is ended', async () => {
    assert.deepEqual((await post('/branch-7/rotate', { secret_names: ['NEW'] })).json.secret_names, [
      'NEW',
      'OLD',
    ]);
    await until('NEW', 200);
    assert.equal(await call('OLD'), 200);
    const only = { secret_names: ['NEW'], only: true, reason: 'it leaked' };
    assert.deepEqual((await post('/branch-7/rotate', only)).json.secret_names, ['NEW']);
    await until('OLD', 401);
    assert.equal(await call('NEW'), 200);
  });

  it('pauses and resumes a site, and says what it answers while the ledger is away', async () => {
    assert.equal((await post('/branch-7', { is_active: false, reason: 'moving' })).json.is_active, false);
    await until('NEW', 401);
    assert.equal((await post('/branch-7', { is_active: true })).json.is_active, true);
    await until('NEW', 200);
    assert.equal((await post('/branch-7', { on_outage: 'accept' })).json.on_outage, 'accept');
    assert.equal((await post('/branch-7', { kinds: null })).json.kinds, null);
  });

  it('refuses what is not there, what breaks a rule, and a secret that cannot be used', async () => {
    for (const [path, body] of [
      ['/none', { is_active: false }],
      ['/none/rotate', { secret_names: ['NEW'] }],
    ] as const)
      assertRefusal(await post(path, body), 404, 'unknown_site');
    assertRefusal(await get('/none'), 404, 'unknown_site');
    const refusals = [
      ['', { site_id: 'a site', secret_names: ['OLD'] }, /site_id must match/],
      ['', { site_id: 'new' }, /needs the name of a secret/],
      ['', { site_id: 'new', secret_names: ['HOME'] }, /^HOME is not on the list of secrets/],
      ['', { site_id: 'new', secret_names: ['GONE'] }, /^GONE is not set/],
      ['/branch-7/rotate', { secret_names: ['SHORT'] }, /^SHORT is too short/],
      ['/branch-7/rotate', { secret_names: [] }, /at least 1/],
      ['/branch-7', { secret_names: [] }, /needs the name of a secret/],
    ] as const;
    for (const [path, body, hint] of refusals) {
      const refused = await post(path, body);
      assertRefusal(refused, 422, 'invalid_input');
      assert.match(refused.json.error.hint, hint);
    }
  });

  it('says which site has lost its secret, and pages through many', async () => {
    delete values.NEW;
    const { secret_fault } = (await get('/branch-7')).json;
    assert.equal(secret_fault, 'NEW is not set.');
    await post('', { site_id: 'open', require_signature: false });
    const first = (await get('?limit=1')).json;
    assert.deepEqual([first.items[0].site_id, first.next], ['branch-7', 'branch-7']);
    const second = (await get(`?limit=1&after=${first.next}`)).json;
    assert.deepEqual(
      second.items.map(({ site_id, secret_fault: fault }: Record<string, unknown>) => [site_id, fault]),
      [['open', null]],
    );
    const { rows } = await db2.query(
      `select actor, action, reason from audit.audit_logs where subject = 'call site branch-7' and reason is not null order by id`,
    );
    assert.deepEqual(rows, [
      { actor: 'admin', action: 'call_site_add', reason: 'opening' },
      { actor: 'admin', action: 'call_site_change', reason: 'it leaked' },
      { actor: 'admin', action: 'call_site_change', reason: 'moving' },
    ]);
  });
});

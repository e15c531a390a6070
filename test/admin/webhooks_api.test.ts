import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  openClient,
  startTestServer,
  token,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { allowSecrets } from '../webhook/world.ts';
import { auditRows, statuses, storeEvents } from './webhook_support.ts';

const SECRET = 'a secret of the admin door';

describe('/admin/webhooks', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db2: pg.Client;
  const admin = bearer(ADMIN_KEY);

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    await db2?.end();
    await server?.stop();
    await databases?.stop();
  });

  const get = (path: string, headers: Record<string, string> = admin) =>
    ask(`${server.url}/admin/webhooks${path}`, { headers });
  const post = (path: string, body: unknown, headers: Record<string, string> = admin) =>
    ask(`${server.url}/admin/webhooks${path}`, { method: 'POST', headers, body });

  it('opens to the admin key alone', async () => {
    const [event] = await storeEvents(db2, ['locked-1']);
    const credentials = [
      {},
      bearer('undefined'),
      bearer(`${ADMIN_KEY}x`),
      bearer(await token({ role: 'authenticated', sub: 'u' })),
      bearer(await token({ role: 'service_role' })),
    ];
    for (const headers of credentials) {
      for (const path of ['/endpoints', '/events', `/events/${event?.id}`])
        assertRefusal(await get(path, headers), 401, 'auth_required');
      const endpoint = { name: 'x', provider: 'stripe', secret_names: ['X'] };
      for (const [path, body] of [
        ['/endpoints', endpoint],
        ['/endpoints/change', { name: 'x', changes: {} }],
        ['/endpoints/rotate', { name: 'x', secret_names: ['X'] }],
        ['/events/replay', { ids: [event?.id] }],
        ['/events/skip', { ids: [event?.id] }],
      ] as const)
        assertRefusal(await post(path, body, headers), 401, 'auth_required');
    }
    assert.equal((await statuses(db2))['locked-1'], 'dead_letter');
    assert.deepEqual((await get('/endpoints')).json, { endpoints: [] });
  });

  it('adds, lists and changes endpoints, each with an audit row, and refuses a name that is taken', async () => {
    await allowSecrets(db2, ['SHOP_SECRET', 'NEW_SECRET', 'OTHER']);
    Object.assign(process.env, { SHOP_SECRET: SECRET, NEW_SECRET: SECRET, OTHER: SECRET });
    const body = { name: 'shop', provider: 'stripe', secret_names: ['SHOP_SECRET'], max_attempts: 3 };
    const added = await post('/endpoints', { ...body, reason: 'opening' });
    assert.equal(added.status, 201, added.text);
    assert.deepEqual(
      [added.json.name, added.json.mode, added.json.max_attempts, added.json.is_active],
      ['shop', 'queued', 3, true],
    );
    assertRefusal(await post('/endpoints', body), 409, 'endpoint_exists');
    const changes = { secret_names: ['NEW_SECRET', 'SHOP_SECRET'], is_active: false };
    const changed = await post('/endpoints/change', { name: 'shop', changes });
    assert.deepEqual(
      [changed.status, changed.json.secret_names, changed.json.is_active],
      [200, changes.secret_names, false],
    );
    assertRefusal(await post('/endpoints/change', { name: 'unknown', changes }), 404, 'unknown_endpoint');
    assert.equal((await get('/endpoints')).json.endpoints.length, 1);
    const { rows } = await db2.query(
      `select action, actor, reason from audit.audit_logs where subject = 'webhook endpoint shop' order by id`,
    );
    assert.deepEqual(rows, [
      { action: 'webhook_endpoint_add', actor: 'admin', reason: 'opening' },
      { action: 'webhook_endpoint_change', actor: 'admin', reason: null },
    ]);
  });

  it('rotates secrets: the old ones stay until they are ended', async () => {
    await allowSecrets(db2, ['FIRST', 'SECOND']);
    Object.assign(process.env, { FIRST: SECRET, SECOND: SECRET });
    await post('/endpoints', { name: 'turning', provider: 'stripe', secret_names: ['SHOP_SECRET'] });
    const rotate = (secret_names: string[], more: object = {}) =>
      post('/endpoints/rotate', { name: 'turning', secret_names, ...more });
    assertRefusal(
      await post('/endpoints/rotate', { name: 'unknown', secret_names: ['FIRST'] }),
      404,
      'unknown_endpoint',
    );
    const lost = await rotate(['HOME']);
    assertRefusal(lost, 422, 'invalid_input');
    assert.match(lost.json.error.hint, /^HOME is not on the list of secrets/);
    assert.deepEqual((await rotate(['FIRST'], { reason: 'it leaked' })).json.secret_names, [
      'FIRST',
      'SHOP_SECRET',
    ]);
    assert.deepEqual((await rotate(['SECOND'], { only: true })).json.secret_names, ['SECOND']);
    const log = await db2.query(
      `select reason, details -> 'changes' -> 'secret_names' as names from audit.audit_logs
       where subject = 'webhook endpoint turning' and action = 'webhook_endpoint_change' order by id limit 1`,
    );
    assert.deepEqual(log.rows, [{ reason: 'it leaked', names: ['FIRST', 'SHOP_SECRET'] }]);
  });

  it('names only secrets that the server can use, and says which endpoint has lost one', async () => {
    const faultOf = async () =>
      (await get('/endpoints')).json.endpoints.find(({ name }: { name: string }) => name === 'shop')
        .secret_fault;
    const one = { name: 'faulty', provider: 'stripe', secret_names: ['SHOP_SECRET'] };
    for (const [change, hint] of [
      [{ secret_names: ['HOME'] }, /^HOME is not on the list of secrets/],
      [{ secret_names: ['OPS_SITE_SECRET'] }, 'OPS_SITE_SECRET is not set.'],
      [{ provider: 'twilio' }, 'SHOP_SECRET is too short to be a secret.'],
      [{ verify_token_name: 'HOME' }, /^HOME is not on the list of secrets/],
      [{ tenant: 'twilio' }, 'The tenant twilio is not one of stripe.'],
    ] as const) {
      const refused = await post('/endpoints', { ...one, ...change });
      assertRefusal(refused, 422, 'invalid_input');
      assert.match(refused.json.error.hint, typeof hint === 'string' ? new RegExp(`^${hint}$`) : hint);
    }
    const named = { name: 'shop', changes: { secret_names: ['HOME'] } };
    assertRefusal(await post('/endpoints/change', named), 422, 'invalid_input');
    assert.equal(await faultOf(), null);
    delete process.env.SHOP_SECRET;
    assert.equal(await faultOf(), 'SHOP_SECRET is not set.');
  });

  it('takes no secret where the name of one belongs, and no scheme that leaves the body unsigned', async () => {
    const one = { name: 'other', provider: 'stripe', secret_names: ['OTHER'] };
    const scheme = { header: 'x-sig', id: '/id' };
    for (const body of [
      { ...one, secret_names: ['whsec_abc'] },
      { ...one, secret_names: [] },
      { ...one, name: 'Other' },
      { ...one, name: '../x' },
      { ...one, provider: 'unknown' },
      { ...one, mode: 'sometimes' },
      { ...one, max_attempts: 0 },
      { ...one, surprise: true },
      { ...one, scheme },
      { ...one, provider: 'hmac' },
      { ...one, provider: 'hmac', scheme: { ...scheme, signed: '{timestamp}' } },
    ])
      assertRefusal(await post('/endpoints', body), 422, 'invalid_input');
    const described = await post('/endpoints', { ...one, provider: 'hmac', scheme });
    assert.equal(described.status, 201, described.text);
    assert.equal(described.json.scheme.signed, '{body}');
  });

  it('lists by every filter, a page at a time, without payloads', async () => {
    const webhookId = randomUUID();
    const events = await storeEvents(db2, ['l-1', 'l-2', 'l-3'], { webhookId, provider: 'lister' });
    await storeEvents(db2, ['l-4'], {
      webhookId,
      provider: 'lister',
      status: 'failed',
      receivedAt: '2020-01-02',
    });
    const ids = async (query: string) => {
      const answer = await get(`/events?webhook_id=${webhookId}${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.json.events.map((row: { event_id: string }) => row.event_id);
    };
    assert.deepEqual(await ids(''), ['l-4', 'l-3', 'l-2', 'l-1'], 'the newest first');
    assert.deepEqual(await ids('&status=failed'), ['l-4']);
    assert.deepEqual(await ids('&event_id=l-2'), ['l-2']);
    assert.deepEqual(await ids('&provider=other'), []);
    assert.deepEqual(await ids('&since=2020-01-02&until=2020-01-03T00:00:00%2B01:00'), ['l-4']);
    assert.deepEqual(await ids(`&limit=1&after=${events[2]?.id}`), ['l-2']);
    assert.doesNotMatch((await get('/events')).text, /payload|raw_body/);
    const shown = await get(`/events/${events[0]?.id}`);
    assert.deepEqual(
      [shown.status, shown.json.event_id, shown.json.payload, shown.json.alarms],
      [200, 'l-1', {}, []],
    );
    assertRefusal(await get(`/events/${randomUUID()}`), 404, 'not_found');
  });

  it('replays and skips once, says so for each id, and names who and why', async () => {
    const [dead, done, aside] = await storeEvents(db2, ['r-1', 'r-2', 'r-3']);
    await db2.query(`update public.webhook_events set status = 'success' where id = $1`, [done?.id]);
    const unknown = 'ffffffff-0000-4000-8000-000000000000';
    const outcomes = async (path: string, body: object) => {
      const answer = await post(path, body);
      assert.equal(answer.status, 200, answer.text);
      return Object.fromEntries(
        answer.json.results.map((row: { id: string; outcome: string }) => [row.id, row.outcome]),
      );
    };
    const ids = [dead?.id, done?.id, unknown];
    const unmoved = { [done?.id ?? '']: 'already_processed', [unknown]: 'unknown' };
    assert.deepEqual(await outcomes('/events/replay', { ids, dry_run: true }), {
      [dead?.id ?? '']: 'would_replay',
      ...unmoved,
    });
    assert.deepEqual(await auditRows(db2, 'webhook_replay'), []);
    assert.deepEqual(await outcomes('/events/replay', { ids, reason: 'mended' }), {
      [dead?.id ?? '']: 'replayed',
      ...unmoved,
    });
    assert.deepEqual(await outcomes('/events/replay', { ids }), {
      [dead?.id ?? '']: 'in_flight',
      ...unmoved,
    });
    assert.deepEqual(await auditRows(db2, 'webhook_replay'), [
      { actor: 'admin', reason: 'mended', event_id: 'r-1', status: 'dead_letter', idempotency_key: null },
    ]);
    assert.deepEqual(await outcomes('/events/skip', { ids: [aside?.id], reason: 'spam' }), {
      [aside?.id ?? '']: 'skipped',
    });
    const after = await statuses(db2);
    assert.deepEqual([after['r-1'], after['r-2'], after['r-3']], ['pending', 'success', 'skipped']);
  });

  it('finds by type, error and what is in the payload, and replays and skips what a filter finds', async () => {
    const provider = 'searched';
    await storeEvents(db2, ['f-1'], { provider, type: 'charge.failed', error: 'Timeout', payload: { a: 7 } });
    await storeEvents(db2, ['f-2'], { provider, type: 'charge.paid', error: 'no user', payload: { a: 8 } });
    await storeEvents(db2, ['f-3'], { provider, type: 'charge.paid', status: 'success', error: null });
    const ids = async (query: string) =>
      (await get(`/events?provider=${provider}&${query}`)).json.events.map(
        (row: { event_id: string }) => row.event_id,
      );
    assert.deepEqual(await ids('type=charge.*'), ['f-3', 'f-2', 'f-1']);
    assert.deepEqual(await ids('error=timeout'), ['f-1']);
    assert.deepEqual(await ids(`path=${encodeURIComponent('$.a > 7')}`), ['f-2']);
    const bad = await get('/events?path=%24.a%5B');
    assertRefusal(bad, 422, 'invalid_input');
    assert.match(bad.json.error.hint, /^path is not a JSON path/);
    for (const action of ['replay', 'skip']) {
      assertRefusal(await post(`/events/${action}`, { filter: {} }), 422, 'invalid_input');
      assertRefusal(await post(`/events/${action}`, { filter: { path: '$.a[' } }), 422, 'invalid_input');
      const both = { ids: [randomUUID()], filter: { provider } };
      assertRefusal(await post(`/events/${action}`, both), 422, 'invalid_input');
    }
    const act = async (action: string, filter: object) =>
      (await post(`/events/${action}`, { filter: { provider, ...filter } })).json.results.map(
        (row: { event_id: string; outcome: string }) => `${row.event_id} ${row.outcome}`,
      );
    assert.deepEqual(await act('replay', { error: 'TIME' }), ['f-1 replayed']);
    assert.deepEqual(
      await act('skip', { type: 'charge.*' }),
      ['f-2 skipped'],
      'what has ended is not asked for',
    );
    assert.deepEqual(await act('skip', { type: 'charge.*' }), []);
  });

  it('gives an idempotency key to one event only', async () => {
    const [one, two] = await storeEvents(db2, ['k-1', 'k-2']);
    const both = { ids: [one?.id, two?.id], idempotency_key: 'again' };
    assertRefusal(await post('/events/replay', both), 422, 'invalid_input');
    assert.equal((await post('/events/replay', { ids: [one?.id], idempotency_key: 'again' })).status, 200);
    const { rows } = await db2.query(
      `select event_id, idempotency_key from public.webhook_events where event_id like 'k-%' order by event_id`,
    );
    assert.deepEqual(rows, [
      { event_id: 'k-1', idempotency_key: 'again' },
      { event_id: 'k-2', idempotency_key: null },
    ]);
  });

  it('refuses what is not a request for it, and changes nothing', async () => {
    const [event] = await storeEvents(db2, ['x-1']);
    const id = event?.id;
    const cases: [body: unknown, status: number, code: string][] = [
      ['{', 400, 'invalid_json'],
      ['{"ids":[],"ids":[]}', 400, 'invalid_json'],
      [{}, 422, 'invalid_input'],
      [{ ids: [] }, 422, 'invalid_input'],
      [{ ids: ['1'] }, 422, 'invalid_input'],
      [{ ids: [`${id}'`] }, 422, 'invalid_input'],
      [{ ids: [id], force: true }, 422, 'invalid_input'],
      [{ ids: [id], reason: '' }, 422, 'invalid_input'],
      [{ ids: [id], reason: 'x'.repeat(70_000) }, 413, 'too_large'],
    ];
    for (const [body, status, code] of cases) {
      assertRefusal(await post('/events/replay', body), status, code);
      assertRefusal(await post('/events/skip', body), status, code);
    }
    for (const query of ['limit=0', 'limit=x', 'status=lost', 'since=yesterday', 'since=2026-02-30', 'id=1'])
      assertRefusal(await get(`/events?${query}`), 422, 'invalid_input');
    assertRefusal(await get('/events?webhook_id=1&webhook_id=2'), 422, 'invalid_input');
    for (const path of ['', '/', '/events/', '//events', '/events/x/replay', '/%65vents'])
      assertRefusal(await get(path), 404, 'not_found');
    assertRefusal(await get('/events/replay'), 405, 'method_not_allowed');
    assertRefusal(await get('/events/not-an-id'), 422, 'invalid_input');
    assert.equal((await statuses(db2))['x-1'], 'dead_letter');
  });
});

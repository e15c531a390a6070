import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { adminRoutes } from '../../src/server/admin.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { changed } from '../abuse/fingerprint.ts';
import { fingerprintOf, furnish, untilCopied } from '../operators/furnished.ts';
import { addOperator } from '../operators/support.ts';
import { ADMIN_KEY, ask, bearer, openClient, startTestServer, token } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openHouse, portsOf, unasked } from './open_house.ts';

/** In the name of everything that is stored here, and in nothing that a refusal may say. */
const MARK = 'confidential';
/** Signing in is what one does without a key. */
const OPEN = 'POST /admin/session';

interface Place {
  method: string;
  /** As the description spells it. */
  path: string;
}
interface Told {
  status: number;
  text: string;
  cookie: string | undefined;
}
type Headers = Record<string, string>;

/** As a person would send it who has no right to: with a body that does something, to an id that is there. */
interface Attack extends Place {
  target: string;
  body?: unknown;
}

describe('every admin route', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let db2: pg.Client;
  let attacks: Attack[];
  let session: string;
  let viewer: string;
  let scanner: string;
  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    attacks = await makeAttacks();
    const signedIn = await ask(`${server.url}/admin/session`, { method: 'POST', body: { key: ADMIN_KEY } });
    session = signedIn.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    assert.match(session, /^sluice_session=v2/);
    viewer = await addOperator(db1, 'the viewer', 'viewer');
    scanner = await addOperator(db1, 'the scanner', 'scanner');
    await untilCopied(db1, db2);
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await server?.stop();
    await databases?.stop();
  });

  /** What the server says it answers below /admin: a new route is in it, or it would not start. */
  async function places(): Promise<Place[]> {
    const { json } = await ask(`${server.url}/openapi.json`);
    return Object.entries<Record<string, unknown>>(json.paths)
      .filter(([path]) => path.startsWith('/admin'))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })),
      )
      .filter(({ method, path }) => `${method} ${path}` !== OPEN);
  }

  async function makeAttacks(): Promise<Attack[]> {
    const { letters, claims, events, deliveries, call, order, refunds } = await furnish(
      db1,
      db2,
      server.url,
      MARK,
    );
    const { rows: tickets } = await db2.query(
      `insert into public.confirmed_tickets (resource_id, pool_id, user_id) values (gen_random_uuid(), $1, $1 || ' buyer')
       returning claim_id`,
      [MARK],
    );
    await db2.query(`select calls.add_site($1, '{OPS_SITE_SECRET}', true, null, 'ann')`, [MARK]);
    await addOperator(db1, MARK, 'viewer');
    await db1.query('select public.operator_used($1)', [MARK]);
    const issue = await db1.query(`select id from public.issue_list(p_kind => 'claim', p_lane => $1)`, [
      MARK,
    ]);
    const ids: Record<string, string> = {
      '/admin/pools/': MARK,
      '/admin/claims/': claims[0] ?? '',
      '/admin/dlq/': String(letters[0]),
      '/admin/webhooks/events/': events[0] ?? '',
      '/admin/calls/': call,
      '/admin/orders/': order,
      '/admin/refunds/': encodeURIComponent(refunds[0] ?? ''),
      '/admin/tickets/': tickets[0].claim_id,
      '/admin/payments/': encodeURIComponent(`stripe/${MARK}`),
      '/admin/users/': encodeURIComponent(`${MARK} buyer`),
      '/admin/issues/': issue.rows[0].id,
      '/admin/sites/': MARK,
      '/admin/operators/': MARK,
      '/admin/totals/': 'claims',
      '/admin/export/': 'claims',
    };
    const queries: Record<string, string> = { '/admin/search': `?q=${MARK}` };
    const bodies: Record<string, unknown> = {
      'POST /admin/pools': { pool_id: 'forged', slots: 1 },
      'POST /admin/pools/{pool}': { add_slots: 1, is_active: false },
      'POST /admin/pools/{pool}/details': { title: 'forged' },
      'POST /admin/claims/{claim}/release': { reason: 'forged' },
      'POST /admin/claims/void': { claim_ids: [claims[1]], reason: 'forged' },
      'POST /admin/refunds/send': { ids: [refunds[0]], reason: 'forged' },
      'POST /admin/refunds/skip': { ids: [refunds[1]], reason: 'forged' },
      'POST /admin/webhooks/endpoints': {
        name: 'forged',
        provider: 'stripe',
        secret_names: ['OPS_SITE_SECRET'],
      },
      'POST /admin/webhooks/endpoints/change': { name: MARK, changes: { max_attempts: 7 } },
      'POST /admin/sites': { site_id: 'forged', secret_names: ['OPS_SITE_SECRET'] },
      'POST /admin/sites/{site}': { is_active: false },
      'POST /admin/sites/{site}/rotate': { secret_names: ['OPS_SITE_SECRET'] },
      'POST /admin/operators': { name: 'forged', role: 'admin' },
      'POST /admin/operators/{operator}/rotate': { reason: 'forged' },
      'POST /admin/operators/{operator}/revoke': { reason: 'forged' },
      'POST /admin/webhooks/endpoints/rotate': { name: MARK, secret_names: ['OPS_SITE_SECRET'] },
      'POST /admin/webhooks/events/replay': { ids: [events[0]] },
      'POST /admin/webhooks/events/skip': { ids: [events[1]] },
      'POST /admin/webhooks/payments/name': { tenant: 'stripe', payment: MARK, user_id: 'forged' },
      'POST /admin/webhooks/inbox/replay': { msg_ids: [deliveries[0]] },
      'POST /admin/webhooks/inbox/discard': { msg_ids: [deliveries[1]] },
      'POST /admin/issues/{issue}/replay': { reason: 'forged' },
      'POST /admin/issues/{issue}/resolve': { reason: 'forged' },
      'POST /admin/dlq/replay': { msg_ids: [letters[0]] },
      'POST /admin/dlq/discard': { msg_ids: [letters[1]] },
      'POST /admin/users/export': { user_id: `${MARK} buyer` },
      'POST /admin/users/erase': { user_id: `${MARK} buyer` },
    };
    return (await places()).map(({ method, path }) => {
      const [prefix = '', rest] = path.split(/\{\w+\}/);
      const id = rest === undefined ? '' : ids[prefix];
      assert(id !== undefined, `the test knows no id for ${path}: add one`);
      const target = `${prefix}${id}${rest ?? ''}${queries[path] ?? ''}`;
      if (method !== 'POST') return { method, path, target };
      const body = bodies[`${method} ${path}`];
      assert(body !== undefined, `the test knows no body for ${method} ${path}: add one`);
      return { method, path, target, body };
    });
  }

  const fingerprint = () => fingerprintOf(db1, db2);

  /** What is wrong with how a server refuses this: nothing, where the guard is in its place. */
  async function breaches(
    url: string,
    { method, target, body }: Attack,
    tries: readonly Headers[],
    expected: { status: number; code: string },
  ): Promise<string[]> {
    const found: string[] = [];
    const before = await fingerprint();
    for (const headers of tries) {
      const { status, text, cookie } = await send(url + target, method, headers, body);
      const what = JSON.stringify(headers);
      if (status !== expected.status) found.push(`${what}: status ${status}`);
      else if (!text.includes(`"code":"${expected.code}"`)) found.push(`${what}: ${text}`);
      if (text.includes(MARK)) found.push(`${what}: data left the house`);
      if (cookie !== undefined) found.push(`${what}: a cookie`);
    }
    const tables = changed(before, await fingerprint());
    if (tables.length > 0) found.push('the databases changed', ...tables);
    return found;
  }

  const NO_KEY = { status: 401, code: 'auth_required' };
  const NO_ROLE = { status: 403, code: 'role_refused' };
  const NO_PROOF = { status: 403, code: 'csrf_refused' };

  async function withoutKey(): Promise<Headers[]> {
    const credentials: Headers[] = [
      {},
      { authorization: '' },
      { authorization: 'Bearer' },
      { authorization: 'Bearer ' },
      bearer('undefined'),
      bearer('null'),
      bearer('wrong'),
      bearer(ADMIN_KEY.slice(0, -1)),
      bearer(`${ADMIN_KEY}x`),
      { authorization: `Basic ${ADMIN_KEY}` },
      { authorization: ADMIN_KEY },
      { 'x-api-key': ADMIN_KEY },
      { cookie: 'sluice_session=' },
      { cookie: `sluice_session=${ADMIN_KEY}` },
      { cookie: `sluice_session=v2.9999999999.${'A'.repeat(22)}.${'A'.repeat(43)}.${'A'.repeat(43)}` },
      // A wrong key is not made up for by a right cookie.
      { cookie: session, ...bearer('undefined') },
      bearer(await token({ role: 'service_role' })),
      bearer(await token({ role: 'authenticated', sub: 'u' })),
    ];
    // With the proof of the console, so that nothing but the key is missing.
    return credentials.map((headers) => ({ 'x-sluice-csrf': '1', ...headers }));
  }

  const withoutProof = (): Headers[] => {
    const own = { cookie: session, 'x-sluice-csrf': '1' };
    return [
      { cookie: session },
      { cookie: session, 'x-sluice-csrf': '' },
      { cookie: session, 'x-sluice-csrf': 'true' },
      { cookie: session, origin: server.url },
      { ...own, origin: 'http://elsewhere.example' },
      { ...own, origin: 'null' },
    ];
  };

  it('is one that this test attacks', async () => {
    const made = adminRoutes(new OperatorAuth(ADMIN_KEY, Date.now), portsOf(unasked, unasked));
    const spelled = made.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    const attacked = attacks.map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual([OPEN, ...attacked].toSorted(), spelled.toSorted());
  });

  it('gives nothing away without the key, and changes nothing', async () => {
    const tries = await withoutKey();
    for (const attack of attacks)
      assert.deepEqual([attack.path, await breaches(server.url, attack, tries, NO_KEY)], [attack.path, []]);
  });

  it('takes no change from a session without the proof that the console sent it', async () => {
    const writing = attacks.filter(({ method }) => method !== 'GET');
    assert(writing.length >= 10);
    for (const attack of writing)
      assert.deepEqual(
        [attack.path, await breaches(server.url, attack, withoutProof(), NO_PROOF)],
        [attack.path, []],
      );
  });

  it('takes no change from a viewer, and gives a scanner nothing to see', async () => {
    // When they were last here is written down before the tables are looked at.
    for (const key of [viewer, scanner]) await ask(`${server.url}/admin/session`, { headers: bearer(key) });
    while ((await db1.query('select from audit.operators where last_used_at is null')).rowCount !== 0);
    const whole = await fingerprint();
    for (const attack of attacks) {
      if (attack.path === '/admin/session') continue;
      const tries = [bearer(scanner), ...(attack.method === 'GET' ? [] : [bearer(viewer)])];
      assert.deepEqual([attack.path, await breaches(server.url, attack, tries, NO_ROLE)], [attack.path, []]);
      if (attack.method !== 'GET') continue;
      const { status } = await send(server.url + attack.target, 'GET', bearer(viewer), undefined);
      assert.equal(status, 200, attack.path);
    }
    assert.deepEqual(await fingerprint(), whole);
  });

  it('shows the holder of the key what the others did not see', async () => {
    for (const { method, path, target } of attacks) {
      if (method !== 'GET') continue;
      const { status, text } = await send(server.url + target, method, bearer(ADMIN_KEY), undefined);
      assert([200, 204].includes(status), `${path}: ${text}`);
      const isList =
        /^\/admin\/(pools|claims|dlq|calls|orders|refunds|issues|webhooks|sites|operators|tickets|payments|export|search)/.test(
          path,
        );
      if (isList) assert(text.includes(MARK), `${path} holds nothing that could have been given away`);
    }
  });

  it('is found open by this very test where the guard is off', async () => {
    const open = await openHouse(databases);
    try {
      // Signed out last: the others need nothing of it.
      for (const attack of attacks) {
        const [first = {}] = await withoutKey();
        const found = await breaches(open.url, attack, [first], NO_KEY);
        const { method, path } = attack;
        assert(found.length > 0, `${method} ${path}`);
        if (method === 'POST') assert(found.includes('the databases changed'), `${method} ${path}: ${found}`);
      }
    } finally {
      await open.stop();
    }
  });
});

/** Of a stream only the head: it has no end. */
function send(url: string, method: string, headers: Headers, body: unknown): Promise<Told> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const type: Headers =
    text === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) };
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { method, headers: { ...type, ...headers }, agent: false },
      (response) => {
        let said = '';
        const tell = () =>
          resolve({
            status: response.statusCode ?? 0,
            text: said,
            cookie: response.headers['set-cookie']?.[0],
          });
        if (response.headers['content-type'] === 'text/event-stream') {
          tell();
          request.destroy();
          return;
        }
        response.setEncoding('utf8').on('data', (piece: string) => {
          said += piece;
        });
        response.on('end', tell).on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(text);
  });
}

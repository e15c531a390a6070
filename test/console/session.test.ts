import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { ERROR_KINDS } from '#core/errors.ts';
import { NO_METRICS } from '#core/ports.ts';
import { jsonResponse, type Route, Router } from '#core/router.ts';
import { AddressLimits } from '../../src/server/address_limits.ts';
import { HttpServer } from '../../src/server/http.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import type { ProxySettings } from '../../src/server/proxy.ts';
import { memoryLog } from '../core/support.ts';
import { ADMIN_KEY, type Ask, ask, assertRefusal, bearer } from '../server/support.ts';
import { openStream } from './support.ts';

const HOURS_12_MS = 12 * 60 * 60 * 1_000;

describe('an operator', () => {
  const log = memoryLog();
  let now = Date.UTC(2026, 1, 24, 10);
  const limitsOf = (proxy: ProxySettings) =>
    new AddressLimits({ loopback: true }, { proxy, metrics: NO_METRICS, log, now: () => now });
  const auth = new OperatorAuth(ADMIN_KEY, () => now, {
    wrongKeys: limitsOf({ trustedProxies: 0 }).signIns,
  });
  const changes: string[] = [];
  const speakers: ((text: string) => boolean)[] = [];
  const behind: Route[] = [
    { method: 'GET', path: '/admin/pools', handle: () => jsonResponse(200, { secret: 1 }) },
    {
      method: 'GET',
      path: '/admin/live',
      handle: () => ({ status: 200, headers: {}, body: '', follow: (send) => void speakers.push(send) }),
    },
    {
      method: 'POST',
      path: '/admin/pools',
      handle: (request) => {
        changes.push(request.method);
        return jsonResponse(200, { secret: 1 });
      },
    },
  ];
  const server = new HttpServer(new Router([...auth.routes(), ...auth.guard(behind)], log), log);
  let url = '';
  let host = '';
  before(async () => {
    host = `127.0.0.1:${await server.listen(0)}`;
    url = `http://${host}`;
  });
  after(() => server.close());

  const send = (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) =>
    ask(url + path, { method, headers, ...(body === undefined ? {} : { body }) } as Ask);
  const signIn = (key: unknown = ADMIN_KEY, headers: Record<string, string> = {}) =>
    send('POST', '/admin/session', headers, { key });
  const cookieOf = async () => {
    now += 2_000;
    const [set = ''] = (await signIn()).headers['set-cookie'] ?? [];
    return { cookie: set.split(';')[0] ?? '' };
  };

  it('gets a cookie for the key that no script can read and no other site can send, for 12 hours', async () => {
    const answer = await signIn();
    assert.deepEqual([answer.status, answer.text], [204, '']);
    assert.match(
      String(answer.headers['set-cookie']),
      /^sluice_session=v2\.\d+\.[\w-]{22}\.[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    );
    assert.doesNotMatch(String(answer.headers['set-cookie']), new RegExp(ADMIN_KEY));
  });

  it('gets a cookie that is only for https where the proxy speaks https', async () => {
    const { headers } = await signIn(ADMIN_KEY, { 'x-forwarded-proto': 'https' });
    assert.match(String(headers['set-cookie']), /; Secure$/);
  });

  it('is let in by the key, and by the cookie', async () => {
    const cookie = await cookieOf();
    for (const headers of [bearer(ADMIN_KEY), cookie]) {
      assert.equal((await send('GET', '/admin/pools', headers)).status, 200);
      assert.equal((await send('GET', '/admin/session', headers)).status, 200);
    }
  });

  it('signs out, and the cookie is gone from the browser and good for nothing', async () => {
    const [headers, other] = [{ ...(await cookieOf()), 'x-sluice-csrf': '1' }, await cookieOf()];
    const answer = await send('DELETE', '/admin/session', headers);
    assert.equal(answer.status, 204);
    assert.match(String(answer.headers['set-cookie']), /^sluice_session=; .*Max-Age=0$/);
    assertRefusal(await send('GET', '/admin/pools', headers), 401, 'auth_required');
    assertRefusal(await send('DELETE', '/admin/session', headers), 401, 'auth_required');
    assert.equal((await send('GET', '/admin/pools', other)).status, 200, 'another session of the same key');
  });

  it('follows a stream until the session ends, by its time or by signing out, and with the key for ever', async () => {
    const read = async (headers: Record<string, string>) => {
      const stream = await openStream(`${url}/admin/live`, headers);
      const say = speakers.shift();
      assert(say !== undefined);
      say('one');
      assert.equal(await stream.next(), 'one');
      return { stream, say };
    };
    const byTime = await read(await cookieOf());
    const signedOut = await cookieOf();
    const bySigningOut = await read(signedOut);
    const withKey = await read(bearer(ADMIN_KEY));
    await send('DELETE', '/admin/session', { ...signedOut, 'x-sluice-csrf': '1' });
    assert.equal(bySigningOut.say('two'), false);
    assert.equal(await bySigningOut.stream.next(), undefined);
    assert.equal(byTime.say('two'), true);
    assert.equal(await byTime.stream.next(), 'two');
    now += HOURS_12_MS;
    assert.equal(byTime.say('three'), false);
    assert.equal(await byTime.stream.next(), undefined);
    assert.equal(withKey.say('three'), true);
    withKey.stream.leave();
  });

  it('is not let in by anything else', async () => {
    const { cookie } = await cookieOf();
    const [, expires = '', nonce = ''] =
      /^sluice_session=v2\.(\d+)\.([\w-]+\.[\w-]{43})\./.exec(cookie) ?? [];
    const signed = (text: string, key: string) =>
      `sluice_session=${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
    const refused: Record<string, Record<string, string>> = {
      nothing: {},
      'an empty cookie': { cookie: 'sluice_session=' },
      'the key as a cookie': { cookie: `sluice_session=${ADMIN_KEY}` },
      'a cookie of another name': { cookie: cookie.replace('sluice_session', 'session') },
      'a cookie whose end was moved': { cookie: cookie.replace(expires, String(Number(expires) + 1)) },
      'a cookie with another nonce': { cookie: cookie.replace(nonce, `${nonce.slice(0, -1)}_`) },
      'a cookie cut short': { cookie: cookie.slice(0, -1) },
      'a cookie signed with another key': { cookie: signed(`v2.${expires}.${nonce}`, 'other') },
      'a cookie of another version': { cookie: cookie.replace('v2.', 'v3.') },
      'a cookie that never ends': { cookie: signed(`v2.99999999999999999999.${nonce}`, 'other') },
      // A right cookie must not hide a wrong key: a refused header does not fall back to the cookie.
      'a wrong key with a right cookie': { cookie, ...bearer('wrong') },
    };
    for (const [what, headers] of Object.entries(refused)) {
      assertRefusal(await send('GET', '/admin/pools', headers), 401, 'auth_required');
      const changed = await send('POST', '/admin/pools', { ...headers, 'x-sluice-csrf': '1' });
      assert.deepEqual([what, changed.status], [what, 401]);
    }
    assert.deepEqual(changes, []);
    assert.equal((await send('GET', '/admin/pools', { cookie: `a=b; ${cookie}; c=d` })).status, 200);
  });

  it('is signed out after 12 hours, to the second', async () => {
    const cookie = await cookieOf();
    now += HOURS_12_MS - 1;
    assert.equal((await send('GET', '/admin/session', cookie)).status, 200);
    now += 1_000;
    assertRefusal(await send('GET', '/admin/session', cookie), 401, 'auth_required');
  });

  it('cannot be made to change anything by another site', async () => {
    const cookie = await cookieOf();
    const own = { 'x-sluice-csrf': '1', origin: `http://${host}` };
    const forged: Record<string, string>[] = [
      {},
      { origin: own.origin },
      { 'x-sluice-csrf': '0' },
      { ...own, origin: 'http://evil.example' },
      { ...own, origin: `http://${host}.evil.example` },
      { ...own, origin: 'null' },
      { ...own, origin: '' },
      // No proxy is trusted here, so only the browser's own origin counts.
      { ...own, origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' },
      { ...own, 'sec-fetch-site': 'cross-site' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { ...own, 'sec-fetch-site': 'none' },
      { origin: own.origin, 'sec-fetch-site': 'same-origin' },
    ];
    for (const headers of forged) {
      assertRefusal(await send('POST', '/admin/pools', { ...cookie, ...headers }), 403, 'csrf_refused');
      assertRefusal(await send('DELETE', '/admin/session', { ...cookie, ...headers }), 403, 'csrf_refused');
    }
    assert.deepEqual(changes, []);
    // The third is what a browser sends by way of a proxy that puts its own name for us into Host.
    const renamed = { ...own, origin: 'https://tickets.example.com', 'sec-fetch-site': 'same-origin' };
    for (const headers of [own, { 'x-sluice-csrf': '1' }, renamed])
      assert.equal((await send('POST', '/admin/pools', { ...cookie, ...headers })).status, 200);
    // A key in a header is put there by a program, never by a browser on its own.
    assert.equal((await send('POST', '/admin/pools', bearer(ADMIN_KEY))).status, 200);
    assert.equal(changes.length, 4);
  });

  it('is known by the public address too, and by the name that a trusted proxy tells', async () => {
    const publicUrl = new URL('https://tickets.example.com');
    const proxied: [ProxySettings, Record<string, string>, number][] = [
      [{ trustedProxies: 0, publicUrl }, { origin: 'https://tickets.example.com' }, 200],
      [{ trustedProxies: 0, publicUrl }, { origin: 'http://tickets.example.com' }, 403],
      [{ trustedProxies: 0, publicUrl }, { origin: 'https://evil.example' }, 403],
      [
        { trustedProxies: 1 },
        { origin: 'https://tickets.example.com', 'x-forwarded-host': 'tickets.example.com' },
        200,
      ],
      [
        { trustedProxies: 1 },
        { origin: 'https://evil.example', 'x-forwarded-host': 'tickets.example.com' },
        403,
      ],
    ];
    for (const [proxy, headers, status] of proxied) {
      const front = new OperatorAuth(ADMIN_KEY, () => now, { proxy });
      const door = new Router([...front.routes(), ...front.guard(behind)], log);
      const ask = (method: string, path: string, more: Record<string, string>, body = '') =>
        door.handle(door.find(method, path), {
          method,
          path,
          headers: { host: 'upstream:4000', ...more },
          body: Buffer.from(body),
          requestId: 'r',
        });
      const json = { 'content-type': 'application/json' };
      const signedIn = await ask('POST', '/admin/session', json, JSON.stringify({ key: ADMIN_KEY }));
      const isSecure = proxy.publicUrl !== undefined;
      assert.equal(/; Secure$/.test(signedIn.headers['set-cookie'] ?? ''), isSecure);
      assert.equal(/^__Host-sluice_session=/.test(signedIn.headers['set-cookie'] ?? ''), isSecure);
      const cookie = signedIn.headers['set-cookie']?.split(';')[0] ?? '';
      const changed = await ask('POST', '/admin/pools', { cookie, 'x-sluice-csrf': '1', ...headers });
      assert.deepEqual([headers, changed.status], [headers, status]);
    }
  });

  it('has a cookie of the name __Host- over https, and one without it is not believed there', async () => {
    const { cookie } = await cookieOf();
    const https = { 'x-forwarded-proto': 'https' };
    assert.equal((await send('GET', '/admin/pools', { cookie })).status, 200);
    assert.equal(
      (await send('GET', '/admin/pools', { cookie, ...https })).status,
      401,
      'planted by a neighbour',
    );
    const hosted = `__Host-${cookie}`;
    assert.equal((await send('GET', '/admin/pools', { cookie: hosted, ...https })).status, 200);
    assert.equal((await send('GET', '/admin/pools', { cookie: hosted })).status, 401);
  });

  it('has five guesses a second, at the sign-in and as a header alike, and the right key always passes', async () => {
    now += 10_000;
    for (const key of ['', 'a', 'undefined']) assert.equal((await signIn(key)).status, 401);
    for (const key of [`${ADMIN_KEY}x`, ADMIN_KEY.slice(1)])
      assertRefusal(await send('GET', '/admin/pools', bearer(key)), 401, 'auth_required');
    const refused = await signIn('guess');
    assertRefusal(refused, 429, 'too_many_attempts');
    assert.equal(refused.headers['retry-after'], '1');
    assert.equal(refused.headers['set-cookie'], undefined);
    assertRefusal(await send('GET', '/admin/pools', bearer('guess')), 429, 'too_many_attempts');
    assert.equal((await signIn()).status, 204);
    assert.equal((await send('GET', '/admin/pools', bearer(ADMIN_KEY))).status, 200);
    now += 199;
    assert.equal((await signIn('guess')).status, 429);
    now += 1;
    assert.equal((await signIn('guess')).status, 401);
  });

  it('is counted by the address that the declared proxy has seen', async () => {
    const proxy = { trustedProxies: 1 };
    const front = new OperatorAuth(ADMIN_KEY, () => now, { proxy, wrongKeys: limitsOf(proxy).signIns });
    const from = (forwarded: string, key: string) => {
      const headers = { ...bearer(key), 'x-forwarded-for': forwarded };
      const body = new Uint8Array();
      const request = { method: 'GET', path: '/', headers, body, requestId: 'r', peer: '10.0.0.1' };
      return front.authorize(request, 'anyone');
    };
    for (let guess = 0; guess < 5; guess++)
      // What the guesser writes in front changes each time; the last is what our proxy has seen.
      await assert.rejects(from(`192.0.2.${guess}, 203.0.113.9`, 'guess'), {
        kind: ERROR_KINDS.auth_required,
      });
    await assert.rejects(from('203.0.113.9', 'guess'), { kind: ERROR_KINDS.too_many_attempts });
    await assert.rejects(from('203.0.113.10', 'guess'), { kind: ERROR_KINDS.auth_required });
    assert.equal((await from('203.0.113.9', ADMIN_KEY)).operator.role, 'admin');
  });

  it('sends a key as JSON and nothing else', async () => {
    now += 10_000;
    assertRefusal(await signIn(7), 422, 'invalid_input');
    assertRefusal(await send('POST', '/admin/session', {}, {}), 422, 'invalid_input');
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    assertRefusal(
      await send('POST', '/admin/session', form, `key=${ADMIN_KEY}`),
      415,
      'unsupported_media_type',
    );
  });

  it('is behind the guard on every path that begins with /admin', () => {
    assert.throws(() =>
      auth.guard([{ method: 'GET', path: '/elsewhere', handle: () => jsonResponse(200, {}) }]),
    );
  });
});

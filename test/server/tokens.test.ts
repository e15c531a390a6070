import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import {
  exportJWK,
  exportSPKI,
  type GenerateKeyPairResult,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { HttpError } from '#core/errors.ts';
import type { HttpRequest } from '#core/router.ts';
import { OperatorAuth } from '../../src/server/operator_auth.ts';
import { createTokenPorts } from '../../src/server/tokens.ts';
import { ADMIN_KEY, JWT_SECRET, token } from './support.ts';

const SECRETS = { jwtSecret: JWT_SECRET };
const OPERATORS = new OperatorAuth(ADMIN_KEY, Date.now);
const REQUEST: HttpRequest = {
  method: 'GET',
  path: '/',
  headers: {},
  body: new Uint8Array(),
  requestId: 'r',
};
const USER = { role: 'authenticated', sub: 'ann', is_anonymous: true };

const refusedAs = (code: string) => (error: unknown) =>
  error instanceof HttpError && error.kind.code === code;

describe("tokens signed with the project's secret", () => {
  const ports = createTokenPorts(SECRETS, OPERATORS);

  it('are good while they last', async () => {
    assert.deepEqual(await ports.verifyToken(await token(USER)), USER);
  });

  const now = Math.floor(Date.now() / 1000);
  const bad: [string, () => Promise<string> | string][] = [
    ['that has expired', () => token({ ...USER, exp: now - 60 })],
    ['that is not valid yet', () => token({ ...USER, nbf: now + 600 })],
    [
      'that never expires',
      () => new SignJWT(USER).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(JWT_SECRET)),
    ],
    ['signed with another secret', () => token(USER, 'another-secret-of-thirty-two-bytes!!')],
    ['without a signature', () => new UnsecuredJWT(USER).setExpirationTime('1h').encode()],
    [
      'with another HMAC',
      () =>
        new SignJWT(USER)
          .setProtectedHeader({ alg: 'HS512' })
          .setExpirationTime('1h')
          .sign(Buffer.alloc(64, JWT_SECRET)),
    ],
    ['cut short', async () => (await token(USER)).slice(0, -4)],
    ['that is not a token', () => 'undefined'],
    ['of dots only', () => '..'],
  ];
  for (const [name, make] of bad) {
    it(`refuse one ${name}`, async () => {
      await assert.rejects(ports.verifyToken(await make()), refusedAs('auth_required'));
    });
  }

  it('may be made only where the secrets are not empty', () => {
    for (const jwtSecret of ['', 'secret', 's'.repeat(31)])
      assert.throws(() => createTokenPorts({ jwtSecret }, OPERATORS), /at least 32 characters/);
    assert.throws(() => new OperatorAuth('', Date.now));
  });

  it('are not the admin key, and only the admin key is', async () => {
    const first = { name: 'admin', role: 'admin' };
    assert.deepEqual(await ports.findOperator(ADMIN_KEY, REQUEST), first);
    for (const key of ['', `${ADMIN_KEY} `, ADMIN_KEY.slice(1), ADMIN_KEY.toUpperCase()]) {
      assert.equal(await ports.findOperator(key, REQUEST), undefined);
    }
  });

  it('are not even looked up as keys', async () => {
    const asked: string[] = [];
    const ann = { name: 'ann', role: 'viewer' } as const;
    const { findOperator } = createTokenPorts(SECRETS, {
      findOperator: async (key) => (asked.push(key) > 0 ? ann : undefined),
    });
    const unsigned = new UnsecuredJWT(USER).setExpirationTime('1h').encode();
    for (const jwt of [await token(USER), unsigned])
      assert.equal(await findOperator(jwt, REQUEST), undefined);
    assert.deepEqual(asked, []);
    const keys = ['key', 'a.b', 'a.b.c.d', '..', 'ä.b.c', 'a.b.c+', 'cjH9p+/w=='];
    for (const key of keys) assert.equal(await findOperator(key, REQUEST), ann);
    assert.deepEqual(asked, keys);
  });
});

describe("tokens signed with the project's published keys", () => {
  let server: Server;
  let url = '';
  let sign: (key: CryptoKey, kid: string) => Promise<string>;
  let pair: GenerateKeyPairResult;
  let status = 200;

  before(async () => {
    pair = await generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' };
    sign = (key, kid) =>
      new SignJWT(USER).setProtectedHeader({ alg: 'ES256', kid }).setExpirationTime('1h').sign(key);
    server = createServer((_, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ keys: [jwk] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  });
  after(() => server.close());

  it('are good, and so are those signed with the secret', async () => {
    const ports = createTokenPorts({ ...SECRETS, jwksUrl: url }, OPERATORS);
    assert.deepEqual(await ports.verifyToken(await sign(pair.privateKey, 'k1')), USER);
    assert.deepEqual(await ports.verifyToken(await token(USER)), USER);
  });

  it('are refused where the key is not published, or no keys are known', async () => {
    const other = await generateKeyPair('ES256');
    const ports = createTokenPorts({ ...SECRETS, jwksUrl: url }, OPERATORS);
    await assert.rejects(ports.verifyToken(await sign(other.privateKey, 'k1')), refusedAs('auth_required'));
    await assert.rejects(ports.verifyToken(await sign(other.privateKey, 'k2')), refusedAs('auth_required'));
    const secretOnly = createTokenPorts(SECRETS, OPERATORS);
    await assert.rejects(
      secretOnly.verifyToken(await sign(pair.privateKey, 'k1')),
      refusedAs('auth_required'),
    );
  });

  it('are refused where the public key was used as an HMAC secret', async () => {
    const ports = createTokenPorts({ ...SECRETS, jwksUrl: url }, OPERATORS);
    const forged = await token(USER, await exportSPKI(pair.publicKey));
    await assert.rejects(ports.verifyToken(forged), refusedAs('auth_required'));
  });

  it('are neither good nor bad while the keys cannot be fetched', async () => {
    const good = await sign(pair.privateKey, 'k1');
    status = 500;
    const failing = createTokenPorts({ ...SECRETS, jwksUrl: url }, OPERATORS);
    await assert.rejects(failing.verifyToken(good), refusedAs('auth_unavailable'));
    const gone = createTokenPorts({ ...SECRETS, jwksUrl: 'http://127.0.0.1:1/keys' }, OPERATORS);
    await assert.rejects(gone.verifyToken(good), refusedAs('auth_unavailable'));
  });
});

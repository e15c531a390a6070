import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { startServer } from '../../src/server/server.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ADMIN_KEY, ask, bearer, claim, JWT_SECRET } from './support.ts';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

function serve(env: Record<string, string>, args: string[] = []) {
  const child: ChildProcess = spawn(process.execPath, [SLUICE, 'serve', ...args], {
    env: { PATH: process.env.PATH ?? '', SLUICE_LOG: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let announce = (_: string) => {};
  const listening = new Promise<string>((resolve) => {
    announce = resolve;
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk;
      const url = /listens on (http:\S+)/.exec(output)?.[1];
      if (url !== undefined) announce(url);
    });
  }
  const exited = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, output }));
  });
  return { child, listening, exited };
}

describe('sluice serve', () => {
  let databases: TestDatabases;
  let env: Record<string, string> = {};

  before(async () => {
    databases = await startDatabases();
    env = {
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      SLUICE_JWT_SECRET: JWT_SECRET,
      SLUICE_PORT: '0',
    };
  });
  after(() => databases?.stop());

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`serves until ${signal} and then ends with 0`, async () => {
      const { child, listening, exited } = serve(env);
      const url = await Promise.race([listening, exited.then(({ output }) => assert.fail(output))]);
      assert.equal((await ask(`${url}/readyz`)).status, 200);
      for (const path of ['/healthz', '/metrics', '/', '/favicon.ico']) {
        const head = await fetch(url + path, { method: 'HEAD', headers: bearer(ADMIN_KEY) });
        assert.deepEqual([path, head.status, await head.text()], [path, 200, '']);
        assert.ok(Number(head.headers.get('content-length')) > 0, path);
      }
      child.kill(signal);
      assert.equal((await exited).code, 0);
    });
  }

  it('names no length in the answer to HEAD where GET streams', async () => {
    const { child, listening, exited } = serve(env);
    const url = await Promise.race([listening, exited.then(({ output }) => assert.fail(output))]);
    const stream = await fetch(`${url}/admin/live`, { method: 'HEAD', headers: bearer(ADMIN_KEY) });
    assert.equal(stream.headers.get('content-type'), 'text/event-stream');
    assert.equal(stream.headers.get('content-length'), null);
    child.kill('SIGTERM');
    await exited;
  });

  it('says what is not set', async () => {
    const { DB1_URL: _, ...rest } = env;
    const { code, output } = await serve({ ...rest, SLUICE_ADMIN_KEY: '' }).exited;
    assert.equal(code, 1);
    assert.match(output, /Set DB1_URL, SLUICE_ADMIN_KEY/);
  });

  it('says which port is taken and how to choose another', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, resolve));
    const { port } = other.address() as AddressInfo;
    const { code, output } = await serve({ ...env, SLUICE_PORT: String(port) }).exited;
    other.close();
    assert.equal(code, 1);
    assert.match(output, new RegExp(`Port ${port} is taken\\nhint: .*SLUICE_PORT`));
    assert.doesNotMatch(output, /at .*\.ts/);
  });

  it('ends with two lines where it cannot listen, or cannot know where Redis or the published keys are', async () => {
    const wrong = [
      { SLUICE_HOST: '192.0.2.1' },
      { SLUICE_HOST: 'nowhere.invalid' },
      { SLUICE_REDIS_URL: '127.0.0.1:6379' },
      { SLUICE_REDIS_URL: 'redis://127.0.0.1/calls' },
      { SLUICE_JWKS_URL: 'keys.example.com' },
    ];
    for (const settings of wrong) {
      const { code, output } = await serve({ ...env, ...settings }).exited;
      const [name = ''] = Object.keys(settings);
      assert.equal(code, 1, output);
      assert.match(output, new RegExp(`^error: ${name} is .*\nhint: .*\n$`));
    }
  });

  it('leaves nothing open where a part of it cannot start', async (t) => {
    const options = { port: 0, db1Url: databases.db1.url, db2Url: databases.db2.url };
    const keys = { adminKey: ADMIN_KEY, jwtSecret: JWT_SECRET };
    for (const wrong of [{ redisUrl: 'not an address' }, { jwksUrl: 'not an address' }])
      await assert.rejects(startServer({ ...options, ...keys, ...wrong }), /Invalid URL/);
    const db2 = new pg.Client({ connectionString: databases.db2.url });
    await db2.connect();
    t.after(() => db2.end());
    const { rows } = await db2.query(
      `select application_name from pg_stat_activity where application_name like 'sluice-%'`,
    );
    assert.deepEqual(rows, []);
  });

  it('takes an empty variable for one that is not set', async () => {
    const empty = { SLUICE_MAX_REQUESTS: '', SLUICE_TRUSTED_PROXIES: '', SLUICE_LOG: '' };
    const { child, listening, exited } = serve({ ...env, ...empty });
    const url = await Promise.race([listening, exited.then(({ output }) => assert.fail(output))]);
    assert.equal((await ask(`${url}/healthz`)).status, 200);
    child.kill();
    assert.equal((await exited).code, 0);
  });

  it('refuses an admin key that can be guessed, unless it listens on loopback only', async () => {
    const short = await serve({ ...env, SLUICE_ADMIN_KEY: 'fifteen-letters' }).exited;
    assert.equal(short.code, 1);
    assert.match(short.output, /SLUICE_ADMIN_KEY has less than 16 characters.*\nhint: .*openssl rand/);
    const { child, listening, exited } = serve({ ...env, SLUICE_ADMIN_KEY: 'a', SLUICE_HOST: '127.0.0.1' });
    const url = await Promise.race([listening, exited.then(({ output }) => assert.fail(output))]);
    assert.equal((await ask(`${url}/healthz`)).status, 200);
    child.kill();
    assert.equal((await exited).code, 0);
  });

  it('refuses a short admin key where a proxy on this machine brings strangers', async () => {
    const local = { ...env, SLUICE_ADMIN_KEY: 'a', SLUICE_HOST: '127.0.0.1' };
    for (const front of [
      { SLUICE_TRUSTED_PROXIES: '1' },
      { SLUICE_PUBLIC_URL: 'https://tickets.example.com' },
    ]) {
      const { code, output } = await serve({ ...local, ...front }).exited;
      assert.equal(code, 1);
      assert.match(output, /SLUICE_ADMIN_KEY has less than 16 characters/);
    }
  });

  it('refuses a JWT secret that is shorter than HS256 needs, on loopback too', async () => {
    for (const secret of ['secret', 's'.repeat(31)])
      for (const host of [{}, { SLUICE_HOST: '127.0.0.1' }]) {
        const { code, output } = await serve({ ...env, ...host, SLUICE_JWT_SECRET: secret }).exited;
        assert.equal(code, 1);
        assert.match(output, /SLUICE_JWT_SECRET has less than 32 characters.*\nhint: .*openssl rand/);
      }
  });

  it('limits an address as the environment says', async () => {
    const limits = { SLUICE_LIMIT_LOOPBACK: '1', SLUICE_LIMIT_CLAIMS: '1,1', SLUICE_LIMIT_WRONG_KEYS: 'off' };
    const { child, listening, exited } = serve({ ...env, ...limits });
    const url = await Promise.race([listening, exited.then(({ output }) => assert.fail(output))]);
    const statuses = [];
    for (let index = 0; index < 4; index++)
      statuses.push((await claim(url, 'none', { user_id: 'u' })).status);
    assert.deepEqual(statuses.slice(0, 1), [404]);
    assert.ok(statuses.includes(429), statuses.join());
    const guesses = Array.from({ length: 20 }, () =>
      ask(`${url}/admin/session`, { headers: bearer('guess') }),
    );
    assert.deepEqual(new Set((await Promise.all(guesses)).map(({ status }) => status)), new Set([401]));
    child.kill();
    assert.equal((await exited).code, 0);
  });

  it('refuses settings about its proxy, its limits and its metrics that cannot be meant', async () => {
    const wrong = [
      { SLUICE_PUBLIC_URL: 'tickets.example.com' },
      { SLUICE_TRUSTED_PROXIES: 'yes' },
      { SLUICE_LIMIT_CLAIMS: '100' },
      { SLUICE_LIMIT_DELIVERIES: '0,10' },
      { SLUICE_LIMIT_WRONG_KEYS: 'no' },
      { SLUICE_LIMIT_STREAMS: '-1' },
      { SLUICE_LIMIT_LOOPBACK: 'yes' },
      { SLUICE_METRICS_TOKEN: 'guessed' },
      { SLUICE_METRICS_OPEN: 'yes' },
    ];
    for (const settings of wrong) {
      const { code, output } = await serve({ ...env, ...settings }).exited;
      assert.deepEqual([code, output.split(' ', 1)[0]], [1, Object.keys(settings)[0]]);
    }
  });

  it('refuses a port that is not a number', async () => {
    for (const port of ['x', '70000', '-1', '1.5']) {
      const { code, output } = await serve({ ...env, SLUICE_PORT: port }).exited;
      assert.equal(code, 1);
      assert.match(output, /SLUICE_PORT is/);
    }
  });
});

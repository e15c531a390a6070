import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findDeno, startFunction } from '../../src/stack/functions.ts';
import { PROJECT_ROOT } from '../../src/stack/settings.ts';
import { withClient } from '../../src/stack/sql.ts';
import { startWorld, type World } from './world.ts';

type Ask = { method?: string; headers?: Record<string, string>; body?: string };
type Got = { status: number; headers: NodeJS.Dict<string | string[]>; text: string };

/** The path goes out as it is written; `fetch` would tidy it up first. */
function ask(base: string, path: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Got> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

function codeOf({ text, headers }: Got): string {
  const { error } = JSON.parse(text) as { error: Record<string, string> };
  assert.deepEqual(Object.keys(error), ['code', 'message', 'hint', 'request_id']);
  assert.equal(headers['x-request-id'], error.request_id);
  assert.doesNotMatch(text, /select |pgmq|intake\.|at file:/);
  return error.code ?? '';
}

describe('bad input at the Edge Functions', () => {
  let world: World;
  let key: string;
  before(async () => {
    world = await startWorld();
    key = world.stack.db1.keys.serviceRole;
    await withClient(world.stack.db1.cluster.url, (client) =>
      client.query(`select pgmq.send('intake_dlq', '{"pool_id":"p"}', 0)`),
    );
  });
  after(() => world.stop());

  const call = (path: string, { headers, ...rest }: Ask = {}) =>
    ask(world.stack.db1.gateway.url, `/functions/v1${path}`, {
      ...rest,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    });
  const changes = () =>
    withClient(world.stack.db1.cluster.url, async (client) => {
      const sql =
        'select (select count(*) from pgmq.q_intake_dlq) as letters, (select count(*) from audit.audit_logs) as audits';
      return (await client.query(sql)).rows[0];
    });

  const credentials: [string, () => string | undefined][] = [
    ['no header', () => undefined],
    ['an empty one', () => ''],
    ['Bearer without a key', () => 'Bearer '],
    ['Bearer undefined', () => 'Bearer undefined'],
    ['the anon key', () => `Bearer ${world.stack.db1.keys.anon}`],
    ["DB2's service role key", () => `Bearer ${world.stack.db2.keys.serviceRole}`],
    ['the key and a bit more', () => `Bearer ${key}x`],
    ['the key less its end', () => `Bearer ${key.slice(0, -1)}`],
    ['another scheme', () => `Basic ${key}`],
  ];
  for (const [name, authorization] of credentials) {
    test(`${name} opens no function`, async () => {
      const value = authorization();
      const headers: Record<string, string> = value === undefined ? {} : { authorization: value };
      const body = '{"msg_ids":[1]}';
      const base = world.stack.db1.gateway.url;
      for (const [method, path] of [
        ['POST', '/bridge-worker'],
        ['GET', '/admin-dlq'],
        ['GET', '/admin-dlq/1'],
        ['POST', '/admin-dlq/discard'],
      ] as const) {
        const json = { 'content-type': 'application/json', ...headers };
        const got = await ask(base, `/functions/v1${path}`, {
          method,
          headers: json,
          ...(method === 'POST' && { body }),
        });
        assert.equal(got.status, 401, path);
        assert.equal(codeOf(got), 'auth_required');
      }
      assert.deepEqual(await changes(), { letters: '1', audits: '0' });
    });
  }

  for (const secret of [undefined, '', 'undefined']) {
    test(`a function whose key is ${JSON.stringify(secret) ?? 'not set'} lets nobody in`, async () => {
      const logFile = join(world.dir, 'run', 'closed.log');
      const closed = await startFunction({
        name: 'admin-dlq',
        binary: findDeno() ?? '',
        projectRoot: PROJECT_ROOT,
        cacheDir: join(world.dir, 'run', 'deno'),
        logFile,
        env: secret === undefined ? {} : { DB1_SUPABASE_SERVICE_ROLE_KEY: secret },
      });
      try {
        for (const authorization of ['Bearer ', 'Bearer undefined', `Bearer ${key}`]) {
          const got = await ask(`http://127.0.0.1:${closed.port}`, '/admin-dlq', {
            headers: { authorization },
          });
          assert.equal(got.status, 401);
        }
      } finally {
        await closed.stop();
      }
    });
  }

  const refusals: [what: string, path: string, ask: Ask, status: number, code: string][] = [
    ['GET on the bridge worker', '/bridge-worker', {}, 405, 'method_not_allowed'],
    ['POST on the listing', '/admin-dlq', { method: 'POST', body: '{}' }, 405, 'method_not_allowed'],
    ['GET on replay', '/admin-dlq/replay', {}, 405, 'method_not_allowed'],
    ['a double slash', '/admin-dlq//replay', { method: 'POST', body: '{"msg_ids":[1]}' }, 404, 'not_found'],
    [
      'a path above discard',
      '/admin-dlq/x/discard',
      { method: 'POST', body: '{"msg_ids":[1]}' },
      404,
      'not_found',
    ],
    [
      'an escaped dot',
      '/admin-dlq/%2e/discard',
      { method: 'POST', body: '{"msg_ids":[1]}' },
      404,
      'not_found',
    ],
    ['dots', '/admin-dlq/x/../discard', { method: 'POST', body: '{"msg_ids":[1]}' }, 404, 'not_found'],
    ['another function by dots', '/bridge-worker/../admin-dlq', {}, 404, 'not_found'],
    ['an unknown function', '/nothing', {}, 404, 'not_found'],
    ['an id that is none', '/admin-dlq/abc', {}, 422, 'invalid_input'],
    ['an unknown id', '/admin-dlq/999', {}, 404, 'not_found'],
    ['an unknown filter', '/admin-dlq?pool=p', {}, 422, 'invalid_input'],
    ['a filter named __proto__', '/admin-dlq?__proto__=p', {}, 422, 'invalid_input'],
    ['a filter twice', '/admin-dlq?pool_id=p&pool_id=q', {}, 422, 'invalid_input'],
    ['a NUL in a filter', '/admin-dlq?pool_id=%00', {}, 422, 'invalid_input'],
    ['a limit of 0', '/admin-dlq?limit=0', {}, 422, 'invalid_input'],
    ['a limit that is no number', '/admin-dlq?limit=1e3', {}, 422, 'invalid_input'],
  ];
  const bodies: [what: string, body: string, status: number, code: string][] = [
    ['no JSON', 'x', 400, 'invalid_json'],
    ['a key twice', '{"msg_ids":[1],"msg_ids":[1]}', 400, 'invalid_json'],
    ['a number beyond 2^53', '{"msg_ids":[9007199254740993]}', 400, 'invalid_json'],
    ['ids as text', '{"msg_ids":["1"]}', 422, 'invalid_input'],
    ['an id of 0', '{"msg_ids":[0]}', 422, 'invalid_input'],
    ['half an id', '{"msg_ids":[1.5]}', 422, 'invalid_input'],
    ['no ids', '{"msg_ids":[]}', 422, 'invalid_input'],
    [
      '1,001 ids',
      JSON.stringify({ msg_ids: Array.from({ length: 1001 }, (_, i) => i + 1) }),
      422,
      'invalid_input',
    ],
    ['an unknown field', '{"msg_ids":[1],"force":true}', 422, 'invalid_input'],
    ['more than 64 KB', `{"msg_ids":[1],"reason":"${'x'.repeat(70_000)}"}`, 413, 'too_large'],
  ];
  const cases = [
    ...refusals,
    ...bodies.map(([what, body, status, code]): (typeof refusals)[number] => [
      what,
      '/admin-dlq/discard',
      { method: 'POST', body },
      status,
      code,
    ]),
    [
      'a form',
      '/admin-dlq/discard',
      { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'msg_ids=1' },
      415,
      'unsupported_media_type',
    ],
    [
      'a packed body',
      '/admin-dlq/discard',
      { method: 'POST', headers: { 'content-encoding': 'gzip' }, body: '{"msg_ids":[1]}' },
      415,
      'unsupported_media_type',
    ],
    [
      'a nameless operator',
      '/admin-dlq/discard',
      { method: 'POST', headers: { 'x-operator': 'x'.repeat(201) }, body: '{"msg_ids":[1]}' },
      422,
      'invalid_input',
    ],
  ] satisfies typeof refusals;
  for (const [what, path, asked, status, code] of cases) {
    test(`${what} is answered ${status} and changes nothing`, async () => {
      const got = await call(path, asked);
      assert.equal(got.status, status, got.text);
      assert.equal(codeOf(got), code);
      if (status === 405) assert.match(String(got.headers.allow), /^(GET|POST)$/);
      assert.deepEqual(await changes(), { letters: '1', audits: '0' });
    });
  }

  test('the logs of the functions hold JSON lines and no key', () => {
    for (const name of ['bridge-worker', 'admin-dlq']) {
      const text = readFileSync(join(world.dir, 'run', `${name}.log`), 'utf8');
      assert.ok(!text.includes(key));
      const lines = text
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('Listening on'));
      for (const line of lines) assert.ok(JSON.parse(line).message);
    }
  });
});

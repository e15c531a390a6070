import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HttpError } from '#core/errors.ts';
import { jsonResponse, type Route, Router, readJson } from '#core/router.ts';
import { askRoutes, memoryLog } from './support.ts';

const SCHEMA = {
  type: 'object',
  properties: { a: { type: 'string' } },
  additionalProperties: false,
} as const;

const ROUTES: Route[] = [
  { method: 'GET', path: '/things/:thing', handle: (_, thing) => jsonResponse(200, { thing }) },
  { method: 'DELETE', path: '/things/:thing', handle: () => jsonResponse(200, {}) },
  { method: 'POST', path: '/things', handle: (request) => jsonResponse(200, readJson(request, SCHEMA)) },
  {
    method: 'GET',
    path: '/broken',
    handle: () => {
      throw new Error('select password from users');
    },
  },
  {
    method: 'GET',
    path: '/gone',
    handle: () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })),
  },
];

describe('a door', () => {
  const ask = askRoutes(ROUTES);

  it('hands the parameter of the path to the route', async () => {
    assert.deepEqual((await ask({ path: '/things/a-b_c.d~1:2@3' })).json, { thing: 'a-b_c.d~1:2@3' });
  });

  const whole = '\u{1F3AB}'.repeat(200);
  for (const [path, thing] of [
    ['/things/a%20b%2Fc', 'a b/c'],
    ['/things/%c3%bcn%C3%AFcode', 'ünïcode'],
    ['/things/%2541', '%41'],
    ['/things/...', '...'],
    ['/things/%2F..%2F', '/../'],
    ['/things/a%3Ab%40c', 'a:b@c'],
    [`/things/${encodeURIComponent("!'()*[]{}|;,+&=$?#")}`, "!'()*[]{}|;,+&=$?#"],
    [`/things/${encodeURIComponent(whole)}`, whole],
  ] as const) {
    it(`takes ${path.slice(0, 40)} for what it spells`, async () => {
      assert.deepEqual((await ask({ path })).json, { thing });
    });
  }

  for (const path of [
    '',
    '/',
    '//things/x',
    '/things//x',
    '/things/x/',
    '/things/',
    '/things/x/y',
    '/Things/x',
    '/things/%2e',
    '/things/%2E%2E/x',
    '/things/.',
    '/things/..',
    '/things/a b',
    '/things/é',
    '/things/x;y',
    '/things/%41',
    '/things/%7ex',
    '/things/x%2',
    '/things/%ff',
    '/things/%c0%ae',
    '/things/%ed%a0%80',
    '/things/%00',
    '/things/x%0a',
    '/things/%7F',
    '/things/%C2%85',
    '/things%2Fx',
    `/things/${encodeURIComponent('\u{1F3AB}'.repeat(201))}`,
    `/things/${'x'.repeat(201)}`,
    'http://host/things/x',
    '*',
  ]) {
    it(`has nothing at ${JSON.stringify(path).slice(0, 40)}`, async () => {
      const { status, json } = await ask({ path });
      assert.deepEqual([status, json.error.code], [404, 'not_found']);
    });
  }

  it('names the methods of a path that does not take this one', async () => {
    const { status, headers, json } = await ask({ method: 'PUT', path: '/things/x' });
    assert.deepEqual(
      [status, json.error.code, headers.allow],
      [405, 'method_not_allowed', 'GET, HEAD, DELETE'],
    );
  });

  it('takes HEAD where it takes GET, and then does not follow the stream', async () => {
    assert.equal((await ask({ method: 'HEAD', path: '/things/x' })).status, 200);
    assert.equal((await ask({ method: 'HEAD', path: '/things' })).status, 405);
    const follow = () => assert.fail('HEAD has no reader');
    const stream: Route = {
      method: 'GET',
      path: '/s',
      handle: () => ({ status: 200, headers: {}, body: '', follow }),
    };
    const door = new Router([stream], memoryLog());
    const request = { method: 'HEAD', path: '/s', headers: {}, body: new Uint8Array(), requestId: 'r' };
    assert.equal((await door.handle(door.find('HEAD', '/s'), request)).follow, undefined);
  });

  it('tells a refusal in one shape, with the request id', async () => {
    const { json, headers } = await ask({ path: '/nowhere' });
    assert.deepEqual(Object.keys(json.error), ['code', 'message', 'hint', 'request_id']);
    assert.equal(json.error.request_id, 'request-1');
    assert.match(headers['content-type'] ?? '', /^application\/json/);
  });

  it('says nothing of what broke inside, and logs it with the request id', async () => {
    const log = memoryLog();
    const { status, body } = await askRoutes(ROUTES, log)({ path: '/broken' });
    assert.equal(status, 500);
    assert.doesNotMatch(body, /password/);
    assert.deepEqual(
      log.lines.map((line) => [line.level, line.fields?.request_id]),
      [['error', 'request-1']],
    );
  });

  it('asks to come back where the database is gone', async () => {
    const { status, json, headers } = await ask({ path: '/gone' });
    assert.deepEqual([status, json.error.code, headers['retry-after']], [503, 'database_unavailable', '1']);
  });
});

describe('the log of an outage', () => {
  const away = (code: string) => Object.assign(new Error('no'), { code });
  const cell = (name: string) => new HttpError('cell_unavailable', `The cell ${name} is away.`);
  const log = memoryLog();
  let fault: unknown;
  const handle = () => Promise.reject(fault);
  const ask = askRoutes(
    ['/a', '/b'].map((path) => ({ method: 'GET', path, handle })),
    log,
    () => 0,
  );
  /** How many lines two requests have that fail so. */
  async function linesOf(path: string, failure: unknown): Promise<number> {
    fault = failure;
    await ask({ path });
    await ask({ path });
    return log.lines.splice(0).length;
  }

  it('has one line for refusals alike: of one route, code, hint and cause', async () => {
    assert.equal(await linesOf('/a', away('ECONNREFUSED')), 1);
    assert.equal(await linesOf('/a', away('ECONNREFUSED')), 0);
    assert.equal(await linesOf('/b', away('ECONNREFUSED')), 1);
    assert.equal(await linesOf('/a', away('28P01')), 1);
    assert.equal(await linesOf('/a', cell('one')), 1);
    assert.equal(await linesOf('/a', cell('two')), 1);
  });

  it('has a line for each failure that is no outage', async () => {
    assert.equal(await linesOf('/a', new Error('a bug')), 2);
    assert.equal(await linesOf('/a', new HttpError('processing_failed')), 2);
  });
});

describe('a JSON body', () => {
  const ask = askRoutes(ROUTES);
  const post = (headers: Record<string, string>) =>
    ask({ method: 'POST', path: '/things', headers, body: { a: 'x' } });

  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
  ]) {
    it(`may come as ${type}`, async () => assert.equal((await post({ 'content-type': type })).status, 200));
  }

  for (const type of [
    '',
    'text/plain',
    'application/json; charset=utf-16',
    'application/jsonx',
    'application/json, text/plain',
  ]) {
    it(`is refused as ${JSON.stringify(type)}`, async () => {
      assert.equal((await post({ 'content-type': type })).status, 415);
    });
  }

  for (const encoding of ['gzip', 'identity', 'br', '']) {
    it(`is refused with Content-Encoding ${JSON.stringify(encoding)}`, async () => {
      assert.equal((await post({ 'content-encoding': encoding })).status, 415);
    });
  }

  it('is refused as 400 where it is not strict JSON, with the reason', async () => {
    const { status, json } = await ask({ method: 'POST', path: '/things', body: '{"a":"x","a":"y"}' });
    assert.deepEqual([status, json.error.code], [400, 'invalid_json']);
    assert.match(json.error.hint, /duplicate_key/);
  });

  it('is refused as 422 where it is not what the schema says, with the place', async () => {
    const { status, json } = await ask({ method: 'POST', path: '/things', body: { a: 1 } });
    assert.deepEqual(
      [status, json.error.code, json.error.hint],
      [422, 'invalid_input', 'a must be of type string.'],
    );
  });
});

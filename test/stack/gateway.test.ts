import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type Gateway, startGateway } from '../../src/stack/gateway.ts';
import { freePort } from '../../src/stack/ports.ts';

describe('the gateway', () => {
  let gateway: Gateway;
  let upstream: Server;
  let upstreamPort: number;
  let seen: { method: string; url: string; authorization: string | undefined; body: string }[] = [];

  before(async () => {
    upstream = createServer(async (req, res) => {
      const { method = '', url = '', headers } = req;
      if (url.startsWith('/error')) {
        const [, code, isCut] = url.split('?')[1]?.split(',') ?? [];
        res.writeHead(400, { 'content-type': 'application/json' });
        const body = JSON.stringify({ code, details: null, hint: null, message: 'as PostgREST says it' });
        if (isCut === 'cut') res.write(body.slice(0, 10), () => res.destroy());
        else res.end(body);
        return;
      }
      seen.push({ method, url, authorization: headers.authorization, body: await textOf(req) });
      res.writeHead(206, { 'content-range': '0-0/*', 'x-from': 'upstream' });
      res.end('answer');
    });
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
    upstreamPort = (upstream.address() as AddressInfo).port;
    gateway = await startGateway({ port: 0, name: 'a test', variable: 'NONE' });
  });
  beforeEach(() => {
    seen = [];
    gateway.upstreams.restPort = upstreamPort;
  });
  after(async () => {
    await gateway.stop();
    upstream.closeAllConnections();
    await new Promise((resolve) => upstream.close(resolve));
  });

  const codeOf = async (answer: Response) => {
    const body = (await answer.json()) as { error: Record<string, string> };
    assert.deepEqual(Object.keys(body.error), ['code', 'message', 'hint', 'request_id']);
    assert.equal(answer.headers.get('x-request-id'), body.error.request_id);
    return body.error.code;
  };

  test('an apikey stands in for the missing Authorization header', async () => {
    const answer = await fetch(`${gateway.url}/rest/v1/rpc/x?a=1`, {
      method: 'POST',
      headers: { apikey: 'k' },
      body: '{}',
    });
    assert.equal(answer.status, 206);
    assert.equal(answer.headers.get('x-from'), 'upstream');
    assert.equal(await answer.text(), 'answer');
    assert.deepEqual(seen, [{ method: 'POST', url: '/rpc/x?a=1', authorization: 'Bearer k', body: '{}' }]);
  });

  test('an Authorization header is passed on as it is', async () => {
    const headers = { apikey: 'k', authorization: 'Bearer user' };
    await (await fetch(`${gateway.url}/rest/v1/things`, { headers })).text();
    assert.equal(seen[0]?.authorization, 'Bearer user');
  });

  test('without any key the answer is 401 and nothing reaches the service', async () => {
    const answer = await fetch(`${gateway.url}/rest/v1/things`);
    assert.equal(answer.status, 401);
    assert.equal(await codeOf(answer), 'no_api_key');
    assert.deepEqual(seen, []);
  });

  test("a browser's preflight passes without a key", async () => {
    assert.equal((await fetch(`${gateway.url}/rest/v1/things`, { method: 'OPTIONS' })).status, 206);
  });

  test('a chunked DELETE arrives as one request with its body', async () => {
    await new Promise<void>((resolve, reject) => {
      const req = request(`${gateway.url}/rest/v1/things`, {
        method: 'DELETE',
        headers: { apikey: 'k', 'transfer-encoding': 'chunked' },
      });
      req.on('error', reject).on('response', (answer) => answer.resume().on('end', resolve));
      req.write('GET /smuggled HTTP/1.1\r\n');
      req.end('\r\n');
    });
    assert.deepEqual(
      seen.map(({ url, body }) => [url, body]),
      [['/things', 'GET /smuggled HTTP/1.1\r\n\r\n']],
    );
  });

  for (const path of ['/', '/rest/v2/x', '/rest/v1x', '//rest/v1/x', '/%72est/v1/x', '/admin']) {
    test(`there is nothing at ${path}`, async () => {
      const answer = await fetch(gateway.url + path, { headers: { apikey: 'k' } });
      assert.equal(answer.status, 404);
      assert.equal(await codeOf(answer), 'not_found');
    });
  }

  test('a function answers the pages of other origins itself, as on hosted Supabase', async () => {
    gateway.upstreams.functionPorts = new Map([['hello', upstreamPort]]);
    const headers = { origin: 'https://shop.example', 'access-control-request-method': 'POST' };
    for (const method of ['OPTIONS', 'POST']) {
      const answer = await fetch(`${gateway.url}/functions/v1/hello`, { method, headers });
      assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [206, null]);
    }
    assert.deepEqual(
      seen.map(({ method }) => method),
      ['OPTIONS', 'POST'],
    );
    delete gateway.upstreams.functionPorts;
  });

  test('functions that do not run are answered 503', async () => {
    const answer = await fetch(`${gateway.url}/functions/v1/bridge-worker`, { method: 'POST' });
    assert.equal(answer.status, 503);
    assert.equal(await codeOf(answer), 'functions_not_running');
  });

  test('a service that is down or not there yet is answered 503 with Retry-After', async () => {
    gateway.upstreams.restPort = await freePort();
    const down = await fetch(`${gateway.url}/rest/v1/things`, { headers: { apikey: 'k' } });
    assert.equal(down.status, 503);
    assert.equal(down.headers.get('retry-after'), '1');
    assert.equal(await codeOf(down), 'upstream_unavailable');
    delete gateway.upstreams.restPort;
    const starting = await fetch(`${gateway.url}/rest/v1/things`, { headers: { apikey: 'k' } });
    assert.equal(starting.headers.get('retry-after'), '1');
    assert.equal(await codeOf(starting), 'rest_not_running');
  });

  test('an error with an empty code, or one that is cut off, is answered 503 with Retry-After; others pass', async () => {
    const post = (path: string) =>
      fetch(`${gateway.url}/rest/v1/error?${path}`, { method: 'POST', headers: { apikey: 'k' }, body: '{}' });
    for (const path of [',', ',PGRST102,cut']) {
      const answer = await post(path);
      assert.equal(answer.status, 503, path);
      assert.equal(answer.headers.get('retry-after'), '1');
      assert.equal(await codeOf(answer), 'upstream_unavailable');
    }
    const refused = await post(',PGRST102');
    assert.equal(refused.status, 400);
    assert.equal(((await refused.json()) as { code: string }).code, 'PGRST102');
  });

  test('a taken port names the port, who wants it and the variable that moves it', async () => {
    await assert.rejects(
      startGateway({ port: gateway.port, name: 'the API of DB1', variable: 'DB1_API_PORT' }),
      (error: Error & { hint: string }) => {
        assert.match(error.message, new RegExp(`port ${gateway.port}, wanted by the API of DB1, is taken`));
        assert.match(error.hint, /DB1_API_PORT=/);
        return true;
      },
    );
  });
});

async function textOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

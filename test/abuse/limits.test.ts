// How much of everything the HTTP server takes at once, and that what is taken is always given back.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Follow, type HttpRequest, type Route, Router } from '#core/router.ts';
import { Admission } from '../../src/server/admission.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';
import { type Answer, ask, assertRefusal, exchange, parseAnswer } from '../server/support.ts';

const TIMEOUTS = { headersMs: 60_000, requestMs: 60_000, slowMs: 60_000 };
const MAX_REQUESTS = 3;
const MAX_HELD_BYTES = 1_000;
const MAX_BODY_BYTES = 900;
const OK = { status: 200, headers: {}, body: 'ok' };
const HEAD = 'POST /slow HTTP/1.1\r\nHost: x\r\n';

describe('the limits of the HTTP server', () => {
  const inside = new EventEmitter();
  let opened: (() => void)[] = [];
  const slowly = async (request: HttpRequest) => {
    const done = new Promise<void>((resolve) => opened.push(resolve));
    inside.emit('came', request.path);
    await done;
    return OK;
  };
  const follow: Follow = (send, closed) => {
    send('hello');
    inside.emit('followed', closed);
  };
  const routes: Route[] = [
    { method: 'GET', path: '/slow', handle: slowly },
    { method: 'POST', path: '/slow', maxBodyBytes: MAX_BODY_BYTES, handle: slowly },
    { method: 'GET', path: '/fast', handle: () => OK },
    { method: 'POST', path: '/fast', maxBodyBytes: MAX_BODY_BYTES, handle: () => OK },
    { method: 'GET', path: '/healthz', handle: () => OK },
    { method: 'POST', path: '/v1/pools/:pool/claims', handle: () => OK },
    { method: 'POST', path: '/webhooks/:endpoint', maxBodyBytes: MAX_BODY_BYTES, handle: slowly },
    { method: 'GET', path: '/stream', handle: () => ({ ...OK, follow }) },
  ];
  const log = memoryLog();
  const limits = { maxRequests: MAX_REQUESTS, maxBytes: MAX_HELD_BYTES };
  const admission = new Admission(1, { pages: limits, events: limits });
  const server = new HttpServer(new Router(routes, log), log, TIMEOUTS, admission);
  let port = 0;
  let url = '';

  before(async () => {
    port = await server.listen(0, '127.0.0.1');
    url = `http://127.0.0.1:${port}`;
  });
  beforeEach(() => {
    opened = [];
  });
  after(() => server.close());

  /** Requests that are inside until `opened` lets them go. */
  async function fill(count: number): Promise<Promise<Answer>[]> {
    const asked: Promise<Answer>[] = [];
    for (let index = 0; index < count; index++) {
      const came = once(inside, 'came');
      asked.push(ask(`${url}/slow`));
      await came;
    }
    return asked;
  }
  async function empty(asked: Promise<Answer>[]): Promise<void> {
    for (const open of opened) open();
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, 200);
  }

  it('refuses with 429 and Retry-After what is one too many, answers other groups, and then takes all again', async () => {
    const asked = await fill(MAX_REQUESTS);
    for (const request of [{}, { method: 'POST', body: '{}' }]) {
      const refused = await ask(`${url}/fast`, request);
      assertRefusal(refused, 429, 'too_many_requests');
      assert.equal(refused.headers['retry-after'], '1');
    }
    assert.equal((await ask(`${url}/healthz`)).status, 200);
    assert.equal((await ask(`${url}/v1/pools/p/claims`, { method: 'POST', body: '{}' })).status, 200);
    await empty(asked);
    assert.equal((await ask(`${url}/fast`)).status, 200);
  });

  it('stops counting a client that left in the middle of a body, or before its answers', async () => {
    for (let index = 0; index < 4 * MAX_REQUESTS; index++) {
      await new Promise<void>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.write(`${HEAD}Content-Length: 50\r\n\r\n{"x`, () => socket.resetAndDestroy());
        });
        socket.on('close', () => resolve());
      });
    }
    // More requests on one connection: they wait for the first one's answer, and the client leaves before it.
    const came = once(inside, 'came');
    const more = 'GET /fast HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(MAX_REQUESTS);
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET /slow HTTP/1.1\r\nHost: x\r\n\r\n${more}`),
    );
    await came;
    socket.destroy();
    await once(socket, 'close');
    await empty([]);
    await empty(await fill(MAX_REQUESTS));
  });

  it('answers a whole request though garbage follows it on its connection, and closes after it', async () => {
    const came = once(inside, 'came');
    const answered = exchange(port, (socket) =>
      socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGARBAGE\r\n\r\n'),
    );
    await came;
    // The server has read both by the time it answers this later request.
    assert.equal((await ask(`${url}/fast`)).status, 200);
    for (const open of opened) open();
    const raw = await answered;
    assert.match(raw, /^HTTP\/1\.1 200 .*\r\nconnection: close/is);
    assert.equal(raw.split('HTTP/1.1').length, 2, 'one answer');
  });

  it('counts no stream', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 2 * MAX_REQUESTS }, async () => {
        const socket = connect(port, '127.0.0.1', () =>
          socket.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n'),
        );
        await once(socket, 'data');
        return socket;
      }),
    );
    assert.equal((await ask(`${url}/fast`)).status, 200);
    for (const socket of sockets) socket.destroy();
  });

  it('begins a stream in its turn on the connection, and lets go of it when its reader leaves', async () => {
    const came = once(inside, 'came');
    const asked = 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /stream HTTP/1.1\r\nHost: x\r\n\r\n';
    const followed = once(inside, 'followed');
    const socket = connect(port, '127.0.0.1', () => socket.write(asked));
    await came;
    await empty([]);
    const [closed] = (await followed) as [AbortSignal];
    assert.equal(closed.aborted, false);
    const aborted = once(closed, 'abort');
    socket.destroy();
    await aborted;
  });

  it('leaves claims their bytes where another group has used up its own', async () => {
    const came = once(inside, 'came');
    const held = ask(`${url}/webhooks/x`, { method: 'POST', body: 'x'.repeat(MAX_BODY_BYTES) });
    await came;
    const body = 'x'.repeat(MAX_HELD_BYTES - MAX_BODY_BYTES + 1);
    assertRefusal(await ask(`${url}/webhooks/x`, { method: 'POST', body }), 429, 'too_many_requests');
    assert.equal((await ask(`${url}/v1/pools/p/claims`, { method: 'POST', body })).status, 200);
    await empty([held]);
  });

  it('holds no more bytes of bodies than it may, and takes them again when others have been answered', async () => {
    const came = once(inside, 'came');
    const held = ask(`${url}/slow`, { method: 'POST', body: 'x'.repeat(MAX_BODY_BYTES) });
    await came;
    const refused = await ask(`${url}/fast`, {
      method: 'POST',
      body: 'x'.repeat(MAX_HELD_BYTES - MAX_BODY_BYTES + 1),
    });
    assertRefusal(refused, 429, 'too_many_requests');
    const small = { method: 'POST', body: 'x'.repeat(MAX_HELD_BYTES - MAX_BODY_BYTES) };
    assert.equal((await ask(`${url}/fast`, small)).status, 200);
    await empty([held]);
    assert.equal(
      (await ask(`${url}/fast`, { method: 'POST', body: 'x'.repeat(MAX_BODY_BYTES) })).status,
      200,
    );
  });

  it('sees a header that comes after a thousand others', async () => {
    const many = 'x: y\r\n'.repeat(1_100);
    const raw = await exchange(port, (socket) =>
      socket.write(`GET /fast HTTP/1.1\r\n${many}Host: x\r\nConnection: close\r\n\r\n`),
    );
    assert.equal(Number(/^HTTP\/1\.1 (\d+)/.exec(raw)?.[1]), 200);
  });

  it('answers 400 of its own where HTTP/1.1 names no host or two, and takes an unknown expectation', async () => {
    const bare = parseAnswer(
      await exchange(port, (socket) => socket.write('GET /fast HTTP/1.1\r\nConnection: close\r\n\r\n')),
    );
    assert.deepEqual([bare.status, bare.json.error.code], [400, 'bad_request']);
    for (const hosts of ['Host: x\r\nHost: x', 'Host: x\r\nHOST: y', 'Host: x\r\nA: b\r\nhost: ']) {
      const request = `GET /fast HTTP/1.1\r\n${hosts}\r\nConnection: close\r\n\r\n`;
      const twice = parseAnswer(await exchange(port, (socket) => socket.write(request)));
      assert.deepEqual([twice.status, twice.json.error.code], [400, 'bad_request'], hosts);
    }
    const expecting = await ask(`${url}/fast`, { headers: { expect: 'the-unexpected' } });
    assert.equal(expecting.status, 200);
  });
});

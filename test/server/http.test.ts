import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { type HttpRequest, Router } from '#core/router.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';
import { ask, assertRefusal, claim, exchange, parseAnswer } from './support.ts';

const SHORT_TIMEOUTS = { headersMs: 200, requestMs: 400, checkMs: 50 };
const PATH = '/v1/pools/p/claims';
const HEAD = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
const BODY = '{"user_id":"ann"}';

describe('the HTTP adapter', () => {
  const log = memoryLog();
  const ports = memoryPorts();
  const door = new Router(new ClaimRoutes(ports).routes(), log);
  const server = new HttpServer(door, log);
  let port = 0;
  let url = '';

  before(async () => {
    port = await server.listen(0);
    url = `http://127.0.0.1:${port}`;
  });
  after(() => server.close());

  it('answers a claim', async () => {
    const answer = await claim(url, 'p', { user_id: 'ann' });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers['content-length'], String(answer.text.length));
  });

  it('keeps a sane request id and replaces any other', async () => {
    const sane = await claim(url, 'p', {}, { 'x-request-id': 'my.id-1_A' });
    assert.equal(sane.headers['x-request-id'], 'my.id-1_A');
    assertRefusal(sane, 422, 'invalid_input');
    for (const id of ['', 'a b', 'x'.repeat(65), '"quoted"', '<b>']) {
      const answer = await claim(url, 'p', {}, { 'x-request-id': id });
      assert.match(String(answer.headers['x-request-id']), /^[a-z0-9-]{1,64}$/);
      assertRefusal(answer, 422, 'invalid_input');
    }
  });

  it('gives each answer an id of its own', async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => claim(url, 'p', {})));
    assert.equal(new Set(ids.map((answer) => answer.headers['x-request-id'])).size, 50);
  });

  it('serves many requests on one connection', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => claim(url, 'p', { user_id: `u${index}` }, {}, agent)),
    );
    agent.destroy();
    assert.deepEqual(
      answers.map((answer) => answer.json.user_id),
      Array.from({ length: 20 }, (_, index) => `u${index}`),
    );
  });

  it('answers pipelined requests in their order', async () => {
    const raw = await exchange(port, (socket) => {
      const one = `${HEAD}Content-Length: ${BODY.length}\r\n`;
      socket.write(`${one}\r\n${BODY}${one.replace('/p/', '/q/')}Connection: close\r\n\r\n${BODY}`);
    });
    assert.deepEqual(
      [...raw.matchAll(/"pool_id":"(\w)"/g)].map((found) => found[1]),
      ['p', 'q'],
    );
  });

  it('puts a body together that arrives byte by byte', async () => {
    const raw = await exchange(port, (socket) => {
      socket.setNoDelay(true);
      socket.write(`${HEAD}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n`);
      for (const byte of BODY) socket.write(`1\r\n${byte}\r\n`);
      socket.write('0\r\n\r\n');
    });
    assert.equal(parseAnswer(raw).status, 201);
  });

  it('puts a body of 50,000 chunks together', async () => {
    const body = `{"a":"${'x'.repeat(49_992)}"}`;
    const echo = {
      method: 'POST',
      path: '/echo',
      maxBodyBytes: 1024 * 1024,
      handle: ({ body: received }: HttpRequest) => ({
        status: 200,
        headers: {},
        body: Buffer.from(received).toString(),
      }),
    };
    const chunked = new HttpServer(new Router([echo], log), log);
    const chunkedPort = await chunked.listen(0);
    const raw = await exchange(chunkedPort, (socket) => {
      socket.write(
        'POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
      );
      socket.write([...body].map((byte) => `1\r\n${byte}\r\n`).join(''));
      socket.write('0\r\n\r\n');
    });
    await chunked.close();
    assert.equal(raw.slice(raw.indexOf('\r\n\r\n') + 4), body);
  });

  it('ignores the query', async () => {
    const answer = await ask(`${url}${PATH}?x=//y`, { method: 'POST', body: { user_id: 'ann' } });
    assert.equal(answer.status, 201);
  });

  it('takes a body of exactly 4096 bytes', async () => {
    assert.equal((await claim(url, 'p', `{"user_id":"ann"${' '.repeat(4096 - 17)}}`)).status, 201);
  });

  it('refuses a larger body by its length alone, before a byte of it has arrived', async () => {
    const raw = await exchange(port, (socket) => socket.write(`${HEAD}Content-Length: 4097\r\n\r\n`));
    const { status, head, json } = parseAnswer(raw);
    assert.deepEqual([status, json.error.code], [413, 'too_large']);
    assert.match(head, /connection: close/);
  });

  it('counts a body that does not tell its length, and closes the connection', async () => {
    const raw = await exchange(port, (socket) => {
      socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
      for (let part = 0; part < 5; part++) socket.write(`400\r\n${'x'.repeat(1024)}\r\n`);
    });
    assert.equal(parseAnswer(raw).status, 413);
  });

  it('gets its refusal through to a client that sends a megabyte and only then listens', async () => {
    const answer = await claim(url, 'p', 'x'.repeat(1_000_000));
    assertRefusal(answer, 413, 'too_large');
  });

  it('answers 404 rather than 413 where there is nothing', async () => {
    const answer = await ask(`${url}/nowhere`, { method: 'POST', body: 'x'.repeat(100_000) });
    assertRefusal(answer, 404, 'not_found');
  });

  it('refuses headers of more than 16 KB with 431', async () => {
    const answer = await ask(url + PATH, { headers: { 'x-large': 'x'.repeat(20_000) } });
    assertRefusal(answer, 431, 'headers_too_large');
  });

  for (const [what, start] of [
    ['headers', HEAD],
    ['a body', `${HEAD}Content-Length: 50\r\n\r\n{"user`],
  ] as const)
    it(`refuses ${what} without an end with 408`, async (t) => {
      // A server of its own: here a stalled machine would make an answer to anything else a 408 too.
      const impatient = new HttpServer(door, log, SHORT_TIMEOUTS);
      t.after(() => impatient.close());
      const impatientPort = await impatient.listen(0);
      const { status, json } = parseAnswer(await exchange(impatientPort, (socket) => socket.write(start)));
      assert.deepEqual([status, json.error.code], [408, 'timeout']);
    });

  it('refuses a body that comes too slowly with 408, long before the time for the whole request is over', async (t) => {
    const impatient = new HttpServer(door, log, { requestMs: 600_000, checkMs: 20, slowMs: 100 });
    t.after(() => impatient.close());
    const impatientPort = await impatient.listen(0);
    const start = `${HEAD}Content-Length: 4000\r\n\r\n{"user`;
    const { status, json } = parseAnswer(await exchange(impatientPort, (socket) => socket.write(start)));
    assert.deepEqual([status, json.error.code], [408, 'timeout']);
  });

  for (const garbage of [
    'GARBAGE\r\n\r\n',
    `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
    'GET / HTTP/1.1\r\nx\u0000y: 1\r\n\r\n',
  ]) {
    it(`refuses ${JSON.stringify(garbage.slice(0, 30))}… with 400`, async () => {
      const { status, json } = parseAnswer(await exchange(port, (socket) => socket.write(garbage)));
      assert.deepEqual([status, json.error.code], [400, 'bad_request']);
    });
  }

  it('outlives a client that leaves in the middle of its body', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(`${HEAD}Content-Length: 50\r\n\r\n{"user`, () => socket.resetAndDestroy());
      });
      socket.on('close', () => resolve());
    });
    assert.equal((await claim(url, 'p', { user_id: 'ann' })).status, 201);
  });

  it('writes one line per request, with its id', async () => {
    log.lines.length = 0;
    await claim(url, 'p', { user_id: 'ann' }, { 'x-request-id': 'seen-1' });
    assert.deepEqual(
      log.lines.map(({ level, fields }) => [level, fields?.request_id, fields?.status]),
      [['debug', 'seen-1', 201]],
    );
  });
});

/** A server whose database answers only when the test says so; `received(n)` resolves once n claims are inside. */
async function stalledServer(maxWaiting?: number) {
  const log = memoryLog();
  const ports = memoryPorts();
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const claimBatch = ports.claimBatch;
  ports.claimBatch = async (...asked) => {
    await gate;
    return claimBatch(...asked);
  };
  const claims = new ClaimRoutes(ports, maxWaiting);
  const inside = new EventEmitter();
  let count = 0;
  const routes = claims.routes().map((route) => ({
    ...route,
    handle: (request: HttpRequest, parameter: string) => {
      const answer = route.handle(request, parameter);
      // The request is in the line once the microtasks before it have run.
      setImmediate(() => inside.emit('count', ++count));
      return answer;
    },
  }));
  const received = async (wanted: number) => {
    while (count < wanted) await once(inside, 'count');
  };
  const server = new HttpServer(new Router(routes, log), log);
  const port = await server.listen(0);
  return { server, claims, port, url: `http://127.0.0.1:${port}`, release, received, log };
}

describe('under load', () => {
  it('refuses with 503 and Retry-After what would wait too long, and answers the rest', async () => {
    const { server, url, release, received, log } = await stalledServer(2);
    const first = claim(url, 'p', { user_id: 'u1' });
    await received(1);
    const crowd = Array.from({ length: 10 }, (_, index) => claim(url, 'p', { user_id: `u${index + 2}` }));
    await received(11);
    release();
    const answers = await Promise.all([first, ...crowd]);
    const refused = answers.filter((answer) => answer.status !== 201);
    assert.equal(refused.length, 8, 'one is with the database, two wait, the others find the line full');
    for (const answer of refused) {
      assertRefusal(answer, 503, 'overloaded');
      assert.equal(answer.headers['retry-after'], '1');
    }
    const written = log.lines.filter((line) => line.level !== 'debug');
    assert.deepEqual(written, [], 'back-pressure is not logged one by one');
    await server.close();
  });

  it('answers everything it accepted before it stops, and closes every connection', async () => {
    const { server, claims, url, port, release, received } = await stalledServer();
    const agent = new Agent({ keepAlive: true });
    const accepted = Array.from({ length: 50 }, (_, index) =>
      claim(url, 'p', { user_id: `u${index}` }, {}, agent),
    );
    await received(50);
    const stopped = Promise.all([server.close(), claims.drain()]);
    await assert.rejects(
      exchange(port, () => {}),
      { code: 'ECONNREFUSED' },
    );
    release();
    for (const answer of await Promise.all(accepted)) {
      assert.equal(answer.status, 201);
      assert.equal(answer.headers.connection, 'close');
    }
    await stopped;
    agent.destroy();
  });
});

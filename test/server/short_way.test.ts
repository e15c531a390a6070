// Claims that come whole and in one packet are read and answered without node:http. What both ways answer is compared byte by byte,
// and what only node:http may read has to get there.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { Router } from '#core/router.ts';
import { Admission } from '../../src/server/admission.ts';
import { HttpServer } from '../../src/server/http.ts';
import { plainAnswer } from '../../src/server/plain_answer.ts';
import { ShortWay } from '../../src/server/short_way.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';
import { exchange, parseAnswer } from './support.ts';

const BODY = '{"user_id":"ann"}';
const JSON_TYPE = 'Content-Type: application/json\r\n';

interface Asked {
  line?: string;
  headers?: string;
  body?: string;
}

const text = ({ line = 'POST /v1/pools/p/claims HTTP/1.1', headers = JSON_TYPE, body = BODY }: Asked = {}) =>
  `${line}\r\nHost: x\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** The requests of node:http from now on. */
function countOfNode(): { count: number; stop(): void } {
  const counted = { count: 0, stop: () => void unsubscribe('http.server.request.start', add) };
  function add(): void {
    counted.count++;
  }
  subscribe('http.server.request.start', add);
  return counted;
}

describe('a claim', () => {
  const ports = memoryPorts();
  const log = memoryLog();
  const router = new Router(new ClaimRoutes(ports).routes(), log);
  const server = new HttpServer(router, log);
  let port = 0;
  let node: ReturnType<typeof countOfNode>;

  before(async () => {
    port = await server.listen(0, '127.0.0.1');
  });
  beforeEach(() => {
    node = countOfNode();
  });
  afterEach(() => node.stop());
  after(() => server.close());

  async function open(): Promise<Socket> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  }

  async function answerOn(socket: Socket, request: string): Promise<string> {
    socket.write(request);
    const [bytes] = await once(socket, 'data');
    return String(bytes);
  }

  it('comes by the short way, and the next one of its connection too', async (t) => {
    const socket = await open();
    t.after(() => socket.destroy());
    for (let turn = 0; turn < 3; turn++)
      assert.match(await answerOn(socket, text()), /^HTTP\/1.1 201 Created\r\n/);
    assert.equal(node.count, 0);
  });

  describe('is answered as by node:http', () => {
    /** A header twice is node:http's. */
    const TWICE = 'X-Twice: 1\r\nX-Twice: 2\r\n';
    const ID = 'X-Request-Id: the-same\r\n';
    const cases: Record<string, Asked> = {
      'a claim': {},
      'a user that is not ASCII': { body: '{"user_id":"Žofie"}' },
      'broken JSON': { body: '{"user_id":' },
      'no body': { body: '' },
      'a field that is not known': { body: '{"user":"ann"}' },
      'another type': { headers: 'Content-Type: text/plain\r\n' },
      'a wrong token': { headers: `${JSON_TYPE}Authorization: Bearer wrong\r\n` },
      'a query': { line: 'POST /v1/pools/p/claims?a=b?c HTTP/1.1' },
      'an escaped pool': { line: 'POST /v1/pools/p%20q/claims HTTP/1.1' },
      'spaces around a value': { headers: 'Content-Type:   application/json  \r\n' },
      'names in capitals': { headers: 'CONTENT-TYPE: application/json\r\nIDEMPOTENCY-KEY: k\r\n' },
    };
    for (const [what, asked] of Object.entries(cases))
      it(what, async (t) => {
        const [socket, other] = [await open(), await open()];
        t.after(() => [socket, other].map((one) => one.destroy()));
        const headers = `${ID}${asked.headers ?? JSON_TYPE}`;
        const withoutDate = (answer: string) => answer.replace(/\r\nDate: [^\r]+GMT\r\n/, '\r\nDate\r\n');
        const short = withoutDate(await answerOn(socket, text({ ...asked, headers })));
        assert.equal(node.count, 0, 'the short way');
        const long = withoutDate(await answerOn(other, text({ ...asked, headers: headers + TWICE })));
        assert.equal(node.count, 1, 'node:http');
        assert.equal(short, long);
        assert.match(short, /\r\nDate\r\n/);
      });

    it('with the last request of a connection', async () => {
      const withoutDate = (answer: string) => answer.replace(/\r\nDate: [^\r]+GMT\r\n/, '\r\nDate\r\n');
      const headers = `${ID}${JSON_TYPE}Connection: Close\r\n`;
      const short = withoutDate(await exchange(port, (socket) => socket.write(text({ headers }))));
      assert.equal(node.count, 0);
      const long = withoutDate(
        await exchange(port, (socket) => socket.write(text({ headers: headers + TWICE }))),
      );
      assert.equal(node.count, 1);
      assert.equal(short, long);
      assert.match(short, /\r\nConnection: close\r\n/);
    });
  });

  describe('is for node:http', () => {
    const cases: Record<string, string> = {
      'with another version': text({ line: 'POST /v1/pools/p/claims HTTP/1.0' }),
      'with a host of its own in the path': text({ line: 'POST http://x/v1/pools/p/claims HTTP/1.1' }),
      'with a length twice': text({ headers: `${JSON_TYPE}Content-Length: ${BODY.length}\r\n` }),
      'with a length and chunks': text({ headers: `${JSON_TYPE}Transfer-Encoding: chunked\r\n` }),
      'with a length that is not digits': text().replace(/(?<=Length: )/, '+'),
      'with a length that is written in hexadecimal': text().replace(/Length: .*/, 'Length: 0x11'),
      'with a header in two lines': text({ headers: `${JSON_TYPE}X-A: b\r\n c\r\n` }),
      'with a space behind a name': text({ headers: 'Content-Type : application/json\r\n' }),
      'with a name that is not a token': text({ headers: `${JSON_TYPE}X(A): b\r\n` }),
      'with a bare line feed': text({ headers: `${JSON_TYPE}X-A: b\n` }),
      'with a bare carriage return': text({ headers: `${JSON_TYPE}X-A: b\rX-B: c\r\n` }),
      'with a NUL': text({ headers: `${JSON_TYPE}X-A: \0\r\n` }),
      'with a tab behind its length': text().replace(/(?<=Length: \d+)/, '\t'),
      'with two hosts': text({ headers: `${JSON_TYPE}HOST: y\r\n` }),
      'without a host': text().replace('Host: x\r\n', ''),
      'with an expectation': text({ headers: `${JSON_TYPE}Expect: something\r\n` }),
      'with a name that every object has': text({ headers: `${JSON_TYPE}constructor: x\r\n` }),
      'with a body that is too long': text({ body: 'x'.repeat(4097) }),
      'to a pool that cannot be': text({ line: 'POST /v1/pools/%41/claims HTTP/1.1' }),
      'to another place': text({ line: 'POST /v1/claims/x HTTP/1.1' }),
    };
    for (const [what, request] of Object.entries(cases))
      it(what, async (t) => {
        const socket = await open();
        t.after(() => socket.destroy());
        const answer = await answerOn(socket, request);
        // Its parser answers bad_request before there is a request to count.
        assert.ok(node.count === 1 || answer.includes('"code":"bad_request"'), answer);
      });

    it('in two packets', async (t) => {
      const socket = await open();
      t.after(() => socket.destroy());
      socket.setNoDelay(true).write(text().slice(0, 30));
      // The server has read the first part when it has answered another connection.
      const other = await open();
      t.after(() => other.destroy());
      assert.match(await answerOn(other, text()), / 201 /);
      assert.match(await answerOn(socket, text().slice(30)), / 201 /);
      assert.equal(node.count, 1);
    });
  });

  it('comes behind another kind of request, and before one, on one connection', async (t) => {
    const socket = await open();
    t.after(() => socket.destroy());
    assert.match(await answerOn(socket, text()), / 201 /);
    assert.match(await answerOn(socket, 'GET /v1/claims/x HTTP/1.1\r\nHost: x\r\n\r\n'), / 422 /);
    assert.match(await answerOn(socket, text()), / 201 /);
    assert.equal(node.count, 2, 'a connection that has left the short way stays away from it');
  });

  it('waits for the one before it where a client does not wait for answers', async (t) => {
    const socket = await open();
    t.after(() => socket.destroy());
    const { claimBatch } = ports;
    let letGo: () => void = () => undefined;
    const came = new Promise<void>((resolve) => {
      ports.claimBatch = async (...asked) => {
        resolve();
        await new Promise<void>((go) => {
          letGo = go;
        });
        return claimBatch(...asked);
      };
    });
    t.after(() => {
      ports.claimBatch = claimBatch;
    });
    socket.write(text({ headers: `${JSON_TYPE}X-Request-Id: one\r\n` }));
    await came;
    ports.claimBatch = claimBatch;
    socket.write(text({ headers: `${JSON_TYPE}X-Request-Id: two\r\n` }));
    const three = text({ headers: `${JSON_TYPE}X-Request-Id: three\r\n` });
    const four = text({ headers: `${JSON_TYPE}Connection: close\r\nX-Request-Id: four\r\n` });
    socket.write(three + four);
    const other = await open();
    t.after(() => other.destroy());
    assert.match(await answerOn(other, 'GET /v1/claims/x HTTP/1.1\r\nHost: x\r\n\r\n'), / 422 /);
    const seen = ports.memory.seen.length;
    letGo();
    let all = '';
    for await (const bytes of socket) all += String(bytes);
    assert.deepEqual(
      [...all.matchAll(/x-request-id: (\w+)/g)].map(([, id]) => id),
      ['one', 'two', 'three', 'four'],
    );
    assert.equal(ports.memory.seen.length, seen + 4, 'each was claimed, once');
  });

  it('is answered where the client has said all that it will', async () => {
    const raw = await exchange(port, (socket) => socket.end(text()));
    assert.equal(parseAnswer(raw).status, 201);
    assert.equal(node.count, 0);
  });

  it('that never comes is refused with 408, as are its first bytes', async (t) => {
    // A server of its own: here a stalled machine would make an answer to anything else a 408 too.
    const impatient = new HttpServer(router, log, { headersMs: 200, checkMs: 20 });
    t.after(() => impatient.close());
    const impatientPort = await impatient.listen(0, '127.0.0.1');
    for (const start of ['', 'POST /v1']) {
      const raw = await exchange(impatientPort, (socket) => start !== '' && socket.write(start));
      const { status, json } = parseAnswer(raw);
      assert.deepEqual([status, json.error.code], [408, 'timeout']);
    }
  });

  it('is not the end of the server where its client resets the connection before the answer', async () => {
    const { claimBatch } = ports;
    const socket = await open();
    const left = once(socket, 'close');
    ports.claimBatch = async (...asked) => {
      socket.resetAndDestroy();
      await left;
      return claimBatch(...asked);
    };
    socket.write(text());
    await left;
    ports.claimBatch = claimBatch;
    const next = await open();
    assert.match(await answerOn(next, text()), / 201 /);
    next.destroy();
  });
});

it('an answer whose header would be more than its line is not written', () => {
  const headers = { 'retry-after': '1\r\nset-cookie: a=b' };
  assert.throws(() => plainAnswer({ status: 200, headers, body: '' }, 'id', true), {
    code: 'ERR_INVALID_CHAR',
  });
});

it('a claim that is one too many is refused by the short way, as by node:http', async (t) => {
  const log = memoryLog();
  const routes = new ClaimRoutes(memoryPorts()).routes();
  const none = { claims: { maxRequests: 0, maxBytes: 0 } };
  const server = new HttpServer(new Router(routes, log), log, {}, new Admission(0, none));
  const port = await server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  const headers = `${JSON_TYPE}X-Request-Id: the-same\r\nConnection: close\r\n`;
  const node = countOfNode();
  t.after(() => node.stop());
  const refused = async (more: string) =>
    parseAnswer(await exchange(port, (socket) => socket.write(text({ headers: headers + more }))));
  const short = await refused('');
  assert.equal(node.count, 0);
  assert.deepEqual([short.status, short.json.error.code], [429, 'too_many_requests']);
  assert.match(short.head, /retry-after: 1/);
  assert.deepEqual((await refused('A: 1\r\nA: 2\r\n')).json, short.json);
  assert.equal(node.count, 1);
});

it('a claim whose bytes do not fit is refused by node:http', async (t) => {
  const log = memoryLog();
  const routes = new ClaimRoutes(memoryPorts()).routes();
  const few = { claims: { maxRequests: 5, maxBytes: BODY.length } };
  const server = new HttpServer(new Router(routes, log), log, {}, new Admission(5, few));
  const port = await server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  const headers = `${JSON_TYPE}Connection: close\r\n`;
  const status = async (body: string) =>
    parseAnswer(await exchange(port, (socket) => socket.write(text({ body, headers })))).status;
  for (let turn = 0; turn < 10; turn++) assert.equal(await status(`${BODY} `), 429);
  for (let turn = 0; turn < 10; turn++) assert.equal(await status(BODY), 201, 'none of them counts any more');
});

/** The short way alone, before a route whose answers have so many characters. */
async function openWay(t: TestContext, characters: number, headersMs = 60_000) {
  const log = memoryLog();
  const handed: Socket[] = [];
  const silent: Socket[] = [];
  const answer = { status: 200, headers: {}, body: 'x'.repeat(characters) };
  const route = { method: 'POST', path: '/brief', isBrief: true as const, handle: () => answer };
  const way = new ShortWay({
    router: new Router([route], log),
    admission: new Admission(),
    log,
    times: { headersMs, keepAliveMs: 1_000, checkMs: 20 },
    isDraining: () => false,
    requestIdOf: () => 'id',
    tell: () => undefined,
    handOver: (socket) => handed.push(socket),
    onSilence: (socket) => silent.push(socket),
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => way.take(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  t.after(() => {
    way.closeAll();
    way.stop();
    socket.destroy();
    for (const one of [...handed, ...silent]) one.destroy();
    server.close();
  });
  const ask = (headers = '') => socket.write(text({ line: 'POST /brief HTTP/1.1', headers }));
  return { way, server, socket, ask, handed, silent };
}

describe('a connection', () => {
  it('is silent while nothing came, is kept while it asks, and is closed when it asks no more', async (t) => {
    const quiet = await openWay(t, 1, 100);
    const busy = await openWay(t, 1);
    const closed = once(busy.socket, 'close');
    const until = performance.now() + 1_500;
    while (performance.now() < until) {
      const answered = once(busy.socket, 'data');
      busy.ask();
      await answered;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal(quiet.silent.length, 1);
    const askedLastMs = performance.now();
    await closed;
    assert.ok(performance.now() - askedLastMs > 900);
    assert.equal(busy.silent.length, 0);
  });

  it('whose client does not read its answers is handed over with its next request', async (t) => {
    // Far more than the kernel takes for a reader that does not read.
    const { socket, ask, handed } = await openWay(t, 16 * 1024 * 1024);
    socket.pause();
    ask();
    await new Promise((resolve) => setTimeout(resolve, 100));
    ask();
    while (handed.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    const { socket: reader, ask: askAgain, handed: others } = await openWay(t, 10);
    for (let turn = 0; turn < 2; turn++) {
      const answered = once(reader, 'data');
      askAgain();
      await answered;
    }
    assert.equal(others.length, 0);
  });

  it('whose client does not read its last answer is closed with all others', async (t) => {
    const { way, server, socket, ask } = await openWay(t, 16 * 1024 * 1024);
    socket.pause();
    ask('Connection: close\r\n');
    await new Promise((resolve) => setTimeout(resolve, 100));
    const closed = once(server, 'close');
    server.close();
    way.closeIdle();
    way.closeAll();
    await closed;
  });

  it('whose answer is on its way gets it when idle connections are closed', async (t) => {
    const characters = 16 * 1024 * 1024;
    const { way, socket, ask } = await openWay(t, characters);
    socket.pause();
    ask();
    await new Promise((resolve) => setTimeout(resolve, 100));
    way.closeIdle();
    let bytes = 0;
    for await (const chunk of socket) bytes += (chunk as Buffer).length;
    assert.ok(bytes > characters, `${bytes} bytes came`);
  });

  it('that is idle is closed when the server stops, and one that never asked is not', async (t) => {
    const [asked, fresh] = [await openWay(t, 1), await openWay(t, 1)];
    const answered = once(asked.socket, 'data');
    asked.ask();
    await answered;
    const closed = once(asked.socket, 'close');
    asked.way.closeIdle();
    fresh.way.closeIdle();
    await closed;
    const late = once(fresh.socket, 'data');
    fresh.ask();
    await late;
  });
});

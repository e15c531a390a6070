import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createHandler } from '#core/edge/handler.ts';
import { type Follow, type HttpResponse, type Route, Router } from '#core/router.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';
import { ask, exchange, parseAnswer } from '../server/support.ts';
import { openStream } from './support.ts';

const EVENTS = { 'content-type': 'text/event-stream' };
/** More than the kernel keeps for a reader that does not read, on any system. */
const FLOOD_BYTES = 64 * 1024 * 1024;

type Reader = { send: (text: string) => boolean; closed: AbortSignal };

describe('an answer that is bytes or a stream', () => {
  const log = memoryLog();
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
  let arrived: (reader: Reader) => void;
  const nextReader = (): Promise<Reader> =>
    new Promise((resolve) => {
      arrived = resolve;
    });
  const follow: Follow = (send, closed) => arrived({ send, closed });
  const answer = (response: HttpResponse): Route['handle'] => {
    return () => response;
  };
  const routes: Route[] = [
    { method: 'GET', path: '/bytes', handle: answer({ status: 200, headers: {}, body: bytes }) },
    { method: 'GET', path: '/nothing', handle: answer({ status: 204, headers: {}, body: '' }) },
    { method: 'GET', path: '/stream', handle: answer({ status: 200, headers: EVENTS, body: '', follow }) },
  ];
  let server: HttpServer;
  let port = 0;
  let url = '';

  const open = async () => {
    server = new HttpServer(new Router(routes, log), log);
    port = await server.listen(0);
    url = `http://127.0.0.1:${port}`;
  };
  before(open);
  after(() => server.close());

  const openReader = async () => {
    const reader = nextReader();
    return { stream: await openStream(`${url}/stream`), reader: await reader };
  };

  it('sends bytes as they are, with their length', async () => {
    const response = await fetch(`${url}/bytes`);
    assert.equal(response.headers.get('content-length'), '256');
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes);
  });

  it('sends no length where nothing can follow', async () => {
    const { status, headers } = await ask(`${url}/nothing`);
    assert.deepEqual([status, headers['content-length']], [204, undefined]);
  });

  it('sends the head of a stream before there is anything to say, then each text as it comes', async () => {
    const { stream, reader } = await openReader();
    const { headers } = stream.response;
    assert.deepEqual([headers['content-type'], headers['content-length']], ['text/event-stream', undefined]);
    for (const sent of ['data: 1\n\n', 'data: ü\n\n']) {
      assert.equal(reader.send(sent), true);
      assert.equal(await stream.next(), sent);
    }
    stream.leave();
  });

  it('tells the sender when its reader has left, and takes nothing more', async () => {
    const { stream, reader } = await openReader();
    assert.equal(reader.closed.aborted, false);
    stream.leave();
    if (!reader.closed.aborted) await once(reader.closed, 'abort');
    assert.equal(reader.send('late'), false);
  });

  it('cuts a reader that does not keep up, and leaves the others alone', async () => {
    const other = await openReader();
    const waiting = nextReader();
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n'));
    socket.pause();
    socket.on('error', () => undefined);
    const { send, closed } = await waiting;
    const text = 'x'.repeat(16 * 1024);
    let sent = 0;
    while (send(text) && sent < FLOOD_BYTES) {
      sent += text.length;
      // The kernel takes what it can between two events, as it would between two samples.
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert(sent < FLOOD_BYTES, 'the slow reader was not cut');
    if (!closed.aborted) await once(closed, 'abort');
    socket.destroy();
    assert.equal(other.reader.send('still here'), true);
    assert.equal(await other.stream.next(), 'still here');
    other.stream.leave();
  });

  it('ends every stream when the server stops', async () => {
    const { stream, reader } = await openReader();
    reader.send('last words');
    const stopped = server.close();
    assert.equal(await stream.next(), 'last words');
    assert.equal(await stream.next(), undefined);
    await stopped;
    assert.equal(reader.closed.aborted, true);
    await open();
  });

  it('closes a stream that is opened while the server stops', async () => {
    const late = new HttpServer(
      new Router(
        [
          {
            method: 'GET',
            path: '/stream',
            async handle() {
              void late.close();
              return { status: 200, headers: EVENTS, body: '', follow: (send) => void send('too late') };
            },
          },
        ],
        log,
      ),
      log,
    );
    const latePort = await late.listen(0);
    const raw = await exchange(latePort, (socket) => socket.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n'));
    assert.match(raw, /^HTTP\/1\.1 200/);
    assert.doesNotMatch(raw, /too late/);
  });

  it('is refused by the Edge adapter where it is a stream, and taken where it is bytes', async () => {
    const handler = createHandler(routes, log);
    const stream = await handler(new Request('http://x/stream'));
    assert.deepEqual(
      [stream.status, ((await stream.json()) as { error: { code: string } }).error.code],
      [500, 'internal'],
    );
    const plain = await handler(new Request('http://x/bytes'));
    assert.deepEqual(new Uint8Array(await plain.arrayBuffer()), bytes);
  });

  it('has a length as before where it is text', async () => {
    const raw = await exchange(port, (socket) =>
      socket.write('GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
    );
    assert.match(parseAnswer(raw).head, /content-length: \d+/);
  });
});

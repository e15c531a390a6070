// Many requests at once on one connection: they wait for each other there, and other connections are served meanwhile.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Route, Router } from '#core/router.ts';
import { HttpServer } from '../../src/server/http.ts';
import { memoryLog } from '../core/support.ts';
import { ask } from '../server/support.ts';

const OK = { status: 200, headers: {}, body: 'ok' };
const PIPELINED = 500;
/** Far more than the kernel takes for a reader that does not read. */
const LARGE = { status: 200, headers: {}, body: 'x'.repeat(1024 * 1024) };
const LARGE_ASKED = 64;

const get = (path: string, times = 1) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times);

describe('requests that are pipelined', () => {
  const inside = new EventEmitter();
  let gates: (() => void)[] = [];
  let larges = 0;
  const routes: Route[] = [
    {
      method: 'GET',
      path: '/gated',
      handle: async () => {
        const open = new Promise<void>((resolve) => gates.push(resolve));
        inside.emit('came');
        await open;
        return OK;
      },
    },
    { method: 'GET', path: '/fast', handle: () => OK },
    {
      method: 'GET',
      path: '/large',
      handle: () => {
        larges++;
        return LARGE;
      },
    },
    { method: 'POST', path: '/echo', handle: ({ body }) => ({ ...OK, body: Buffer.from(body).toString() }) },
  ];
  const log = memoryLog();
  const server = new HttpServer(new Router(routes, log), log);
  let port = 0;
  let url = '';

  before(async () => {
    port = await server.listen(0, '127.0.0.1');
    url = `http://127.0.0.1:${port}`;
  });
  beforeEach(() => {
    gates = [];
    larges = 0;
  });
  after(() => server.close());

  async function open(): Promise<Socket> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  }
  /** What came, once `isAll` says that it is all. */
  async function read(socket: Socket, isAll: (text: string) => boolean): Promise<string> {
    const chunks: string[] = [];
    let length = 0;
    for await (const chunk of socket.setEncoding('latin1').iterator({ destroyOnReturn: false })) {
      chunks.push(chunk as string);
      length += (chunk as string).length;
      // Put together only near the end, so that many megabytes are not searched again and again.
      if (length < 1024 * 1024 * (LARGE_ASKED - 1) && larges > 0) continue;
      const text = chunks.join('');
      if (isAll(text)) return text;
    }
    return chunks.join('');
  }
  const answers = (text: string) => text.split('HTTP/1.1 200').length - 1;

  it('are served one after the other, all of them, while another connection is answered', async () => {
    const socket = await open();
    const came = once(inside, 'came');
    socket.write(get('/gated', PIPELINED));
    await came;
    assert.equal((await ask(`${url}/fast`)).status, 200);
    assert.equal(gates.length, 1, 'the others wait for the answer to the first');
    const all = read(socket, (text) => answers(text) === PIPELINED);
    for (let served = 1; served <= PIPELINED; served++) {
      const next = served < PIPELINED ? once(inside, 'came') : undefined;
      gates[served - 1]?.();
      await next;
      assert.ok(gates.length <= served + 1);
    }
    assert.equal(answers(await all), PIPELINED);
    socket.destroy();
  });

  it('are not answered into the memory of a server whose client does not read, and go on when it does', async () => {
    const socket = await open();
    socket.pause();
    socket.write(get('/large', LARGE_ASKED));
    let before = -1;
    // Until nothing moves any more: each question takes the server at least one turn.
    for (let still = 0; still < 20; still = larges === before ? still + 1 : 0) {
      before = larges;
      assert.equal((await ask(`${url}/fast`)).status, 200);
    }
    assert.ok(
      larges > 0 && larges < LARGE_ASKED / 2,
      `${larges} answers were made for a client that reads none`,
    );
    const text = await read(socket, (got) => answers(got) === LARGE_ASKED);
    assert.equal(answers(text), LARGE_ASKED);
    assert.equal(larges, LARGE_ASKED);
    socket.destroy();
  });

  it('keep their bodies, also where one arrives while it waits', async () => {
    const socket = await open();
    const came = once(inside, 'came');
    const post = (body: string) =>
      `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const last = 'z'.repeat(3_000);
    socket.write(get('/gated') + post('first') + post('second') + post(last).slice(0, -1_000));
    await came;
    assert.equal((await ask(`${url}/fast`)).status, 200);
    socket.write(last.slice(-1_000));
    gates[0]?.();
    const text = await read(socket, (got) => got.endsWith(last));
    assert.match(text, /ok.*first.*second/s);
    socket.write(get('/fast'));
    assert.match(await read(socket, (got) => got.endsWith('ok')), /200/);
    socket.destroy();
  });

  it('end their connection where more of them wait than one read of ours holds', async () => {
    const socket = await open();
    const came = once(inside, 'came');
    socket.write(get('/gated', 1) + get('/fast', 1_500));
    await came;
    socket.on('error', () => undefined).resume();
    await once(socket, 'close');
    gates[0]?.();
    assert.equal((await ask(`${url}/fast`)).status, 200);
  });
});

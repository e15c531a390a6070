import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { startProxy, type WireProxy } from '../../chaos/proxy.ts';
import { createRandom } from '../../chaos/random.ts';

/** Lets everything that is ready happen. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the wire between two processes', () => {
  let server: Server;
  let proxy: WireProxy;
  /** Everything the far end has heard, over all connections. */
  let heard: string;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    heard = '';
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        heard += bytes;
        socket.write(`re:${bytes}`);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    proxy = await startProxy(() => port, createRandom(1));
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await proxy.close();
    server.close();
  });

  function dial() {
    const socket = connect(proxy.port, '127.0.0.1');
    socket.on('error', () => undefined);
    sockets.push(socket);
    let replies = '';
    socket.on('data', (bytes) => {
      replies += bytes;
    });
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const hears = async (text: string): Promise<void> => {
      while (!replies.includes(text)) await once(socket, 'data');
    };
    return { socket, closed, hears, replies: () => replies };
  }

  it('passes both ways while nothing is wrong', async () => {
    const caller = dial();
    caller.socket.write('one');
    await caller.hears('re:one');
  });

  it('cut: open connections break, new ones are refused, healed ones pass again', async () => {
    const before = dial();
    before.socket.write('one');
    await before.hears('re:one');
    proxy.begin({ kind: 'cut' });
    await before.closed;
    await dial().closed;
    proxy.heal();
    const after = dial();
    after.socket.write('two');
    await after.hears('re:two');
  });

  it('cut after the request: the far end has heard it, the caller hears nothing but the end', async () => {
    proxy.begin({ kind: 'cut-after-request', probability: 1 });
    const caller = dial();
    caller.socket.write('pay');
    await caller.closed;
    assert.equal(heard, 'pay');
    assert.equal(caller.replies(), '');
  });

  it('half-open: replies are swallowed while the connection stands, and it breaks when that is over', async () => {
    proxy.begin({ kind: 'half-open', swallows: 'replies' });
    const caller = dial();
    caller.socket.write('pay');
    while (proxy.state().swallowed === 0) await turn();
    assert.equal(heard, 'pay');
    assert.equal(caller.socket.destroyed, false);
    proxy.heal();
    await caller.closed;
    assert.equal(caller.replies(), '');
  });

  it('half-open the other way: the far end never hears the request', async () => {
    proxy.begin({ kind: 'half-open', swallows: 'requests' });
    const caller = dial();
    caller.socket.write('lost');
    while (proxy.state().swallowed === 0) await turn();
    assert.equal(caller.socket.destroyed, false);
    proxy.heal();
    await caller.closed;
    const later = dial();
    later.socket.write('found');
    await later.hears('re:found');
    assert.equal(heard, 'found');
  });

  it('delay: bytes keep their order also when the delay ends in the middle', async () => {
    const caller = dial();
    proxy.begin({ kind: 'delay', ms: 50 });
    caller.socket.write('one,');
    while (proxy.state().waiting === 0) await turn();
    assert.equal(heard, '');
    proxy.heal();
    caller.socket.write('two');
    await caller.hears('two');
    assert.equal(heard, 'one,two');
  });
});

// Claims that took the short way when the server stops, and what they leave of the budgets however they end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import { Router } from '#core/router.ts';
import { Admission } from '../../src/server/admission.ts';
import { HttpServer, type Timeouts } from '../../src/server/http.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';

const BODY = '{"user_id":"ann"}';
const text = (body = BODY) =>
  `POST /v1/pools/p/claims HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const claimOf = (name: string, more = '') => {
  const body = `{"user_id":"${name}"${more}}`;
  return text(body).replace('Host: x\r\n', `Host: x\r\nX-Request-Id: ${name}\r\n`);
};

/** A server whose claims wait until `letGo`, one after the other. */
async function openServer(t: TestContext, admission = new Admission(), times: Partial<Timeouts> = {}) {
  const ports = memoryPorts();
  const { claimBatch } = ports;
  const gates: (() => void)[] = [];
  let onCame: () => void = () => undefined;
  ports.claimBatch = async (...asked) => {
    await new Promise<void>((resolve) => {
      gates.push(resolve);
      onCame();
    });
    return claimBatch(...asked);
  };
  const log = memoryLog();
  const server = new HttpServer(new Router(new ClaimRoutes(ports).routes(), log), log, times, admission);
  const port = await server.listen(0, '127.0.0.1');
  const sockets: Socket[] = [];
  let isClosed = false;
  const close = (restMs?: number) => {
    isClosed = true;
    return server.close(restMs);
  };
  t.after(async () => {
    for (const letGo of gates) letGo();
    for (const socket of sockets) socket.destroy();
    if (!isClosed) await server.close();
  });
  return {
    close,
    /** Lets the claim go that came first. */
    letGo: () => gates.shift()?.(),
    /** Resolves when the next claim has come. */
    came: () =>
      new Promise<void>((resolve) => {
        onCame = resolve;
      }),
    async open(): Promise<Socket> {
      const socket = connect(port, '127.0.0.1');
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    },
  };
}
type Opened = Awaited<ReturnType<typeof openServer>>;

async function answerOn(socket: Socket, { came, letGo }: Opened): Promise<string> {
  const coming = came();
  const answered = once(socket, 'data');
  socket.write(text());
  await coming;
  letGo();
  return String((await answered)[0]);
}

describe('a server that stops', () => {
  for (const restMs of [0, 200])
    it(`answers the claim that is under way, and closes idle connections after ${restMs} ms`, async (t) => {
      const server = await openServer(t);
      const [idle, busy] = [await server.open(), await server.open()];
      assert.match(await answerOn(idle, server), / 201 .*Connection: keep-alive/s);
      const coming = server.came();
      busy.write(text());
      await coming;
      const [idleClosed, busyClosed] = [once(idle, 'close'), once(busy, 'close')];
      const startedMs = performance.now();
      const closed = server.close(restMs);
      await idleClosed;
      assert.ok(performance.now() - startedMs >= restMs - 1);
      const answered = once(busy, 'data');
      server.letGo();
      assert.match(String((await answered)[0]), / 201 .*\r\nConnection: close\r\n/s);
      await Promise.all([busyClosed, closed]);
    });

  it('answers the claim that comes while connections rest, as the last one of its connection', async (t) => {
    const server = await openServer(t);
    const socket = await server.open();
    await answerOn(socket, server);
    const ended = once(socket, 'close');
    const closed = server.close(60_000);
    assert.match(await answerOn(socket, server), / 201 .*\r\nConnection: close\r\n/s);
    await Promise.all([ended, closed]);
  });
});

describe('a server that stops, and waits', () => {
  const graceMs = 100;
  const LONG_MS = 60_000;
  /** The second is too odd for the short way. */
  const WAYS = { 'by the short way': '', 'through node:http': 'X-Odd: 1\r\nX-Odd: 2\r\n' };
  const claimBy = (header: string) => text().replace('Host: x\r\n', `Host: x\r\n${header}`);

  for (const [way, header] of Object.entries(WAYS)) {
    it(`closes what asks nothing or asks in part, and still answers the claim under way ${way}`, async (t) => {
      const server = await openServer(t, new Admission(), { graceMs, answerMs: LONG_MS });
      const [silent, sending, busy] = [await server.open(), await server.open(), await server.open()];
      const coming = server.came();
      sending.write(claimBy(header).slice(0, -3));
      busy.write(claimBy(header));
      await coming;
      const others = [once(silent, 'close'), once(sending, 'close')];
      const [answered, busyClosed] = [once(busy, 'data'), once(busy, 'close')];
      const closed = server.close();
      await Promise.all(others);
      server.letGo();
      assert.match(String((await answered)[0]), / 201 /);
      await Promise.all([busyClosed, closed]);
    });

    it(`does not wait for ever for an answer that is made ${way}`, async (t) => {
      const server = await openServer(t, new Admission(), { graceMs, answerMs: 2 * graceMs });
      const busy = await server.open();
      const coming = server.came();
      busy.write(claimBy(header));
      await coming;
      await Promise.all([once(busy, 'close'), server.close()]);
      assert.equal(busy.bytesRead, 0);
    });
  }
});

describe('what comes while a claim is under way', () => {
  /** The server has read what other connections sent before. */
  async function roundTrip({ open }: Opened): Promise<void> {
    const socket = await open();
    const answered = once(socket, 'data');
    socket.write('GET /v1/claims/x HTTP/1.1\r\nHost: x\r\n\r\n');
    await answered;
    socket.destroy();
  }

  it('waits its turn packet by packet, and the connection is read again afterwards', async (t) => {
    const server = await openServer(t);
    const socket = await server.open();
    let coming = server.came();
    for (let times = 0; times < 3; times++) {
      socket.write(text());
      await roundTrip(server);
    }
    for (let times = 0; times < 3; times++) {
      await coming;
      coming = server.came();
      const answered = once(socket, 'data');
      server.letGo();
      assert.equal(String((await answered)[0]).match(/ 201 /g)?.length, 1);
    }
    assert.match(await answerOn(socket, server), / 201 /);
  });

  it('is read in its order, wherever its packets are cut', { timeout: 10_000 }, async (t) => {
    const server = await openServer(t);
    const socket = await server.open();
    // The body of the third holds a claim: whose bytes are read in another order, or as a head, is told apart by its name.
    const third = claimOf('third', `,"secret":"${'x'.repeat(80)}"`);
    const cut = third.indexOf('\r\n\r\n') + 6;
    let coming = server.came();
    for (const packet of [
      claimOf('first'),
      claimOf('second') + third.slice(0, cut),
      third.slice(cut, cut + 4),
    ]) {
      socket.write(packet);
      await roundTrip(server);
    }
    let said = '';
    socket.on('data', (bytes) => {
      said += String(bytes);
    });
    await coming;
    coming = server.came();
    server.letGo();
    await coming;
    socket.write(third.slice(cut + 4) + claimOf('fourth'));
    await roundTrip(server);
    for (let left = 3; left > 0; left--) {
      coming = server.came();
      const answered = once(socket, 'data');
      server.letGo();
      await answered;
      if (left > 1) await coming;
    }
    assert.deepEqual(
      [...said.matchAll(/HTTP\/1\.1 (\d+).*?x-request-id: (\S+)/gis)].map(
        ([, status, id]) => `${id} ${status}`,
      ),
      ['first 201', 'second 201', 'third 201', 'fourth 201'],
    );
  });

  it('is not read into memory', async (t) => {
    const server = await openServer(t);
    const socket = await server.open();
    const coming = server.came();
    socket.write(text());
    await coming;
    // Far more than the kernel takes for a reader that does not read.
    socket.write('x'.repeat(32 * 1024 * 1024));
    for (let times = 0; times < 200; times++) await roundTrip(server);
    assert.ok(socket.writableLength > 0, 'the server has read all of it');
  });
});

describe('a claim gives its budget back', () => {
  /** Room for one claim, and for the bytes of one. */
  const one = () => new Admission(1, { claims: { maxRequests: 1, maxBytes: BODY.length } });

  it('where it is answered, refused as one too many, or too large for what is left', async (t) => {
    const server = await openServer(t, one());
    const [first, second] = [await server.open(), await server.open()];
    for (let times = 0; times < 3; times++) {
      const coming = server.came();
      const answered = once(first, 'data');
      first.write(text());
      await coming;
      const refused = once(second, 'data');
      second.write(text());
      assert.match(String((await refused)[0]), / 429 .*too_many_requests/s);
      server.letGo();
      assert.match(String((await answered)[0]), / 201 /);
      const third = await server.open();
      const tooLarge = once(third, 'data');
      third.write(text(`${BODY} `));
      assert.match(String((await tooLarge)[0]), / 429 /);
    }
  });

  it('where its client leaves before the answer', async (t) => {
    const server = await openServer(t, one());
    for (const leave of ['resetAndDestroy', 'destroy', 'end'] as const) {
      const socket = await server.open();
      const coming = server.came();
      socket.write(text());
      await coming;
      socket[leave]();
      server.letGo();
      // Taken when the one before has given its place back.
      assert.match(await answerOn(await server.open(), server), / 201 /, leave);
    }
  });
});

import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { OpenLoop, type OpenLoopReport } from '../../bench/open_loop.ts';

const LENGTH = { 'content-length': 2 };

type Seen = { sockets: Set<unknown>; ids: string[] };

/** Sends `perSec` × `seconds` claims to a server that answers each by `answer`. */
async function send(
  answer: (nth: number, ...args: Parameters<RequestListener>) => void,
  order: { perSec: number; seconds: number; connections: number; patienceMs?: number },
): Promise<OpenLoopReport & Seen> {
  const seen: Seen = { sockets: new Set(), ids: [] };
  const server = createServer((request, response) => {
    seen.sockets.add(request.socket);
    let text = '';
    request
      .on('data', (chunk) => {
        text += chunk;
      })
      .on('end', () => {
        seen.ids.push(JSON.parse(text).request_id);
        answer(seen.ids.length, request, response);
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const loop = new OpenLoop('test');
  try {
    const { port } = server.address() as AddressInfo;
    return { ...(await loop.run({ patienceMs: 5_000, ...order, port, path: '/claims' })), ...seen };
  } finally {
    loop.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const created: Parameters<typeof send>[0] = (_, __, response) => response.writeHead(201, LENGTH).end('{}');

test('as many claims are sent as the pace asks for, each with an id of its own, over all connections', async () => {
  const { claims, refused, broken, sockets, ids } = await send(created, {
    perSec: 400,
    seconds: 0.5,
    connections: 20,
  });
  assert.deepEqual([claims, refused, broken], [200, 0, 0]);
  assert.equal(new Set(ids).size, 200);
  assert.equal(sockets.size, 20);
});

test('claims that fall due while the server stands still count from then, not from when they could be sent', async () => {
  const stallMs = 300;
  const held: (() => void)[] = [];
  let isStalled = false;
  const { claims, p50Ms, p99Ms } = await send(
    (nth, _, response) => {
      const end = () => response.writeHead(201, LENGTH).end('{}');
      if (nth === 1) {
        isStalled = true;
        setTimeout(() => {
          isStalled = false;
          for (const one of held) one();
        }, stallMs);
      }
      if (isStalled) held.push(end);
      else end();
    },
    { perSec: 200, seconds: 0.5, connections: 1 },
  );
  // With one connection 99 of 100 wait behind the first. A sender that waits for its answers would have seen one slow claim.
  assert.equal(claims, 100);
  assert.ok(p99Ms >= 250, `p99 ${p99Ms}`);
  assert.ok(p50Ms >= 40, `p50 ${p50Ms}`);
});

test('refusals and claims without an answer are told apart, and the latter count with the time until they were given up', async () => {
  const { claims, refused, broken, p99Ms } = await send(
    (nth, request, response) => {
      if (nth % 10 === 0) response.writeHead(503, LENGTH).end('{}');
      else if (nth % 10 === 5) request.socket.destroy();
      else if (nth !== 1) response.writeHead(201, LENGTH).end('{}');
    },
    { perSec: 100, seconds: 0.5, connections: 10, patienceMs: 200 },
  );
  assert.deepEqual([claims, refused, broken], [39, 5, 6]);
  assert.ok(p99Ms >= 600, `the first was never answered: ${p99Ms}`);
});

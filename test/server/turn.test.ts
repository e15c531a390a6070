// Requests that the event loop reads in one turn leave in one statement.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ClaimRoutes } from '#core/claim.ts';
import type { Turn } from '#core/ports.ts';
import { Router } from '#core/router.ts';
import { HttpServer } from '../../src/server/http.ts';
import { endOfTurn } from '../../src/turn.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';

const CLIENTS = 8;
const BODY = '{"user_id":"ann"}';
const CLAIM = `POST /v1/pools/p/claims HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

/** The sizes of the batches that as many claims become, sent over connections of their own at the same time. */
async function batchesOf(t: TestContext, turn?: Turn): Promise<number[]> {
  const ports = memoryPorts();
  const sizes: number[] = [];
  const claims = new ClaimRoutes({
    ...ports,
    ...(turn && { turn }),
    claimBatch: (requests, ...rest) => {
      sizes.push(requests.length);
      return ports.claimBatch(requests, ...rest);
    },
  });
  const server = new HttpServer(new Router(claims.routes(), memoryLog()), memoryLog());
  const port = await server.listen(0, '127.0.0.1');
  const sockets = Array.from({ length: CLIENTS }, () => connect(port, '127.0.0.1'));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const claimed = async (): Promise<void> => {
    const answers = sockets.map((socket) => once(socket, 'data'));
    for (const socket of sockets) socket.write(CLAIM);
    await Promise.all(answers);
  };
  // The server has accepted all connections when each of them has been answered.
  await claimed();
  sizes.length = 0;
  await claimed();
  return sizes;
}

test('claims that arrive together leave together', async (t) => {
  assert.deepEqual(await batchesOf(t, endOfTurn), [CLIENTS]);
});

test('without the turn the first of them leaves alone', async (t) => {
  const [first] = await batchesOf(t);
  assert.equal(first, 1);
});

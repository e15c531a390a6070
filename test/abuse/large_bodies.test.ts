// Large and stalled bodies for endpoints and sites that do not exist, beside claims.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { MemoryReplayCache } from '#core/calls/replay_cache.ts';
import { CallRoutes } from '#core/calls/routes.ts';
import type { CallSite } from '#core/calls/store.ts';
import { ClaimRoutes } from '#core/claim.ts';
import { NO_METRICS } from '#core/ports.ts';
import { type Route, Router } from '#core/router.ts';
import type { Endpoint } from '#core/webhook/ports.ts';
import { WebhookRoutes } from '#core/webhook/routes.ts';
import { HttpServer } from '../../src/server/http.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { memoryLog, memoryPorts } from '../core/support.ts';
import { ask, claim } from '../server/support.ts';

const MB = 1024 * 1024;
const SENDERS = 100;
const CLAIMS = 50;
const NO_CALL = () => Promise.reject(new Error('nothing is to be recorded here'));

describe('bodies of a megabyte without a signature', () => {
  const log = memoryLog();
  const secrets = { secretOf: () => undefined, findSecret: NO_CALL };
  const ports = { hmac: nodeHmac, ...secrets, log, metrics: NO_METRICS, now: () => 0 };
  let lookups: string[] = [];
  const lookUp = async (name: string): Promise<undefined> => {
    lookups.push(name);
  };
  /** One that takes a little more than is read before it is known. */
  const SMALL = {
    webhook_id: 'small',
    name: 'small',
    provider: 'stripe',
    is_active: true,
    max_body_bytes: 8_192,
    secret_names: [],
    scheme: null,
    public_url: null,
  };
  const findEndpoint = async (name: string) =>
    name === 'small' ? (SMALL as unknown as Endpoint) : lookUp(name);
  const webhooks = new WebhookRoutes({
    ...ports,
    store: {
      findEndpoint,
      findReply: NO_CALL,
      record: NO_CALL,
      processEvent: NO_CALL,
    },
    wake: () => undefined,
  });
  const calls = new CallRoutes({
    ...ports,
    store: { findSite: lookUp as () => Promise<CallSite | undefined>, recordCalls: NO_CALL },
    cache: new MemoryReplayCache(Date.now),
  });
  const routes: Route[] = [
    ...new ClaimRoutes(memoryPorts()).routes(),
    ...webhooks.routes(),
    ...calls.routes(),
  ];
  const server = new HttpServer(new Router(routes, log), log);
  let sockets: Socket[] = [];
  let port = 0;

  before(async () => {
    port = await server.listen(0, '127.0.0.1');
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    sockets = [];
    lookups = [];
  });
  after(() => server.close());

  /** Announces `length` bytes, sends `bytes` of them and then stalls. */
  async function send(path: string, length: number, bytes: number, headers = ''): Promise<Socket> {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${length}\r\n\r\n`;
    socket.write(head);
    socket.write('x'.repeat(bytes));
    return socket;
  }
  async function statusOf(socket: Socket): Promise<number> {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(chunk.toString())?.[1]);
  }

  it('leave room for every claim, beside stalled small bodies', async () => {
    const large = await Promise.all(
      Array.from({ length: SENDERS }, (_, index) => send(`/webhooks/made-up-${index}`, MB, MB - 1)),
    );
    const statuses = new Set<number>();
    // One after the other: with each, the server reads what has come on the other connections meanwhile.
    const claimMany = async () => {
      for (let index = 0; index < CLAIMS; index++)
        statuses.add((await claim(`http://127.0.0.1:${port}`, 'p', { user_id: `u${index}` })).status);
    };
    await claimMany();
    for (const path of ['/webhooks/made-up', '/call-events', '/v1/pools/p/claims'])
      await Promise.all(Array.from({ length: SENDERS }, () => send(path, 1_000, 10)));
    await claimMany();
    assert.deepEqual([...statuses], [201]);
    assert.deepEqual([...new Set(await Promise.all(large.map(statusOf)))], [404]);
  });

  it('are refused after 4 KB of them where their endpoint does not exist', async () => {
    assert.equal(await statusOf(await send('/webhooks/nothing', MB, 4_097)), 404);
    assert.deepEqual(lookups, ['nothing']);
  });

  it('are refused after 4 KB of them where their endpoint takes less than they announce', async () => {
    assert.equal(await statusOf(await send('/webhooks/small', MB, 4_097)), 413);
  });

  it('are read no further than their endpoint takes where they announce nothing', async () => {
    const socket = await send('/webhooks/small', 8_192, 4_097);
    socket.write('x'.repeat(8_192 - 4_097));
    // It was read to its end, and nothing signs it.
    assert.equal(await statusOf(socket), 401);
    const chunked = connect(port, '127.0.0.1').on('error', () => undefined);
    sockets.push(chunked);
    chunked.write(
      'POST /webhooks/small HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    for (let chunk = 0; chunk < 3; chunk++) chunked.write(`1000\r\n${'x'.repeat(4_096)}\r\n`);
    assert.equal(await statusOf(chunked), 413);
  });

  it('are refused after 4 KB of them where their call site does not exist', async () => {
    const socket = await send('/call-events', 60_000, 4_097, 'X-Ops-Site: nowhere\r\n');
    assert.equal(await statusOf(socket), 401);
    assert.deepEqual(lookups, ['nowhere']);
  });

  it('and small ones cost the database one question a second for each name', async () => {
    const url = `http://127.0.0.1:${port}`;
    for (let time = 0; time < 3; time++) {
      assert.equal((await ask(`${url}/webhooks/again`, { method: 'POST', body: '{}' })).status, 404);
      const headers = { 'x-ops-site': 'again-a-site' };
      assert.equal((await ask(`${url}/call-events`, { method: 'POST', headers, body: '{}' })).status, 401);
    }
    assert.deepEqual(lookups, ['again', 'again-a-site']);
  });
});

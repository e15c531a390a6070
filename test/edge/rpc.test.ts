// What an answer over PostgREST means, with the real supabase-js and a server that answers as gateways do.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createClient } from '@supabase/supabase-js';
import { createLedger } from '#core/bridge/store.ts';
import { callOver, timedFetch } from '#core/edge/rpc.ts';
import { payload, poolConfig, World } from '../bridge/support.ts';

const html = '<html>Not today</html>';
const said = (code: string) => JSON.stringify({ code, message: 'planted', details: null, hint: null });

describe('a call over PostgREST', () => {
  let url = '';
  let answer = { status: 200, body: '[]' };
  const server = createServer((_, response) => {
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  });
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  // Node 20 has no WebSocket, and these tests need none.
  const realtime = { transport: class {} as never };
  const options = { auth: { persistSession: false }, global: { fetch: timedFetch }, realtime };
  const call = callOver(() => createClient(url, 'key', options));
  const failure = async () =>
    call('finalize_batch', {}).then(
      () => assert.fail('it was answered'),
      (error: { code: string }) => error.code,
    );

  for (const [status, body, code] of [
    // The gateway answered by itself: the database has said nothing.
    [400, html, '08006'],
    [401, html, '08004'],
    [403, html, '08004'],
    [404, JSON.stringify({ message: 'no Route matched with those values' }), '08006'],
    // supabase-js takes these two for a yes.
    [404, '', '08006'],
    [404, '[]', '08006'],
    [429, html, '08006'],
    [500, html, '08006'],
    [502, html, '08006'],
    [503, said('PGRST000'), '08006'],
    [401, said('PGRST301'), '08004'],
    // The database answered, or a smaller request may pass.
    [413, html, '54000'],
    [404, said('PGRST202'), 'PGRST202'],
    [400, said('PGRST102'), 'PGRST102'],
    [500, said('PGRSTX00'), 'PGRSTX00'],
    [400, said('P0001'), 'P0001'],
    [403, said('42501'), '42501'],
    [500, said('XX000'), 'XX000'],
  ] as const)
    it(`that is answered ${status} ${body} fails with ${code}`, async () => {
      answer = { status, body };
      assert.equal(await failure(), code);
    });

  for (const [status, outcomes, calls] of [
    [403, { outage: 4 }, 1],
    [404, { outage: 4 }, 1],
    [500, { outage: 4 }, 1],
    // Halved: what is too large together may pass alone.
    [413, { retry: 4 }, 7],
  ] as const)
    it(`carries messages as ${JSON.stringify(outcomes)} while a gateway answers ${status}`, async () => {
      answer = { status, body: html };
      const world = new World();
      world.pools.set('pool', poolConfig('pool', { max_retries: 2 }));
      world.finalizeBatch = createLedger(call).finalizeBatch;
      for (let n = 1; n <= 4; n++) world.send(payload(n));
      assert.deepEqual((await world.step()).outcomes, outcomes);
      assert.equal(world.ledgerCalls.length, calls);
    });
});

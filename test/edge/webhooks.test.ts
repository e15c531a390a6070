// The Edge Function `webhooks` answers what the Node door answers: the same table of requests.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { demoSecrets } from '../../src/stack/env_file.ts';
import { ask, assertRefusal, openClient } from '../server/support.ts';
import {
  addTableEndpoints,
  checkHandshake,
  checkRow,
  checkTrace,
  TABLE,
  type Target,
} from '../webhook/requests.ts';
import { paymentEvent, send } from '../webhook/world.ts';
import { startWorld, type World } from './world.ts';

describe('the Edge Function webhooks', () => {
  let world: World;
  let db2: pg.Client;
  let target: Target;
  before(async () => {
    world = await startWorld();
    db2 = await openClient(world.stack.db2.url);
    target = {
      base: `${world.stack.db1.gateway.url}/functions/v1/webhooks`,
      secrets: demoSecrets(world.stack.secrets),
      db2,
    };
    await addTableEndpoints(target);
  });
  after(async () => {
    await db2?.end();
    await world?.stop();
  });

  for (const row of TABLE)
    it(`answers ${row.expected.join(' ')} to ${row.name}`, () => checkRow(row, target));

  it('keeps what it refused as bytes, and raises one alarm for another body', () => checkTrace(target));

  it("answers Meta's handshake with the challenge as text", () => checkHandshake(target));

  it('says 503 while DB2 does not answer, and stores the event when it is sent again', async () => {
    const { upstreams } = world.stack.db2.gateway;
    const { restPort } = upstreams;
    const secret = target.secrets.STRIPE_WEBHOOK_SECRET ?? '';
    const deliver = () =>
      send({ url: `${target.base}/stripe`, provider: 'stripe', body: paymentEvent('evt_503'), secret });
    delete upstreams.restPort;
    try {
      const answer = await deliver();
      assertRefusal(answer, 503, 'database_unavailable');
      assert.equal(answer.headers['retry-after'], '1');
    } finally {
      if (restPort !== undefined) upstreams.restPort = restPort;
    }
    assert.equal((await deliver()).json.status, 'recorded');
  });

  it('is the only function that a caller without a key can reach', async () => {
    const { gateway } = world.stack.db1;
    const answers = await Promise.all(
      ['bridge-worker', 'admin-dlq/replay'].map((path) =>
        ask(`${gateway.url}/functions/v1/${path}`, { method: 'POST', body: {} }),
      ),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, 401],
    );
  });
});

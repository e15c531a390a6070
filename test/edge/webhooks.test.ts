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

  it('accepts a delivery of Twilio while DB2 does not answer, and bridge-worker carries it on, once', async () => {
    const { upstreams } = world.stack.db2.gateway;
    const { restPort } = upstreams;
    const { serviceRole } = world.stack.db1.keys;
    const carry = () =>
      ask(`${world.stack.db1.gateway.url}/functions/v1/bridge-worker`, {
        method: 'POST',
        body: {},
        headers: { authorization: `Bearer ${serviceRole}` },
      });
    const deliver = (secret = target.secrets.TWILIO_AUTH_TOKEN ?? '') =>
      send({
        url: `${target.base}/twilio`,
        provider: 'twilio',
        body: 'CallSid=CAaway&CallStatus=completed',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        secret,
      });
    // It copies the endpoints, by which the delivery is verified.
    assert.equal((await carry()).status, 200);
    delete upstreams.restPort;
    try {
      assert.equal((await deliver()).json.status, 'accepted');
      assertRefusal(await deliver('f'.repeat(32)), 401, 'bad_signature');
      assert.equal((await carry()).status, 200, 'a carrier without DB2 says so in its log');
    } finally {
      if (restPort !== undefined) upstreams.restPort = restPort;
    }
    const stored = async () =>
      (await db2.query(`select from public.webhook_events where event_id = 'call:CAaway:completed'`))
        .rowCount;
    assert.equal(await stored(), 0);
    const deadline = Date.now() + 30_000;
    while ((await stored()) === 0) {
      assert.ok(Date.now() < deadline, 'it was not carried');
      await carry();
    }
    await carry();
    assert.equal(await stored(), 1);
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

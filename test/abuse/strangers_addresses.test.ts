// What a stranger can do from one address, one row an attack: against a server with its default settings, but that loopback is
// limited too, because the attacks come from there. Beside each row its control: with the guard off the attack succeeds.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { DEFAULT_LIMITS, type LimitSettings } from '../../src/server/address_limits.ts';
import type { ServerOptions } from '../../src/server/server.ts';
import * as callSite from '../calls/support.ts';
import {
  ADMIN_KEY,
  ask,
  bearer,
  claim,
  openClient,
  parseAnswer,
  putOnSale,
  startTestServer,
  token,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  addEndpoint,
  paymentEvent,
  send as sendEvent,
  SECRETS as WEBHOOK_SECRETS,
} from '../webhook/world.ts';
import {
  type Answers,
  AT_ONCE,
  agent,
  BEHIND_A_PROXY,
  CLAIMS,
  claimAs,
  DELIVERIES,
  flood,
  from,
  GUESSES,
  guess,
  HEX,
  type Place,
  ROWS,
} from './address_rows.ts';

const STREAMS = 2_000;
/** Of a control: more than a limit lets through, and no more sockets than it takes to see it. */
const OPEN_STREAMS = 250;

describe('strangers at one address', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let pools = 0;

  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    await addEndpoint(db2, 'stripe', 'stripe', 'queued');
    await callSite.addSites(db2);
  });
  after(async () => {
    agent.destroy();
    await Promise.all([db1?.end(), db2?.end()]);
    await databases?.stop();
  });

  /** A server of its own, with full buckets, and a pool that has enough for all. */
  async function withServer<Result>(
    settings: Partial<ServerOptions>,
    use: (place: Place) => Promise<Result>,
  ): Promise<Result> {
    const secrets: Record<string, string> = { ...WEBHOOK_SECRETS, ...callSite.SECRETS };
    const limits: LimitSettings = { loopback: true, ...settings.limits };
    const options = { ...settings, limits, secretOf: (name: string) => secrets[name] };
    const server = await startTestServer(databases, options);
    const pool = `pool-${++pools}`;
    await putOnSale(db1, pool, CLAIMS + 100);
    try {
      return await use({ ...server, pool });
    } finally {
      await server.stop();
    }
  }

  for (const { attack, settings = {}, off, run, taken, limit, refused } of ROWS) {
    it(`${attack}: at most the limit of the address`, async (t) => {
      const startedMs = performance.now();
      const answers = await withServer(settings, run);
      const most = limit.burst + Math.ceil(((performance.now() - startedMs) / 1_000) * limit.perSec);
      const through = answers.get(taken) ?? 0;
      t.diagnostic([...answers].map(([answer, count]) => `${count} × ${answer}`).join(', '));
      assert.ok(through >= limit.burst && through <= most, `${through} of at most ${most}`);
      assert.deepEqual([...answers.keys()].sort(), [taken, refused].sort());
    });

    it(`${attack}: all of them with the guard off`, async () => {
      const answers = await withServer({ ...settings, ...off }, run);
      assert.deepEqual([...answers.keys()], [taken]);
    });
  }

  it('are told when to come again, in the fields of the IETF draft', () =>
    withServer({ limits: { claims: { burst: 2, perSec: 1 } } }, async ({ url, pool }) => {
      const answers = [];
      for (let index = 0; index < 3; index++) answers.push(await claim(url, pool, { user_id: `u${index}` }));
      const { status, headers } = answers.at(-1) ?? assert.fail();
      assert.equal(status, 429);
      assert.equal(headers['retry-after'], '1');
      assert.equal(headers['ratelimit-policy'], '"claims";q=2;w=2');
      assert.equal(headers.ratelimit, '"claims";r=0;t=1');
      const page = await ask(`${url}/metrics`);
      assert.match(page.text, /^sluice_limited_total\{limit="claims"\} 1$/m);
    }));

  it('behind one declared proxy are a thousand addresses, and none keeps out another', () =>
    withServer(BEHIND_A_PROXY, async (place) => {
      const answers = await claimAs((index) => from(`2001:db8:${index.toString(HEX)}::1`))(place);
      assert.deepEqual(answers, new Map([['201', CLAIMS]]));
    }));

  it('leave a service and an operator at their address alone', () =>
    withServer({}, async (place) => {
      const { url, pool } = place;
      await flood(DEFAULT_LIMITS.claims.burst * 2, () =>
        claim(url, pool, { user_id: 'stranger' }, {}, agent),
      );
      const service = bearer(await token({ role: 'service_role' }));
      for (const headers of [service, bearer(ADMIN_KEY)]) {
        const answers = await flood(200, (index) =>
          claim(url, pool, { user_id: `g${index}` }, headers, agent),
        );
        assert.deepEqual(answers, new Map([['201', 200]]));
      }
    }));

  it('do not shut out the right key with wrong ones, however many', () =>
    withServer({}, async ({ url }) => {
      for (let round = 0; round < 20; round++) {
        await flood(GUESSES, () => guess(url));
        const right = await ask(`${url}/admin/session`, { method: 'POST', body: { key: ADMIN_KEY } });
        assert.equal(right.status, 204);
      }
    }));

  it('do not keep out a valid signature with wrong ones, at webhooks and call events', () =>
    withServer({}, async ({ url, pool }) => {
      const endpoint = `${url}/webhooks/stripe`;
      const refused = await flood(DELIVERIES, () => ask(endpoint, { method: 'POST', body: {}, agent }));
      assert.ok(refused.has('429 rate_limited'));
      for (let index = 0; index < 20; index++) {
        const body = paymentEvent(`evt_${pool}_${index}`, { padding: 'x'.repeat(index * 1_000) });
        const event = await sendEvent({ url: endpoint, provider: 'stripe', body });
        assert.equal(event.status, 200, event.text);
        const call = await callSite.post(
          url,
          callSite.signedRequest(callSite.callBody({ payload: { pool, index } })),
        );
        assert.equal(call.status, 200, call.text);
      }
    }));

  it('send a large body without a signature in vain: it is refused before it is read', () =>
    withServer({ limits: { deliveries: { burst: 1, perSec: 1 / 3_600 } } }, async ({ url, port }) => {
      const body = 'x'.repeat(50_000);
      /** Sends the first 5,000 bytes; the rest only when it is told to. */
      const begin = (path: string, headers: string) => {
        const socket = connect(port, '127.0.0.1');
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}`;
        socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5_000)}`);
        const status = once(socket, 'data').then(([data]) => {
          socket.destroy();
          return parseAnswer(String(data)).status;
        });
        return { status, finish: () => socket.write(body.slice(5_000)) };
      };
      assert.equal((await ask(`${url}/webhooks/stripe`, { method: 'POST', body: {} })).status, 401);
      assert.equal(await begin('/webhooks/stripe', '').status, 429);
      assert.equal(await begin('/call-events', `X-Ops-Site: ${callSite.SITE}\r\n`).status, 429);
      const signed = begin('/webhooks/stripe', 'Stripe-Signature: t=1,v1=00\r\n');
      let isEarly = true;
      const answered = signed.status.then((status) => [status, isEarly]);
      for (let look = 0; look < 5; look++) await ask(`${url}/webhooks/stripe`);
      isEarly = false;
      signed.finish();
      assert.deepEqual(await answered, [429, false], 'what may be signed is read and verified first');
    }));

  it('open no more than 200 of 2,000 streams, and may again once these are closed', () =>
    withServer({}, async ({ url, pool }) => {
      const first = await openStreams(url, pool, STREAMS);
      assert.deepEqual(
        first.statuses,
        new Map([
          ['200', DEFAULT_LIMITS.streams],
          ['429', STREAMS - DEFAULT_LIMITS.streams],
        ]),
      );
      assert.equal(first.refusal?.['ratelimit-policy'], '"streams";q=200;qu="concurrent-requests"');
      const operator = await openStream(`${url}/admin/live`, bearer(ADMIN_KEY));
      assert.equal(operator.statusCode, 200, "buyers do not use up the operators' room");
      operator.destroy();
      first.close();
      // A closed socket is noticed in its turn.
      for (let status = 429; status !== 200; ) {
        const again = await openStream(`${url}/v1/pools/${pool}/live`);
        status = again.statusCode ?? 0;
        again.destroy();
      }
    }));

  it('open as many streams as they like with the guard off', () =>
    withServer({ limits: { streams: false } }, async ({ url, pool }) => {
      const { statuses, close } = await openStreams(url, pool, OPEN_STREAMS);
      assert.deepEqual(statuses, new Map([['200', OPEN_STREAMS]]));
      close();
    }));

  it('are not limited on this machine, unless it is asked for', () =>
    withServer({ limits: { loopback: false } }, async (place) => {
      assert.deepEqual(await claimAs(() => ({}))(place), new Map([['201', CLAIMS]]));
    }));
});

function openStream(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, resolve);
    request.on('error', reject);
  });
}

async function openStreams(url: string, pool: string, number: number) {
  const open: IncomingMessage[] = [];
  const statuses: Answers = new Map();
  let refusal: IncomingMessage['headers'] | undefined;
  for (let begun = 0; begun < number; begun += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, () => openStream(`${url}/v1/pools/${pool}/live`));
    for (const stream of await Promise.all(some)) {
      const status = String(stream.statusCode);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (stream.statusCode === 200) open.push(stream);
      else refusal = stream.resume().headers;
    }
  }
  const close = () => {
    for (const stream of open) stream.destroy();
  };
  return { statuses, refusal, close };
}

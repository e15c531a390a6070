import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import type { RunningServer } from '../../src/server/server.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { type Answer, claim, openClient, putOnSale, startTestServer } from './support.ts';

const SLOTS = 100;
const BUYERS = 5_000;

function countByStatus(answers: Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, json } of answers) {
    const name = `${status} ${json.error?.code ?? json.status}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe('a crowd', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let server: RunningServer;
  // One connection per buyer, as in a drop.
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

  before(async () => {
    databases = await startDatabases();
    client = await openClient(databases.db1.url);
    server = await startTestServer(databases);
  });
  after(async () => {
    agent.destroy();
    await server?.stop();
    await client?.end();
    await databases?.stop();
  });

  it(`of ${BUYERS} buys exactly ${SLOTS} slots, the others are told "sold out", and no buyer meets an error`, async () => {
    await putOnSale(client, 'drop', SLOTS);
    const answers = await Promise.all(
      Array.from({ length: BUYERS }, (_, buyer) =>
        claim(server.url, 'drop', { user_id: `u${buyer}`, request_id: `r${buyer}` }, {}, agent),
      ),
    );
    assert.deepEqual(countByStatus(answers), { '201 queued': SLOTS, '409 sold_out': BUYERS - SLOTS });
    const sold = answers.filter((answer) => answer.status === 201).map((answer) => answer.json);
    assert.equal(new Set(sold.map((one) => one.resource_id)).size, SLOTS);
    const { rows } = await client.query(
      `select c.claim_id, c.slot_id, c.user_id from public.claims c where c.pool_id = 'drop' order by c.claim_id`,
    );
    const told = sold
      .map((one) => ({ claim_id: one.claim_id, slot_id: one.resource_id, user_id: one.user_id }))
      .sort((a, b) => (a.claim_id < b.claim_id ? -1 : 1));
    assert.deepEqual(rows, told);
  });

  it('of a hundred retries of one request makes one claim', async () => {
    await putOnSale(client, 'retry', 10);
    const answers = await Promise.all(
      Array.from({ length: 100 }, () =>
        claim(server.url, 'retry', { user_id: 'ann', request_id: 'once' }, {}, agent),
      ),
    );
    assert.deepEqual(answers.map((answer) => answer.status).sort(), [...Array(99).fill(200), 201]);
    assert.equal(new Set(answers.map((answer) => answer.json.claim_id)).size, 1);
  });

  it('of one user gets no more than the limit', async () => {
    await putOnSale(client, 'limited', 50, { max_per_user: 3 });
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => claim(server.url, 'limited', { user_id: 'ann' }, {}, agent)),
    );
    assert.deepEqual(countByStatus(answers), { '201 queued': 3, '409 limit': 97 });
  });
});

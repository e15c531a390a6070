// Alerts to the owner's address: a real receiver on this machine, and two servers that both could tell it.

import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { Webhook } from 'standardwebhooks';
import type { Message } from '../../src/issues/message.ts';
import { readAlertSettings } from '../../src/issues/settings.ts';
import { MissingSecrets } from '../../src/issues/watch.ts';
import { bury } from '../admin/support.ts';
import { storeEvents } from '../admin/webhook_support.ts';
import { ADMIN_KEY, ask, bearer, claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

interface Posted {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

const SECRET = `whsec_${Buffer.alloc(32, 'a').toString('base64')}`;
const PATIENCE_MS = 60_000;
const POLL_MS = 100;

const waitFor = async (what: () => boolean | Promise<boolean>): Promise<void> => {
  for (const end = Date.now() + PATIENCE_MS; !(await what()); ) {
    assert(Date.now() < end, 'waited in vain');
    await pause(POLL_MS);
  }
};

describe('alerts', () => {
  let databases: TestDatabases;
  let servers: readonly Server[];
  let db1: pg.Client;
  let db2: pg.Client;
  let url: string;
  let status = 200;
  let secret: string | undefined = 'whsec_test_of_the_alerts';
  const posted: Posted[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      posted.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(status).end();
    });
  });
  const messages = (what: Message['what']): Message[] =>
    posted.map(({ body }) => JSON.parse(body) as Message).filter((message) => message.what === what);
  const toTell = async (db: pg.Client): Promise<number> =>
    (await db.query(`select count(*)::int from audit.alerts where told_at is null`)).rows[0].count;
  /** Nothing is under way at either server: what would be told twice would have been. */
  const settled = async (): Promise<void> => {
    await waitFor(async () => (await toTell(db1)) + (await toTell(db2)) === 0);
  };

  const start = (): Promise<Server> => {
    const alerts = readAlertSettings({ SLUICE_ALERT_URL: url, SLUICE_ALERT_SECRET: SECRET });
    assert(alerts !== undefined);
    return startTestServer(databases, { alerts, host: '127.0.0.1', secretOf: () => secret });
  };

  before(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/alerts`;
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    await db1.query(`select public.allow_hook_host('127.0.0.1', 'test')`);
    await putOnSale(db1, 'gig', 20);
    await db2.query(`insert into webhook.secret_names (name) values ('SHOP_SECRET')`);
    await db2.query(`select webhook.add_endpoint('shop', 'stripe', '{SHOP_SECRET}', p_actor => 'test')`);
    servers = [await start(), await start()];
  });
  after(async () => {
    await Promise.all(servers?.map((server) => server.stop()) ?? []);
    await Promise.all([db1?.end(), db2?.end()]);
    receiver.close();
    receiver.closeAllConnections();
    await databases?.stop();
  });
  beforeEach(() => {
    posted.length = 0;
    status = 200;
  });

  it('of a new issue are posted once, signed, by one of two servers', async () => {
    await bury(db1, 'gig', 2, 'max_retries: status 500');
    await waitFor(() => messages('issue_opened').length > 0);
    await settled();
    const [message, ...more] = messages('issue_opened');
    assert.deepEqual(more, []);
    assert.equal(message?.text, 'New issue: 2 claims of gig, max_retries: status #');
    assert.equal(message?.database, 'DB1');
    assert.match(message?.url ?? '', /^http:\/\/127\.0\.0\.1:\d+\/issues\/[0-9a-f-]{36}$/);
    const [{ headers, body }] = posted as [Posted];
    assert.doesNotThrow(() => new Webhook(SECRET).verify(body, headers as Record<string, string>));
    assert.throws(() => new Webhook(SECRET).verify(`${body} `, headers as Record<string, string>));
  });

  it('of an issue that comes back are posted again, and those that fail are tried again', async () => {
    status = 503;
    const failed = 'select from audit.alerts where issue_id is not null and attempts = 1 and told_at is null';
    const [server] = servers;
    const headers = bearer(ADMIN_KEY);
    const [issue] = (await ask(`${server?.url}/admin/issues?lane=gig`, { headers })).json.issues;
    await ask(`${server?.url}/admin/issues/${issue.id}/replay`, { method: 'POST', headers, body: {} });
    await db1.query('delete from pgmq.q_intake_queue');
    await bury(db1, 'gig', 1, 'max_retries: status 501');
    await waitFor(() => posted.length > 0);
    // A receiver that is down holds up neither claims nor the page.
    assert.equal((await claim(server?.url ?? '', 'gig', { user_id: 'ann' })).status, 201);
    await waitFor(async () => (await db1.query(failed)).rowCount === 1);
    status = 200;
    await db1.query(`update audit.alerts set next_attempt_at = now() where told_at is null`);
    await settled();
    const texts = messages('issue_reopened');
    assert.equal(texts.length, 2);
    // Here each server has an address of its own, and either may try again.
    const [first, second] = texts.map(({ url: _, ...words }) => words);
    assert.deepEqual(first, second, 'the same words under the same id');
    assert.match(texts[0]?.text ?? '', /^An issue is back: 1 claim of gig, max_retries: status #$/);
  });

  it('of an event that failed once wait, because most failures pass', async () => {
    await storeEvents(db2, ['evt_1'], { type: 'order.paid', status: 'failed', error: 'the shop is slow' });
    await waitFor(async () => (await db2.query('select from audit.issues')).rowCount === 1);
    // Two more looks of the servers.
    const due = `select issues_due_at from audit.sampler`;
    const before = (await db2.query(due)).rows[0].issues_due_at;
    await waitFor(async () => (await db2.query(due)).rows[0].issues_due_at > before);
    assert.deepEqual(messages('issue_opened'), []);
    await db2.query(`update public.webhook_events set status = 'dead_letter', next_attempt_at = null`);
    await waitFor(() => messages('issue_opened').length === 1);
  });

  it('of a backlog that is old are posted once', async () => {
    await db1.query(`update pgmq.q_intake_queue set enqueued_at = now() - interval '2 minutes'`);
    const text = 'Alert: a message waits for more than a minute';
    const told = () => messages('alert').filter((message) => message.text === text);
    await waitFor(() => told().length > 0);
    await settled();
    assert.equal(told().length, 1);
  });

  it('of an endpoint whose secret is missing are posted once, though two servers miss it', async () => {
    secret = undefined;
    // A server looks when it starts, and then every half minute.
    await Promise.all(servers.map((server) => server.stop()));
    servers = [await start(), await start()];
    await waitFor(() => messages('secret_missing').length > 0);
    await settled();
    assert.deepEqual(
      messages('secret_missing').map(({ text }) => text),
      ['A secret is missing: endpoint shop'],
    );
  });

  it('go to no private address that the owner has not allowed', async () => {
    await db1.query(`select public.disallow_hook_host('127.0.0.1', 'test')`);
    await storeEvents(db2, ['evt_2'], { type: 'order.void', error: 'no such order' });
    await waitFor(
      async () =>
        (await db2.query('select from audit.alerts where attempts > 0 and told_at is null')).rowCount !== 0,
    );
    assert.deepEqual(posted, []);
    await db1.query(`select public.allow_hook_host('127.0.0.1', 'test')`);
    await db2.query(`update audit.alerts set next_attempt_at = now() where told_at is null`);
    await waitFor(() => messages('issue_opened').length === 1);
  });
});

describe('a server that misses a secret', () => {
  it('tells so until it has it, and once that it has', () => {
    const missing = new MissingSecrets();
    const told = (endpoints: string[], nowMs: number) =>
      missing
        .marks(new Map(endpoints.map((name) => [name, `${name} is not set.`])), nowMs)
        .map(({ subject, began_ms, ended_ms }) => [subject, began_ms, ended_ms]);
    assert.deepEqual(told(['shop'], 1), [['endpoint shop', 1, null]]);
    assert.deepEqual(told(['shop', 'phones'], 2), [
      ['endpoint shop', 1, null],
      ['endpoint phones', 2, null],
    ]);
    assert.deepEqual(told(['phones'], 3), [
      ['endpoint shop', 1, 3],
      ['endpoint phones', 2, null],
    ]);
    assert.deepEqual(told([], 4), [['endpoint phones', 2, 4]]);
    assert.deepEqual(told([], 5), []);
  });

  it('says which secret, and what is wrong with it', () => {
    const [mark] = new MissingSecrets().marks(new Map([['shop', 'SHOP_SECRET is not set.']]), 1);
    assert.equal(mark?.why, 'SHOP_SECRET is not set.');
  });
});

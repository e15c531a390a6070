// A rolling upgrade: server and worker of the version before beside those of this one, on this one's schema, under load from
// before the first new process until after the last old one.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { git } from '../../bench/provenance.ts';
import { addSites, SECRETS as CALL_SECRETS, callBody, post, signedRequest } from '../calls/support.ts';
import { type Answer, claim, openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { type Running, startServe, startWork } from '../webhook/processes.ts';
import { addEndpoint, allowSecrets, paymentEvent, SECRETS, send } from '../webhook/world.ts';
import { type Before, checkOutBefore, commitBefore } from './before.ts';

const POOL = 'rolling';
const SLOTS = 20_000;
/** Of each kind of request, in each of the three phases. */
const LEAST = 60;
/** Between two requests of a client, so that a slow start of the new version does not sell the pool out. */
const PACE_MS = 20;
const LOOK_MS = 50;
const DRAINED_MS = 120_000;
/** Against a version that does not start. */
const PATIENCE_MS = 300_000;

describe('a rolling upgrade', () => {
  const commit = commitBefore();
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let old: Before;
  const running: Running[] = [];

  before(async () => {
    if (commit === undefined) return;
    old = checkOutBefore(commit);
    databases = await startDatabases();
    [db1, db2] = await Promise.all([openClient(databases.db1.url), openClient(databases.db2.url)]);
    // Before 1.0 migrations are edited in place, and a program refuses to start beside a file that it knows otherwise. From
    // then on files are only added, and it starts. Without the text in the record it starts today.
    for (const client of [db1, db2])
      await client.query('update supabase_migrations.schema_migrations set statements = null');
    await putOnSale(db1, POOL, SLOTS);
    await allowSecrets(db2, Object.keys(SECRETS));
    await addSites(db2);
    await addEndpoint(db2, 'inline', 'stripe', 'inline');
    await addEndpoint(db2, 'queued', 'stripe', 'queued');
  });
  after(async () => {
    await Promise.all(running.map((one) => one.kill()));
    await Promise.all([db1?.end(), db2?.end()]);
    await databases?.stop();
    old?.remove();
  });

  const startPair = async (root?: string): Promise<[Running, Running]> => {
    const urls = { db1Url: databases.db1.url, db2Url: databases.db2.url };
    const options = { env: CALL_SECRETS, ...(root !== undefined && { root }) };
    const pair = await Promise.all([startServe(urls, options), startWork(urls, options)]);
    running.push(...pair);
    return pair;
  };
  const number = async (client: pg.Client, text: string): Promise<number> =>
    (await client.query(`select (${text})::int as n`)).rows[0].n;

  test('loses no claim, event or call, and refuses none, while both versions work', {
    timeout: PATIENCE_MS,
  }, async (t) => {
    if (commit === undefined)
      return t.skip('git does not have the commit before: clone with history, such as fetch-depth: 0');
    const load = new Load();
    const [oldServer, oldWorker] = await startPair(old.root);
    load.use([oldServer.url]);
    await load.phase('old');
    const [newServer] = await startPair();
    load.use([oldServer.url, newServer.url]);
    await load.phase('both');
    assert.deepEqual(load.failures, []);
    // A buyer whose answer got lost asks the other version again, and gives the claim back through the first.
    const [retry = '', first] = [...load.claims][0] ?? [];
    const answers = await Promise.all(
      [oldServer, newServer].map(({ url }) => claim(url, POOL, bodyOf(retry))),
    );
    for (const { status, json } of answers) assert.deepEqual([status, json.claim_id], [200, first]);
    // As a load balancer does: first out of the list, then the signal.
    load.use([newServer.url]);
    await load.settled();
    assert.deepEqual(await Promise.all([oldServer.stop(), oldWorker.stop()]), [0, 0]);
    await load.phase('new');
    await load.end();

    assert.deepEqual(load.failures, []);
    await untilDrained(async () => [
      await number(db1, 'select count(*) from pgmq.q_intake_queue'),
      await number(db2, "select count(*) from public.webhook_events where status <> 'success'"),
    ]);
    assert.deepEqual(
      {
        claims: await number(db1, "select count(*) from public.claims where state = 'committed'"),
        tickets: await number(db2, 'select count(*) from public.confirmed_tickets'),
        dead: await number(db1, 'select count(*) from pgmq.q_intake_dlq'),
        credits: await number(db2, 'select count(*) from public.credit_ledger'),
        calls: await number(db2, 'select count(*) from public.calls'),
      },
      {
        claims: load.claims.size,
        tickets: load.claims.size,
        dead: 0,
        credits: load.events,
        calls: load.calls,
      },
    );
  });

  test('is seen to fail where the older version calls what is gone', async (t) => {
    if (commit === undefined) return t.skip('git does not have the commit before');
    const urls = { db1Url: databases.db1.url, db2Url: databases.db2.url };
    const server = await startServe(urls, { root: old.root });
    running.push(server);
    await db1.query('alter function public.claim_batch rename to claim_batch_of_another_version');
    const { status } = await claim(server.url, POOL, bodyOf('control'));
    await db1.query('alter function public.claim_batch_of_another_version rename to claim_batch');
    assert.equal(status, 500);
  });
});

test('the version before is the last commit while there are changes, and unknown in a shallow clone', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-history-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const full = join(dir, 'full');
  const [author, email] = ['user.name=test', 'user.email=test@example.com'];
  const inFull = (...args: string[]) => git(full, ['-c', author, '-c', email, ...args])?.trim();
  git(dir, ['init', '--quiet', full]);
  const commits = ['one', 'two'].map((text) => {
    inFull('commit', '--quiet', '--allow-empty', '-m', text);
    git(full, ['rm', '--quiet', '--ignore-unmatch', 'package.json']);
    const blob = git(full, ['hash-object', '-w', '--stdin'], text)?.trim();
    git(full, ['update-index', '--add', '--cacheinfo', `100644,${blob},package.json`]);
    inFull('commit', '--quiet', '-m', text);
    return inFull('rev-parse', 'HEAD');
  });
  git(full, ['checkout', '--quiet', '.']);
  inFull('commit', '--quiet', '--allow-empty', '-m', 'nothing of the product');
  assert.equal(commitBefore(full), inFull('rev-parse', `${commits[1]}^`));
  git(full, ['rm', '--quiet', 'package.json']);
  assert.equal(commitBefore(full), inFull('rev-parse', 'HEAD'));
  git(full, ['reset', '--quiet', '--hard']);
  git(dir, ['clone', '--quiet', '--depth', '1', `file://${full}`, 'shallow']);
  assert.equal(commitBefore(join(dir, 'shallow')), undefined);
});

const bodyOf = (request: string) => ({ user_id: `user ${request}`, request_id: request });

/** One buyer, one provider for each mode and one caller, each with one request at a time, at the servers of the moment. */
class Load {
  readonly claims = new Map<string, string>();
  readonly failures: string[] = [];
  events = 0;
  calls = 0;
  #urls: readonly string[] = [];
  #sent = 0;
  #isOver = false;
  #phase = '';
  #clients: Promise<void>[] = [];
  readonly #underWay = new Set<Promise<unknown>>();

  /** From now on the requests take turns at these. */
  use(urls: readonly string[]): void {
    this.#urls = urls;
    if (this.#clients.length === 0)
      this.#clients = [
        this.#client(201, (url, id) => this.#claim(url, id)),
        this.#client(200, (url, id) => this.#event(url, 'inline', id)),
        this.#client(200, (url, id) => this.#event(url, 'queued', id)),
        this.#client(200, (url, id) => this.#call(url, id)),
      ];
  }

  /** Until each client has sent so much more. */
  async phase(name: string): Promise<void> {
    this.#phase = name;
    const until = [this.claims.size, this.events / 2, this.calls].map((count) => count + LEAST);
    const isShort = () =>
      this.claims.size < (until[0] ?? 0) || this.events / 2 < (until[1] ?? 0) || this.calls < (until[2] ?? 0);
    while (isShort() && this.failures.length === 0) await pause(LOOK_MS);
  }

  /** No request is under way at a server that is not used any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #client(wanted: number, visit: (url: string, id: string) => Promise<Answer>): Promise<void> {
    while (!this.#isOver) {
      const number = ++this.#sent;
      const url = this.#urls[number % this.#urls.length] ?? '';
      const asked = visit(url, `r${number}`);
      this.#underWay.add(asked);
      try {
        const { status, text } = await asked;
        if (status !== wanted) this.failures.push(`${this.#phase}: ${status} ${text}`);
      } catch (error) {
        this.failures.push(`${this.#phase}: ${error}`);
      } finally {
        this.#underWay.delete(asked);
      }
      await pause(PACE_MS);
    }
  }

  async #claim(url: string, id: string): Promise<Answer> {
    const answer = await claim(url, POOL, bodyOf(id));
    if (answer.status === 201) this.claims.set(id, answer.json.claim_id);
    return answer;
  }

  async #event(url: string, endpoint: string, id: string): Promise<Answer> {
    const answer = await send({
      url: `${url}/webhooks/${endpoint}`,
      provider: 'stripe',
      body: paymentEvent(`evt_${id}`),
    });
    if (answer.status === 200) this.events++;
    return answer;
  }

  async #call(url: string, id: string): Promise<Answer> {
    const answer = await post(url, signedRequest(callBody({ payload: { id } })));
    if (answer.status === 200) this.calls++;
    return answer;
  }
}

async function untilDrained(left: () => Promise<number[]>): Promise<void> {
  const untilMs = Date.now() + DRAINED_MS;
  for (;;) {
    const counts = await left();
    if (counts.every((count) => count === 0)) return;
    assert.ok(Date.now() < untilMs, `not drained: ${counts}`);
    await pause(LOOK_MS);
  }
}

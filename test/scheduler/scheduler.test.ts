import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { startProxy } from '../../chaos/proxy.ts';
import { createRandom } from '../../chaos/random.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { Cron } from '../../src/scheduler/cron.ts';
import { sendQueued } from '../../src/scheduler/outbox.ts';
import { startScheduler } from '../../src/scheduler/scheduler.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const log = createLog('silent');
const MINUTE_MS = 60_000;
const START_MS = Date.parse('2026-11-15T10:30:00Z');

/** Asks until the answer is there; the test's own time limit is the limit. */
async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await sleep(20);
  }
}

describe('the scheduler', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let db: Database;

  before(async () => {
    databases = await startDatabases({ db2: false });
    client = await openClient(databases.db1.url);
    db = createDatabase({ url: databases.db1.url, max: 8, applicationName: 'test', log });
    await client.query('delete from cron.job');
    await client.query('create table public.runs (at timestamptz default clock_timestamp())');
    await client.query(
      `select cron.schedule('count', '*/10 * * * *', 'insert into public.runs default values')`,
    );
  });
  after(async () => {
    await client?.end();
    await db?.end();
    await databases?.stop();
  });

  const runs = async (): Promise<number> =>
    (await client.query('select count(*)::int as n from public.runs')).rows[0].n;

  it('runs a job once in its minute, and what a stall missed once', async () => {
    let nowMs = START_MS;
    const cron = new Cron(db, log, () => nowMs);
    const tickAt = async (ms: number): Promise<number> => {
      nowMs = ms;
      await cron.tick();
      await cron.settled();
      return runs();
    };
    assert.equal(await tickAt(START_MS), 1);
    assert.equal(await tickAt(START_MS + 1_000), 1);
    assert.equal(await tickAt(START_MS + 59_000), 1);
    assert.equal(await tickAt(START_MS + 55 * MINUTE_MS), 2, 'five moments passed meanwhile');
    assert.equal(await tickAt(START_MS + 56 * MINUTE_MS), 2);
    assert.equal(await tickAt(START_MS + 60 * MINUTE_MS), 3);
  });

  it('runs a job once when many schedulers tick at the same moment', async () => {
    const before = await runs();
    const crons = Array.from({ length: 8 }, () => new Cron(db, log, () => START_MS + 70 * MINUTE_MS));
    await Promise.all(crons.map((cron) => cron.tick()));
    await Promise.all(crons.map((cron) => cron.settled()));
    assert.equal(await runs(), before + 1);
  });

  it('sends what is queued and stores the answer, the refusal and the timeout', async () => {
    const { server, url, seen } = await startReceiver();
    const gone = url.replace(/:\d+/, ':1');
    try {
      const { rows } = await client.query(
        `select net.http_post($1 || '/ok', '{"a": 1}', headers => '{"X-Test": "yes"}') as ok,
           net.http_get($1 || '/moved') as moved,
           net.http_get($1 || '/never', timeout_milliseconds => 100) as never,
           net.http_get($2 || '/gone') as gone`,
        [url, gone],
      );
      await Promise.all([1, 2].map(() => sendQueued(db, log, new AbortController().signal)));
      const stored = await client.query(
        'select id, status_code, content_type, content, timed_out, error_msg from net._http_response order by id',
      );
      const { ok, moved, never, gone: refused } = rows[0];
      assert.deepEqual(stored.rows.slice(0, 3), [
        {
          id: ok,
          status_code: 200,
          content_type: 'text/plain',
          content: 'done',
          timed_out: false,
          error_msg: null,
        },
        { id: moved, status_code: 302, content_type: null, content: '', timed_out: false, error_msg: null },
        {
          id: never,
          status_code: null,
          content_type: null,
          content: null,
          timed_out: true,
          error_msg: 'Timeout of 100 ms reached',
        },
      ]);
      assert.equal(stored.rows.length, 4);
      assert.equal(stored.rows[3].id, refused);
      assert.match(stored.rows[3].error_msg, /ECONNREFUSED|bad port/);
      assert.deepEqual(seen, ['GET /moved', 'GET /never', 'POST /ok yes application/json {"a": 1}']);
      await client.query(`update net._http_response set created = now() - interval '7 hours' where id = $1`, [
        ok,
      ]);
      assert.equal(
        (await db.call<{ purge_responses: number }>('net.purge_responses', {}))[0]?.purge_responses,
        1,
      );
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('sends every one of many requests once, with two senders', async () => {
    const { server, url, seen } = await startReceiver();
    try {
      await client.query(`select net.http_get($1 || '/many/' || i) from generate_series(1, 100) i`, [url]);
      await Promise.all([1, 2].map(() => sendQueued(db, log, new AbortController().signal)));
      assert.equal(new Set(seen).size, 100);
      assert.equal(seen.length, 100);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('keeps going through an outage of the database', async () => {
    await client.query('delete from cron.job');
    await client.query(`select cron.schedule('often', '1 second', 'insert into public.runs default values')`);
    const lines: string[] = [];
    const { port, url } = databases.db1;
    const proxy = await startProxy(() => port, createRandom(0));
    const scheduler = startScheduler({
      db1Url: url.replace(`:${port}/`, `:${proxy.port}/`),
      log: createLog('info', (line) => lines.push(JSON.parse(line).message)),
    });
    try {
      const atFirst = await runs();
      await until(async () => ((await runs()) > atFirst ? true : undefined));
      proxy.begin({ kind: 'cut' });
      await until(async () => (lines.some((line) => line.includes('tries again')) ? true : undefined));
      const meanwhile = await runs();
      proxy.heal();
      await until(async () => ((await runs()) > meanwhile ? true : undefined));
      await until(async () => (lines.some((line) => line.endsWith('goes on')) ? true : undefined));
    } finally {
      await scheduler.stop();
      await proxy.close();
    }
  });

  /** The first that a scheduler says, and how much it says until its first turns are over. */
  const wordsOf = async (db1Url: string) => {
    const lines: Record<string, unknown>[] = [];
    let told = (): void => undefined;
    const started = new Promise<void>((resolve) => {
      told = resolve;
    });
    const scheduler = startScheduler({
      db1Url,
      log: createLog('info', (line) => {
        const { at: _, ...words } = JSON.parse(line);
        lines.push(words);
        told();
      }),
    });
    await started;
    await scheduler.stop();
    return lines;
  };
  const started = { level: 'info', message: 'scheduler started', run_jobs: false, send_requests: false };

  it('leaves the jobs to the owner where its role is one of a server’s own, and says so', async () => {
    // As docs/secure.md makes it.
    await client.query(`create role sluice_app login password 'test' bypassrls in role service_role`);
    const url = new URL(databases.db1.url);
    [url.username, url.password] = ['sluice_app', 'test'];
    assert.deepEqual(await wordsOf(url.href), [
      { ...started, needs_owner: true },
      {
        level: 'warn',
        message:
          'cron jobs and queued requests of this database wait for a worker that connects as its owner',
      },
    ]);
  });

  it('does nothing where pg_cron and pg_net are real', async () => {
    await client.query('alter function cron.run_job rename to run_job_hidden');
    await client.query('alter function net.take_requests rename to take_requests_hidden');
    assert.deepEqual(await wordsOf(databases.db1.url), [{ ...started, needs_owner: false }]);
  });
});

async function startReceiver(): Promise<{ server: Server; url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    const body = await textOf(request);
    const { 'x-test': mark, 'content-type': type } = request.headers;
    seen.push([request.method, request.url, mark, type, body].filter(Boolean).join(' '));
    seen.sort();
    if (request.url === '/never') return;
    if (request.url === '/moved') response.writeHead(302, { location: '/elsewhere' }).end();
    else response.writeHead(200, { 'content-type': 'text/plain' }).end('done');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

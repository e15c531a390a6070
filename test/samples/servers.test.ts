import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import type { SampleHistory } from '#core/console/samples.ts';
import { startProxy } from '../bridge/proxy.ts';
import { runHere } from '../cli/support.ts';
import { openEvents } from '../console/support.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  claim,
  openClient,
  putOnSale,
  startTestServer,
} from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

const POLL_MS = 100;

describe('sampling', () => {
  let databases: TestDatabases;
  let proxies: { db1: Awaited<ReturnType<typeof startProxy>>; db2: Awaited<ReturnType<typeof startProxy>> };
  let servers: readonly [Server, Server];
  let db1: pg.Client;
  let db2: pg.Client;
  before(async () => {
    databases = await startDatabases({ settings: { track_functions: 'all' } });
    proxies = { db1: await startProxy(databases.db1.url), db2: await startProxy(databases.db2.url) };
    const place = { db1: { url: proxies.db1.url }, db2: { url: proxies.db2.url } };
    servers = [await startTestServer(place), await startTestServer(place)];
    [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
    await putOnSale(db1, 'gig', 50);
  });
  after(async () => {
    await Promise.all(servers?.map((server) => server.stop()) ?? []);
    await Promise.all([db1?.end(), db2?.end()]);
    await Promise.all([proxies?.db1.close(), proxies?.db2.close()]);
    await databases?.stop();
  });

  const count = async (db: pg.Client, sql: string): Promise<number> => (await db.query(sql)).rows[0].count;
  const samplesOf = (db: pg.Client) => count(db, 'select count(*)::int from audit.samples');
  const callsOf = (db: pg.Client, name: string) =>
    count(
      db,
      `select coalesce(sum(calls), 0)::int as count from pg_stat_user_functions where funcname = '${name}'`,
    );
  const read = async (query = ''): Promise<SampleHistory> => {
    const answer = await ask(`${servers[0].url}/admin/samples${query}`, { headers: bearer(ADMIN_KEY) });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const waitFor = async (what: () => Promise<boolean>, patienceMs = 30_000): Promise<void> => {
    for (const end = Date.now() + patienceMs; !(await what()); ) {
      assert(Date.now() < end, 'waited in vain');
      await pause(POLL_MS);
    }
  };

  it('looks at each database once in two seconds, however many servers run, with no page open', async () => {
    const begun = await samplesOf(db1);
    await waitFor(async () => (await samplesOf(db1)) >= begun + 4);
    for (const db of [db1, db2]) {
      await db.query('select pg_stat_force_next_flush()');
      // A session tells of its calls when it rests.
      await waitFor(async () => Math.abs((await callsOf(db, 'look')) - (await samplesOf(db))) <= 1);
      const [asked, looked] = [await callsOf(db, 'take_sample'), await callsOf(db, 'look')];
      assert(asked >= looked + 3, `${asked} questions of two servers, ${looked} looks`);
    }
  });

  it('gives every server the numbers, so that both show those who watch the same', async () => {
    await claim(servers[0].url, 'gig', { user_id: 'ann' });
    for (const { url } of servers) {
      const events = await openEvents(`${url}/admin/live`, bearer(ADMIN_KEY));
      while ((await events.next('sample')).data.queue_depth !== 1);
      events.leave();
    }
  });

  it('is read by range, with what it is of, and refuses what is not a time', async () => {
    const history = await read();
    assert.equal(history.step_sec, 10);
    assert(history.parts.includes('pool gig'), history.parts.join());
    const pool = await read('?range=15m&of=pool%20gig');
    assert.equal(pool.step_sec, 2);
    assert.deepEqual(pool.part?.columns.slice(0, 4), ['at', 'available', 'reserved', 'consumed']);
    assert.equal(pool.part?.rows.at(-1)?.[1], 49);
    assert(history.marks.some(({ kind }) => kind === 'deploy' || kind === 'start'));
    for (const wrong of [
      'range=31d',
      'range=1w',
      'from=yesterday',
      'to=2026-01-01T00:00:00Z',
      'range=1h&from=2026-01-01',
      'x=1',
    ])
      assertRefusal(
        await ask(`${servers[0].url}/admin/samples?${wrong}`, { headers: bearer(ADMIN_KEY) }),
        422,
        'invalid_input',
      );
  });

  it('goes on in one database while the other is away, and both know of it afterwards', async () => {
    for (const [name, away, other] of [
      ['DB2', 'db2', () => db1],
      ['DB1', 'db1', () => db2],
    ] as const) {
      await (away === 'db1' ? db1 : db2).end();
      const before = await samplesOf(other());
      // On a busy machine a database may have been away for a moment before.
      const stoppedAt = new Date().toISOString();
      await databases[away].stop('immediate');
      const isOpen = `select count(*)::int from audit.marks where kind = 'outage' and subject = '${name}' and ended_at is null`;
      await waitFor(async () => (await count(other(), isOpen)) === 1);
      await waitFor(async () => (await samplesOf(other())) >= before + 3);
      const seen = await read(`?from=${new Date(Date.now() - 600_000).toISOString()}`);
      assert.deepEqual(seen.databases, [
        { name: 'DB1', ok: away !== 'db1' },
        { name: 'DB2', ok: away !== 'db2' },
      ]);
      assert(
        seen.marks.some(
          ({ kind, subject, ended_at }) => kind === 'outage' && subject === name && ended_at === null,
        ),
      );
      const again = await databases[away].restart();
      proxies[away].retarget(again.url);
      const client = await openClient(again.url);
      if (away === 'db1') db1 = client;
      else db2 = client;
      const isClosed = `select count(*)::int from audit.marks where kind = 'outage' and subject = '${name}' and ended_at > '${stoppedAt}'`;
      for (const db of [db1, db2]) await waitFor(async () => (await count(db, isClosed)) === 1);
      await waitFor(
        async () =>
          (await count(client, `select count(*)::int from audit.marks where kind = 'restart'`)) === 1,
      );
    }
    const { marks, columns, rows } = await read(`?from=${new Date(Date.now() - 600_000).toISOString()}`);
    const outages = new Set(marks.filter(({ kind }) => kind === 'outage').map(({ subject }) => subject));
    assert.deepEqual([...outages].sort(), ['DB1', 'DB2']);
    const isUp = (name: string) => rows.map((row) => row[columns.indexOf(name)]);
    assert(isUp('db2_ok').includes(false) && isUp('db2_ok').includes(true));
  });

  it('is drawn in the terminal, with what happened', async () => {
    // The crash emptied the slot cache: the pool has numbers again after the next claim.
    await waitFor(async () => {
      const { status } = await claim(servers[0].url, 'gig', { user_id: 'bob', request_id: 'once' });
      return status === 200 || status === 201;
    });
    const env = { SLUICE_URL: servers[0].url, SLUICE_ADMIN_KEY: ADMIN_KEY };
    /** A bar that has just begun is empty until the next sample, at most two seconds later. */
    const draws = async (args: string[], pattern: RegExp): Promise<string> => {
      let drawn = await runHere(['status', ...args], env);
      for (let tries = 0; tries < 30 && drawn.code === 0 && !pattern.test(drawn.stdout); tries++) {
        await pause(1_000);
        drawn = await runHere(['status', ...args], env);
      }
      assert.equal(drawn.code, 0, drawn.stderr);
      assert.match(drawn.stdout, pattern);
      return drawn.stdout;
    };
    const drawn = await draws(['--since', '15m'], /^queue +2 +2 .*[▁-█]/m);
    assert.match(drawn, /outage {4}DB2 did not answer {2}for \d+ s/);
    const json = JSON.parse((await runHere(['status', '--since', '15m', '--json'], env)).stdout);
    assert.equal(json.step_sec, 2);
    await draws(['--since', '1h', '--of', 'pool gig'], /^available +48 +(48|49|50) /m);
    for (const wrong of [
      ['--since', 'soon'],
      ['--of', 'pool gig'],
      ['--since', '1h', '--watch'],
      ['--since', '1h', '--of', 'pool x'],
    ]) {
      const refused = await runHere(['status', ...wrong], env);
      assert.equal(refused.code, 2, `${wrong}: ${refused.stderr}`);
      assert.match(refused.stderr, /\nhint: /);
    }
    assert.match((await runHere(['status', '--help'], env)).stdout, /--since TIME/);
  });
});

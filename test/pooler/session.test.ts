// Our own sessions through a real PgBouncer in transaction mode, with SLUICE_POOLER and without.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { startListener } from '../../src/db/listener.ts';
import { directUrl, isPooled, requireDirectUrl } from '../../src/db/pooler.ts';
import { findPooler } from '../../src/db/pooler_look.ts';
import { judgePooler } from '../../src/doctor/judge.ts';
import type { Look } from '../../src/doctor/look.ts';
import { createLog } from '../../src/log.ts';
import { ADMIN_KEY, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ensurePgbouncer, type Pooler, startPgbouncer } from '../support/pgbouncer.ts';
import { startServe, startWork } from '../webhook/processes.ts';
import { sluice } from '../work/support.ts';

const log = createLog('silent');
const PROBE = `
  create function public.probe() returns table (pid int, lock_timeout text, statement_timeout text, timezone text, idle text)
  language sql as $$
    select pg_backend_pid(), current_setting('lock_timeout'), current_setting('statement_timeout'),
      current_setting('timezone'), current_setting('idle_in_transaction_session_timeout')
  $$;
  create function public.nap(p_sec float8) returns void language sql as $$ select pg_sleep(p_sec) $$;
  create function public.refuse() returns void language plpgsql as $$
    begin raise exception 'no' using errcode = 'SL001'; end $$;
  create table public.kept (note text);
  create function public.keep(p_note text) returns void language sql as $$ insert into public.kept values (p_note) $$;`;
/** What drivers send at login, and PgBouncer 1.18 refuses unless it is told to drop it. */
const AT_LOGIN = ['options', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];

type Probe = { pid: number; lock_timeout: string; statement_timeout: string; timezone: string; idle: string };

/** Why PgBouncer is missing: this is not Debian, or the tests may not install packages. */
const reason = await ensurePgbouncer();

describe('a pooler in transaction mode', { skip: reason ?? false }, () => {
  let databases: TestDatabases;
  let pooler: Pooler;
  let lenient: Pooler;
  let polite: Pooler;
  const opened: Database[] = [];

  before(async () => {
    databases = await startDatabases();
    const urls = [databases.db1.url, databases.db2.url];
    pooler = await startPgbouncer({ urls, servers: 3 });
    lenient = await startPgbouncer({ urls, servers: 3, ignored: AT_LOGIN });
    polite = await startPgbouncer({ urls, mode: 'session' });
    const client = await openClient(databases.db1.url);
    await client.query(PROBE);
    await client.end();
  });
  beforeEach(() => {
    process.env.SLUICE_POOLER = 'transaction';
  });
  after(async () => {
    delete process.env.SLUICE_POOLER;
    await Promise.all(opened.map((database) => database.end()));
    for (const one of [pooler, lenient, polite]) await one?.stop();
    await databases?.stop();
  });

  const open = (url: string, more = {}): Database => {
    const database = createDatabase({ url, max: 8, applicationName: 'sluice-test', log, ...more });
    opened.push(database);
    return database;
  };
  const pooled = () => pooler.urlOf(databases.db1.url);
  const many = (database: Database) =>
    Promise.allSettled(Array.from({ length: 60 }, () => database.call<Probe>('public.probe', {})));

  it('carries calls whose settings hold in their own transaction, on whatever server it lends', async () => {
    const database = open(pooled(), { lockTimeoutMs: 111, callTimeoutMs: 62_000 });
    await database.call('public.probe', {});
    const rows = (await many(database)).map((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value[0] as Probe;
    });
    for (const { pid, ...settings } of rows) {
      assert.ok(pid > 0);
      const expected = { lock_timeout: '111ms', statement_timeout: '1min', timezone: 'UTC', idle: '1min' };
      assert.deepEqual(settings, expected);
    }
    assert.ok(new Set(rows.map(({ pid }) => pid)).size > 1, 'one server took them all');
    const client = await openClient(pooled());
    const { rows: left } = await client.query('show lock_timeout');
    await client.end();
    assert.deepEqual(left, [{ lock_timeout: '0' }], 'a setting has stayed on the server');
  });

  it('is not usable without SLUICE_POOLER: it refuses the login, or answers for another statement', async () => {
    delete process.env.SLUICE_POOLER;
    await assert.rejects(open(pooled()).call('public.probe', {}), /unsupported startup parameter/);
    const answers = await many(open(lenient.urlOf(databases.db1.url)));
    const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    assert.ok(failures.length > 0, 'nothing failed');
    for (const { message } of failures) assert.match(message, /prepared statement "sluice_\d+"/);
  });

  it('gets its server back after a refusal, a timeout and a failed transaction', async () => {
    const database = open(pooled(), { max: 1, callTimeoutMs: 7_000 });
    await assert.rejects(database.call('public.refuse', {}), { code: 'SL001' });
    await assert.rejects(database.call('public.nap', { p_sec: 30 }), { code: '57014' });
    const broken = database.transact(async (tx) => {
      await tx.call('public.keep', { p_note: 'undone' });
      await tx.call('public.refuse', {});
    }, 60_000);
    await assert.rejects(broken, { code: 'SL001' });
    await database.transact((tx) => tx.call('public.keep', { p_note: 'done' }), 60_000);
    const client = await openClient(databases.db1.url);
    const { rows } = await client.query('select note from public.kept');
    const { rows: open_ } = await client.query(
      "select count(*)::int as n from pg_stat_activity where state like 'idle in transaction%'",
    );
    await client.end();
    assert.deepEqual([rows, open_], [[{ note: 'done' }], [{ n: 0 }]]);
  });

  it('is told from a direct address and from a pooler in session mode', async () => {
    const { url } = databases.db1;
    assert.equal(await findPooler(url), 'none');
    assert.equal(await findPooler(pooled()), 'transaction');
    assert.equal(await findPooler(polite.urlOf(url)), 'session');
  });

  it('has no listener, which needs a session; a direct address has', async () => {
    let heard = 0;
    process.env.DB1_URL = pooled();
    const options = { url: pooled(), channel: 'pooler_test', onNotice: () => heard++, log };
    const none = startListener(options);
    process.env.DB1_DIRECT_URL = databases.db1.url;
    const listener = startListener(options);
    // It looks once when it begins to listen.
    while (heard === 0) await pause(10);
    const client = await openClient(databases.db1.url);
    await client.query('notify pooler_test');
    while (heard < 2) await pause(10);
    await client.end();
    await Promise.all([none.stop(), listener.stop()]);
    delete process.env.DB1_URL;
    delete process.env.DB1_DIRECT_URL;
    assert.equal(heard, 2);
  });

  it('is refused by migrate, which takes the direct addresses where they are given', async () => {
    const [db1, db2] = [databases.db1.url, databases.db2.url];
    const urls = { DB1_URL: pooler.urlOf(db1), DB2_URL: pooler.urlOf(db2) };
    const unsaid = await sluice(['migrate'], urls).ended;
    assert.equal(unsaid.code, 1);
    assert.match(unsaid.stderr, /leads through a pooler in transaction mode.*\n.*DB1_DIRECT_URL/);
    const said = { ...urls, SLUICE_POOLER: 'transaction' };
    const without = await sluice(['migrate'], said).ended;
    assert.equal(without.code, 1);
    assert.match(without.stderr, /needs a session.*\n.*DB1_DIRECT_URL and DB2_DIRECT_URL/);
    const direct = await sluice(['migrate'], { ...said, DB1_DIRECT_URL: db1, DB2_DIRECT_URL: db2 }).ended;
    assert.equal(direct.stdout, 'db1: up to date\ndb2: up to date\n', direct.stderr);
  });

  it('carries the demo: server, worker and demo through it, each seat one ticket', async () => {
    const [db1Url, db2Url] = [pooler.urlOf(databases.db1.url), pooler.urlOf(databases.db2.url)];
    const env = { SLUICE_POOLER: 'transaction' };
    const running = await Promise.all([
      startServe({ db1Url, db2Url }, { env }),
      startWork({ db1Url, db2Url }, { env }),
    ]);
    try {
      const { code, stdout, stderr } = await sluice(['demo', '--buyers', '300', '--seats', '80', '--json'], {
        ...env,
        DB1_URL: db1Url,
        DB2_URL: db2Url,
        SLUICE_URL: running[0].url,
        SLUICE_ADMIN_KEY: ADMIN_KEY,
      }).ended;
      assert.equal(code, 0, stderr);
      const { ok, tickets } = JSON.parse(stdout);
      assert.deepEqual({ ok, tickets }, { ok: true, tickets: 80 }, stdout);
    } finally {
      await Promise.all(running.map((one) => one.stop()));
    }
  });

  it('is seen by doctor, which fails where servers and workers do not know of it', async () => {
    const [db1, db2] = [databases.db1.url, databases.db2.url];
    const urls = { DB1_URL: pooler.urlOf(db1), DB2_URL: pooler.urlOf(db2) };
    const unsaid = await sluice(['doctor'], urls).ended;
    assert.match(unsaid.stdout, /DB1 intake: pooler\s+in transaction mode, and SLUICE_POOLER is not set/);
    const said = await sluice(['doctor'], { ...urls, SLUICE_POOLER: 'transaction', DB1_DIRECT_URL: db1 })
      .ended;
    assert.match(said.stdout, /DB1 intake: pooler\s.*workers listen at DB1_DIRECT_URL/);
    assert.match(
      said.stdout,
      /DB2 ledger: pooler\s.*without DB2_DIRECT_URL workers look four times a second/,
    );
  });
});

describe('SLUICE_POOLER', () => {
  it('is transaction, or nothing', () => {
    assert.equal(isPooled({}), false);
    assert.equal(isPooled({ SLUICE_POOLER: '' }), false);
    assert.equal(isPooled({ SLUICE_POOLER: 'transaction' }), true);
    assert.throws(() => isPooled({ SLUICE_POOLER: 'session' }), /must be transaction/);
  });

  it('makes a session need the direct address of the same database', () => {
    const env = {
      SLUICE_POOLER: 'transaction',
      DB1_URL: 'one',
      DB2_URL: 'two',
      DB2_DIRECT_URL: 'direct two',
    };
    assert.equal(directUrl('one', { DB1_URL: 'one', DB1_DIRECT_URL: 'direct one' }), 'one');
    assert.equal(directUrl('one', env), undefined);
    assert.equal(requireDirectUrl('two', env), 'direct two');
    assert.throws(() => requireDirectUrl('one', env), /needs a session/);
  });

  it('is a warning of doctor where no pooler runs, and nothing without both', () => {
    const look = (pooler: Look['pooler']) => ({ pooler }) as Look;
    const levels = (pooler: Look['pooler'], env = {}) =>
      judgePooler('db1', look(pooler), env).map(({ status }) => status);
    const env = { SLUICE_POOLER: 'transaction' };
    assert.deepEqual([levels('none'), levels('session'), levels('transaction')], [[], ['ok'], ['fail']]);
    assert.deepEqual([levels('none', env), levels('transaction', env)], [['warn'], ['ok']]);
  });
});

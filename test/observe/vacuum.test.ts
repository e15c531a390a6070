import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallFunction } from '#core/call_function.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { TITLES } from '../../src/doctor/judge.ts';
import { judgeVacuum } from '../../src/doctor/vacuum.ts';
import { createLog } from '../../src/log.ts';
import {
  createVacuumLevels,
  type OldestSnapshot,
  readVacuumLevels,
  type VacuumedTable,
  type VacuumLevels,
} from '../../src/server/vacuum_levels.ts';
import { runHere } from '../cli/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';

const log = createLog('silent');
const SIDES = [
  ['db1', 'DB1'],
  ['db2', 'DB2'],
] as const;
type Side = (typeof SIDES)[number][0];
const DEADLINE_MS = 30_000;
const POLL_MS = 20;

async function until<Value>(what: string, look: () => Promise<Value | undefined | false>): Promise<Value> {
  for (const deadline = Date.now() + DEADLINE_MS; ; await sleep(POLL_MS)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    assert.ok(Date.now() < deadline, `never: ${what}`);
  }
}

describe('vacuum of both databases', () => {
  let databases: TestDatabases;
  const opened: Database[] = [];
  let calls: Record<Side, CallFunction>;
  let writers: Record<Side, Session>;

  before(async () => {
    // A vacuum of its own would come at any time.
    databases = await startDatabases({ settings: { autovacuum: 'off', max_prepared_transactions: '2' } });
    const open = (url: string): CallFunction => {
      const db = createDatabase({ url, max: 1, applicationName: 'test', log });
      opened.push(db);
      return (name, args) => db.call(`public.${name}`, args);
    };
    calls = { db1: open(databases.db1.url), db2: open(databases.db2.url) };
    writers = {
      db1: await openSession(databases.db1.url),
      db2: await openSession(databases.db2.url),
    };
  });
  after(async () => {
    await Promise.all(opened.map((db) => db.end()));
    await Promise.all(Object.values(writers ?? {}).map((session) => session.close()));
    await databases?.stop();
  });

  const levelsOf = async (side: Side): Promise<VacuumLevels> => {
    const levels = await readVacuumLevels(calls[side]);
    assert.ok(levels);
    return levels;
  };

  /** A page of its own each time: one is kept for a second. */
  const gauge = async (series: string): Promise<number | undefined> => {
    const page = await createVacuumLevels([{ name: 'main', call: calls.db1 }], calls.db2, log).page();
    const line = page.split('\n').find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };

  const doctor = async (side: Side, what: string): Promise<Finding> => {
    const env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url, SLUICE_DIR: '/nonexistent' };
    const { stdout, stderr } = await runHere(['doctor', '--json'], env);
    assert.notEqual(stdout, '', stderr);
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    const found = checks.find(({ check }) => check === `${TITLES[side]}: ${what}`);
    assert.ok(found, `the doctor has no line for ${what}: ${stdout}`);
    return found;
  };

  /** Uses up ids of transactions, as all writing does. */
  const passTransactions = async (side: Side, count: number): Promise<void> => {
    for (let passed = 0; passed < count; passed++) await writers[side].value('select pg_current_xact_id()');
  };

  const holdSnapshot = async (side: Side): Promise<Session> => {
    const session = await openSession(databases[side].url);
    await session.client.query(`set application_name = 'a forgotten report'`);
    await session.client.query('begin isolation level repeatable read');
    await session.client.query('select 1');
    return session;
  };

  for (const [side, database] of SIDES)
    it(`shows who holds a snapshot of ${database} open and for how long, until it is closed`, async () => {
      const seconds = `sluice_oldest_snapshot_seconds{database="${database}"}`;
      const transactions = `sluice_oldest_snapshot_transactions{database="${database}"}`;
      const holder = await holdSnapshot(side);
      await passTransactions(side, 3);
      const { snapshot } = await levelsOf(side);
      assert.ok(snapshot);
      const { age_sec, age_xacts, ...who } = snapshot;
      assert.deepEqual(who, {
        kind: 'session',
        pid: holder.pid,
        name: 'a forgotten report',
        state: 'idle in transaction',
      });
      assert.ok(age_sec !== null && age_xacts >= 3, JSON.stringify(snapshot));
      assert.ok(((await gauge(transactions)) ?? 0) >= 3);
      const age = await until(
        'the gauge rises',
        async () => ((await gauge(seconds)) ?? 0) > age_sec && gauge(seconds),
      );
      assert.ok(age > 0);

      const line = await doctor(side, 'oldest snapshot');
      assert.equal(line.status, 'ok', 'it is not old yet');
      assert.match(
        line.found,
        new RegExp(`^pid ${holder.pid} \\(a forgotten report, idle in transaction\\), for `),
      );
      // Ten minutes later.
      const [later] = judgeVacuum(side, {
        ...(await levelsOf(side)),
        snapshot: { ...snapshot, age_sec: age_sec + 600 },
      });
      assert.equal(later?.status, 'warn');
      assert.match(later?.todo ?? '', new RegExp(`pg_terminate_backend\\(${holder.pid}\\)`));

      await holder.close();
      await until('the snapshot is gone', async () => (await levelsOf(side)).snapshot === null);
      assert.deepEqual([await gauge(seconds), await gauge(transactions)], [0, 0]);
      assert.doesNotMatch((await doctor(side, 'oldest snapshot')).found, /a forgotten report/);
    });

  it('tells cells apart by their name', async () => {
    const cells = ['north', 'south'].map((name) => ({ name, call: calls.db1 }));
    const page = await createVacuumLevels(cells, calls.db2, log).page();
    for (const labels of ['database="DB1",cell="north"', 'database="DB1",cell="south"', 'database="DB2"'])
      assert.ok(page.includes(`\nsluice_oldest_snapshot_transactions{${labels}} `), page);
  });

  it('counts a transaction that has written and idles without a snapshot', async () => {
    const session = await openSession(databases.db1.url);
    await session.client.query('begin');
    await session.client.query('select pg_current_xact_id()');
    await passTransactions('db1', 2);
    const { snapshot } = await levelsOf('db1');
    assert.equal(snapshot?.pid, session.pid);
    await session.close();
  });

  it('counts a prepared transaction that was left behind', async () => {
    const { client } = writers.db2;
    await client.query('begin');
    await client.query('select pg_current_xact_id()');
    await client.query(`prepare transaction 'left behind'`);
    await passTransactions('db2', 2);
    const { snapshot } = await levelsOf('db2');
    assert.deepEqual([snapshot?.kind, snapshot?.name], ['prepared transaction', 'left behind']);
    assert.ok(snapshot !== null && snapshot.age_sec !== null && snapshot.age_xacts >= 2);
    await client.query(`rollback prepared 'left behind'`);
    await until('it is gone', async () => (await levelsOf('db2')).snapshot === null);
  });

  it('says that an age is not known where its owner may not see the session', async () => {
    const { client } = writers.db1;
    await client.query('create role plain');
    await client.query('grant usage on schema pgmq to plain');
    const { role: owner } = await levelsOf('db1');
    await client.query('alter function public.vacuum_levels() owner to plain');
    const holder = await holdSnapshot('db1');
    try {
      await passTransactions('db1', 3);
      const levels = await levelsOf('db1');
      const { snapshot } = levels;
      assert.deepEqual(
        [levels.role, snapshot?.pid, snapshot?.age_sec, snapshot?.state],
        ['plain', holder.pid, null, null],
      );
      assert.equal(await gauge('sluice_oldest_snapshot_seconds{database="DB1"}'), undefined);
      assert.ok(((await gauge('sluice_oldest_snapshot_transactions{database="DB1"}')) ?? 0) >= 3);
      const [line] = judgeVacuum('db1', levels);
      assert.equal(line?.status, 'skip');
      assert.match(
        line?.found ?? '',
        /^unknown: pid \d+ .*plain may not see that session: grant it pg_read_all_stats$/,
      );
      await client.query('grant pg_read_all_stats to plain');
      assert.equal((await levelsOf('db1')).snapshot?.state, 'idle in transaction');
    } finally {
      await holder.close();
      await client.query(`alter function public.vacuum_levels() owner to "${owner}"`);
    }
  });

  it('shows dead rows that vacuum cannot remove while a snapshot is held, and no longer', async () => {
    const series = (name: string) => `${name}{database="DB1",table="pgmq.q_intake_queue"}`;
    const deadRows = () => gauge(series('sluice_table_dead_rows'));
    /** The condition of the alert SluiceDeadRows. */
    const isBehind = async () =>
      ((await deadRows()) ?? 0) > 100_000 + 0.2 * ((await gauge(series('sluice_table_live_rows'))) ?? 0);
    const { client } = writers.db1;
    const messages = 120_000;
    await client.query(
      `insert into pgmq.q_intake_queue (vt, message) select now(), '{}' from generate_series(1, $1)`,
      [messages],
    );
    const holder = await holdSnapshot('db1');
    await client.query('delete from pgmq.q_intake_queue');
    await client.query('select pg_stat_force_next_flush()');
    await until('the statistics have them', isBehind);
    assert.equal(await gauge(series('sluice_table_vacuum_age_seconds')), undefined, 'it was never vacuumed');
    const late = await doctor('db1', 'dead rows');
    assert.equal(late.status, 'warn');
    assert.match(late.found, /^pgmq\.q_intake_queue has 120,000 dead rows, \S+ alive, never vacuumed$/);

    await client.query('vacuum pgmq.q_intake_queue');
    assert.equal(await isBehind(), true, 'vacuum has run, and the snapshot keeps the rows');
    assert.ok(((await gauge(series('sluice_table_vacuum_age_seconds'))) ?? -1) >= 0);

    await holder.close();
    await until('the snapshot is gone', async () => (await levelsOf('db1')).snapshot === null);
    await client.query('vacuum pgmq.q_intake_queue');
    assert.deepEqual([await deadRows(), await isBehind()], [0, false]);
    assert.equal((await doctor('db1', 'dead rows')).status, 'ok');
  });
});

describe('the doctor on vacuum', () => {
  const TABLE: VacuumedTable = { name: 'public.claims', live_rows: 10, dead_rows: 5, vacuum_age_sec: 20 };
  const SNAPSHOT: OldestSnapshot = {
    kind: 'session',
    pid: 7,
    name: 'psql',
    state: 'active',
    age_xacts: 12,
    age_sec: 1,
  };
  const judged = (snapshot: OldestSnapshot | null, table: VacuumedTable = TABLE) =>
    judgeVacuum('db1', { role: 'owner', tables: [table], snapshot });

  it('finds nothing where nothing is held and vacuum keeps up', () => {
    assert.deepEqual(
      judged(null).map(({ status, found }) => [status, found]),
      [
        ['ok', 'none is held'],
        ['ok', 'vacuum keeps up; public.claims has most, 5'],
      ],
    );
  });

  it('names what ends each kind of holder', () => {
    const old = { ...SNAPSHOT, age_sec: 600, name: 'north' };
    for (const [kind, todo] of [
      ['session', /pg_terminate_backend\(7\)/],
      ['prepared transaction', /rollback prepared 'north'/],
      ['replication slot', /pg_drop_replication_slot\('north'\)/],
      ['standby', /hot_standby_feedback/],
    ] as const) {
      const [finding] = judged({ ...old, kind });
      assert.equal(finding?.status, 'warn');
      assert.match(finding?.todo ?? '', todo);
    }
  });

  it('goes by transactions where seconds are not known', () => {
    const slot: OldestSnapshot = { ...SNAPSHOT, kind: 'replication slot', age_sec: null };
    assert.equal(judged(slot)[0]?.status, 'skip');
    assert.match(judged(slot)[0]?.found ?? '', /^unknown: .*Postgres does not keep its time$/);
    assert.equal(judged({ ...slot, age_xacts: 1_000_000 })[0]?.status, 'warn');
  });

  it('lets a burst leave dead rows until the next vacuum, and measures them by the rows that live', () => {
    const deadRows = (table: Partial<VacuumedTable>, snapshot: OldestSnapshot | null = null) =>
      judged(snapshot, { ...TABLE, dead_rows: 200_000, ...table })[1];
    assert.equal(deadRows({ vacuum_age_sec: 299 })?.status, 'ok');
    assert.equal(deadRows({ vacuum_age_sec: 300 })?.status, 'warn');
    assert.equal(deadRows({ vacuum_age_sec: null })?.status, 'warn');
    assert.equal(deadRows({ vacuum_age_sec: null, live_rows: 500_000 })?.status, 'ok');
    const held = deadRows({}, { ...SNAPSHOT, age_sec: 300 });
    assert.equal(held?.status, 'warn');
    assert.match(held?.todo ?? '', /a snapshot keeps vacuum from removing them/);
  });
});

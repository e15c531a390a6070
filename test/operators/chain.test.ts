import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { createDatabase } from '../../src/db/database.ts';
import { seal, startSealing } from '../../src/scheduler/sealing.ts';
import { runHere } from '../cli/support.ts';
import { memoryLog } from '../core/support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

type Side = 'db1' | 'db2';

const ROWS = 12;
const write = (client: pg.Client, subject: string) =>
  client.query(
    `insert into audit.audit_logs (actor, action, subject) values ('ann', 'test', $1) returning id`,
    [subject],
  );

describe('the chain of the audit log', () => {
  let databases: TestDatabases;
  let clients: Record<Side, pg.Client>;
  let env: Record<string, string>;
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chain-'));
  before(async () => {
    databases = await startDatabases();
    clients = { db1: await openClient(databases.db1.url), db2: await openClient(databases.db2.url) };
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url };
  });
  after(async () => {
    for (const client of Object.values(clients ?? {})) await client.end();
    await databases?.stop();
    rmSync(dir, { recursive: true });
  });

  const sealed = async (side: Side) =>
    (await clients[side].query('select log_id::int as id from audit.seals order by seal_no')).rows.map(
      ({ id }) => id,
    );
  const sealNow = async (side: Side) =>
    (await clients[side].query('select public.seal_audit() as n')).rows[0].n;

  async function chainFindings(): Promise<Record<string, { status: string; found: string }>> {
    const { stdout } = await runHere(['doctor', '--json'], env);
    const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; found: string }[] };
    return Object.fromEntries(
      checks
        .filter(({ check }) => check.endsWith('audit chain'))
        .map((each) => [each.check.slice(0, 3), each]),
    );
  }

  it('takes no row before one whose transaction is still open, and none twice', async () => {
    const other = await openClient(databases.db1.url);
    await other.query('begin');
    const { rows: first } = await write(other, 'written first, committed last');
    const { rows: second } = await write(clients.db1, 'written last, committed first');
    assert(first[0].id < second[0].id);
    assert.equal(await sealNow('db1'), 0, 'no operator waits for the seal, and none is passed over');
    await other.query('commit');
    assert((await sealNow('db1')) >= 2);
    assert.equal(await sealNow('db1'), 0);
    const ids = await sealed('db1');
    assert.deepEqual(ids.slice(-2), [Number(first[0].id), Number(second[0].id)]);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    );
    await other.query('begin isolation level repeatable read');
    await assert.rejects(other.query('select public.seal_audit()'), { code: 'SL015' });
    await other.end();
  });

  it('is sealed in both databases by what runs beside the workers', async () => {
    const log = memoryLog();
    for (const client of Object.values(clients))
      for (let n = 0; n < ROWS; n++) {
        await write(client, `row ${n}`);
        // Leaves a gap among the ids.
        await client.query(
          `begin; insert into audit.audit_logs (actor, action, subject) values ('a', 'b', 'c'); rollback`,
        );
      }
    const sealing = startSealing([databases.db1.url, databases.db2.url], log);
    for (const side of ['db1', 'db2'] as const)
      while ((await sealed(side)).length < ROWS) await new Promise((resolve) => setTimeout(resolve, 20));
    await sealing.stop();
    const found = await chainFindings();
    for (const side of ['db1', 'db2']) {
      assert.equal(found[side]?.status, 'ok', String(found[side]?.found));
      assert.match(found[side]?.found ?? '', /^\d+ rows sealed, head [0-9a-f]{64}$/);
    }
  });

  it('is not written by two at a time', async () => {
    for (let n = 0; n < 200; n++) await write(clients.db2, `crowd ${n}`);
    const log = memoryLog();
    const sealers = Array.from({ length: 4 }, () =>
      createDatabase({ url: databases.db2.url, max: 1, applicationName: 'sealer', log }),
    );
    await Promise.all(sealers.map((db) => seal(db)));
    await Promise.all(sealers.map((db) => seal(db)));
    await Promise.all(sealers.map((db) => db.end()));
    assert.equal((await chainFindings()).db2?.status, 'ok');
  });

  /** As the owner in psql, with the triggers off; undone afterwards. */
  const damages: [what: string, sql: (id: number) => string, found: (id: number) => RegExp][] = [
    [
      'changed',
      (id) => `update audit.audit_logs set actor = 'eve' where id = ${id}`,
      (id) => new RegExp(`^row ${id}: changed$`),
    ],
    [
      'changed in its details',
      (id) => `update audit.audit_logs set details = '{"outcome":"kept"}' where id = ${id}`,
      (id) => new RegExp(`^row ${id}: changed$`),
    ],
    [
      'changed, and the chain said to begin after it',
      (id) =>
        `update audit.audit_logs set actor = 'eve' where id = ${id}; update audit.chain set begins_after = sealed_to`,
      (id) => new RegExp(`^row ${id}: changed$`),
    ],
    [
      'changed, and the chain said to end before it',
      (id) =>
        `update audit.audit_logs set actor = 'eve' where id = ${id}; update audit.chain set sealed_to = begins_after`,
      (id) => new RegExp(`^row ${id}: changed$`),
    ],
    [
      'removed',
      (id) => `delete from audit.audit_logs where id = ${id}`,
      (id) => new RegExp(`^row ${id}: missing$`),
    ],
    [
      'added among sealed rows',
      (id) =>
        `insert into audit.audit_logs (id, actor, action, subject) overriding system value values (${id + 1}, 'eve', 'x', 'y')`,
      (id) => new RegExp(`^row ${id + 1}: added$`),
    ],
    [
      'put in the place of another',
      (id) => `delete from audit.audit_logs where id = ${id}; delete from audit.seals where log_id = ${id};
        update audit.seals set seal_no = seal_no - 1 where log_id > ${id};
        insert into audit.audit_logs (id, actor, action, subject) overriding system value values (${id}, 'eve', 'x', 'y')`,
      (id) => new RegExp(`row ${id}: added, row ${id + 2}: sealed anew`),
    ],
    [
      'removed with its seal',
      (id) => `delete from audit.audit_logs where id = ${id}; delete from audit.seals where log_id = ${id}`,
      (id) => new RegExp(`^row ${id + 2}: the seal before it is missing$`),
    ],
    [
      'the last, removed with its seal',
      () => `with last as (delete from audit.seals where seal_no = (select max(seal_no) from audit.seals) returning log_id)
        delete from audit.audit_logs using last where id = last.log_id`,
      () => /row \d+: missing|the head does not fit/,
    ],
  ];
  for (const side of ['db1', 'db2'] as const)
    for (const [what, sql, found] of damages)
      it(`shows a row of ${side} that was ${what}, and doctor names it`, async () => {
        const client = clients[side];
        const id = (await sealed(side))[5] ?? 0;
        await client.query(`create table public.kept_logs as select * from audit.audit_logs;
          create table public.kept_seals as select * from audit.seals;
          create table public.kept_chain as select * from audit.chain`);
        await client.query(`set session_replication_role = replica; ${sql(id)}`);
        const finding = (await chainFindings())[side];
        const checked = await runHere(['audit', 'check'], env);
        await client.query(`delete from audit.audit_logs; delete from audit.seals; delete from audit.chain;
          insert into audit.audit_logs overriding system value select * from public.kept_logs;
          insert into audit.seals select * from public.kept_seals;
          insert into audit.chain select * from public.kept_chain;
          drop table public.kept_logs, public.kept_seals, public.kept_chain;
          set session_replication_role = origin`);
        assert.equal(finding?.status, 'fail');
        assert.match(finding?.found ?? '', found(id));
        assert.equal(checked.code, 1);
        assert.equal((await chainFindings())[side]?.status, 'ok', 'undone');
      });

  it('that was made anew as a whole lacks the heads that were saved', async () => {
    const file = join(dir, 'heads.json');
    const heads = await runHere(['audit', 'heads', '--json'], env);
    assert.equal(heads.code, 0, heads.stderr);
    writeFileSync(file, heads.stdout);
    assert.equal((await runHere(['audit', 'check', '--heads', file], env)).code, 0);
    await clients.db2.query(`set session_replication_role = replica;
      update audit.audit_logs set actor = 'eve' where id = (select max(log_id) from audit.seals);
      delete from audit.seals; update audit.chain set sealed_to = begins_after, seals = 0, head = sha256('');
      set session_replication_role = origin; select public.seal_audit(100000)`);
    assert.equal((await runHere(['audit', 'check'], env)).code, 0, 'it fits, as a new one');
    const compared = await runHere(['audit', 'check', '--heads', file], env);
    assert.equal(compared.code, 1);
    assert.match(compared.stdout, /db2: the head that was saved after \d+ seals is not in the chain/);
    writeFileSync(file, '{}');
    assert.equal((await runHere(['audit', 'check', '--heads', file], env)).code, 1);
  });

  it('is compared with heads that were saved before there was a second cell, which has none yet', async (t) => {
    const second = await startDatabases({ db2: false });
    t.after(() => second.stop());
    const file = join(dir, 'heads_of_one.json');
    writeFileSync(file, (await runHere(['audit', 'heads', '--json'], env)).stdout);
    const fleet = {
      SLUICE_CELLS: `a=${databases.db1.url},b=${second.db1.url}`,
      DB2_URL: databases.db2.url,
    };
    const checked = await runHere(['audit', 'check', '--heads', file], fleet);
    assert.equal(checked.code, 0, checked.stderr);
    assert.match(checked.stdout, /^cell a: .*^cell b: .*^db2: /ms);
    assert.match(checked.stderr, /^warning: .* has no head of cell b; .*\n$/);
    const { db1, ...others } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...others, db1: { ...db1, head: db1.head.replace(/^./, 'x') } }));
    const changed = await runHere(['audit', 'check', '--heads', file], fleet);
    assert.equal(changed.code, 1);
    assert.match(changed.stdout, /cell a: the head that was saved after \d+ seals is not in the chain/);
  });

  it('stands on rows that no role changes or removes', async () => {
    for (const client of Object.values(clients))
      for (const sql of [
        `update audit.audit_logs set actor = 'eve'`,
        'delete from audit.audit_logs',
        'truncate audit.audit_logs',
        'delete from audit.seals',
        'truncate audit.seals',
      ])
        await assert.rejects(client.query(sql), { code: '23001' }, sql);
  });
});

import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { withClient } from '../../src/migrate/sql.ts';
import { runHere } from '../cli/support.ts';
import {
  claim,
  contentOf,
  type Pair,
  REPLAY_DEAD_LETTERS,
  recordPayment,
  startWorld,
  type World,
  work,
} from './support.ts';

/** What an import adds or begins anew; everything else has to be the same row for row. */
const BEGINS_ANEW = [
  'audit.audit_logs',
  'audit.chain',
  'audit.seals',
  'engine_metrics',
  'intake.pool_marks',
  'intake.free_counts',
  'intake.held_counts',
  'pgmq.meta',
];

const without = (content: Record<string, string>) =>
  Object.fromEntries(Object.entries(content).filter(([name]) => !BEGINS_ANEW.includes(name)));

describe('an export in new databases', () => {
  let world: World;
  let copy: Pair;

  before(async () => {
    world = await startWorld();
    const { code, stderr } = await runHere(['export', world.file], world.old);
    assert.equal(code, 0, stderr);
    copy = await world.newPair();
    const imported = await runHere(['import', world.file, '--json'], { ...copy, USER: 'eve' });
    assert.equal(imported.code, 0, imported.stderr);
    const { rows, continued } = JSON.parse(imported.stdout);
    assert.deepEqual([rows['db1.claims'], rows['db2.confirmed_tickets'], continued], [9, 4, false]);
  });
  after(() => world.stop());

  const onCopy = <T>(side: keyof Pair, sql: string, values: unknown[] = []): Promise<T[]> =>
    withClient(copy[side], async (client) => (await client.query(sql, values)).rows);

  test('is a file for its owner only, and is never written over', async () => {
    assert.equal(statSync(world.file).mode & 0o777, 0o600);
    const before = statSync(world.file).size;
    const { code, stderr } = await runHere(['export', world.file], world.old);
    assert.equal(code, 1);
    assert.match(stderr, /already there/);
    assert.equal(statSync(world.file).size, before);
  });

  test('holds every row of every table, slots in the same states', async () => {
    for (const side of ['DB1_URL', 'DB2_URL'] as const)
      assert.deepEqual(without(await contentOf(copy[side])), without(await contentOf(world.old[side])), side);
  });

  test('keeps whose events they are: an endpoint that `npm start` added meanwhile gets a tenant of its own', async () => {
    const pair = await world.newPair();
    const tenants = () =>
      withClient(pair.DB2_URL, async (db2) => {
        const { rows } = await db2.query('select name, tenant from webhook.list_endpoints() order by name');
        return Object.fromEntries(rows.map(({ name, tenant }) => [name, tenant]));
      });
    await withClient(pair.DB2_URL, (db2) =>
      db2.query(
        `select webhook.add_endpoint('demo', 'stripe', '{STRIPE_WEBHOOK_SECRET}', 'queued', '{}', 'npm start')`,
      ),
    );
    assert.deepEqual(await tenants(), { demo: 'stripe' });
    assert.equal((await runHere(['import', world.file], { ...pair })).code, 0);
    assert.deepEqual(await tenants(), { demo: 'stripe:demo', stripe: 'stripe' });
  });

  test('keeps both audit logs and adds one row that names the operator', async () => {
    for (const side of ['DB1_URL', 'DB2_URL'] as const) {
      const sql = 'select id, actor, action, subject from audit.audit_logs order by id';
      const before = await withClient(world.old[side], async (client) => (await client.query(sql)).rows);
      const now = await onCopy<{ actor: string; action: string }>(side, sql);
      assert.deepEqual(now.slice(0, -1), before);
      assert.deepEqual([now.at(-1)?.actor, now.at(-1)?.action], ['owner (eve)', 'import']);
    }
  });

  test('seals no row that the exported log had adopted, and every later one', async () => {
    const adopted = await world.newPair();
    const file = join(world.dir, 'adopted.jsonl');
    const write = (client: pg.Client, subject: string) =>
      client.query(
        `insert into audit.audit_logs (actor, action, subject, reason) values ('trigger', 'UPDATE', $1, 'anna.adopted')`,
        [subject],
      );
    for (const url of Object.values(adopted))
      await withClient(url, async (client) => {
        for (const n of [1, 2, 3]) await write(client, `row ${n}`);
        // As the migration does where it finds a log.
        await client.query(`update audit.chain set begins_after = l.id, sealed_to = l.id
          from (select max(id) as id from audit.audit_logs) l`);
        await write(client, 'later');
        await client.query('select public.seal_audit()');
      });
    const exported = await runHere(['export', file], adopted);
    assert.equal(exported.code, 0, exported.stderr);
    const pair = await world.newPair();
    const imported = await runHere(['import', file], pair);
    assert.equal(imported.code, 0, imported.stderr);
    for (const url of Object.values(pair))
      await withClient(url, async (client) => {
        await client.query('select public.seal_audit()');
        const { rows } = await client.query(
          `select a.subject, s.seal_no is not null as is_sealed from audit.audit_logs a
           left join audit.seals s on s.log_id = a.id where a.actor = 'trigger' order by a.id`,
        );
        assert.deepEqual(
          rows.map(({ subject, is_sealed }) => [subject, is_sealed]),
          [
            ['row 1', false],
            ['row 2', false],
            ['row 3', false],
            ['later', true],
          ],
        );
      });
    const checked = await runHere(['audit', 'check'], pair);
    assert.equal(checked.code, 0, checked.stdout);
    assert.equal((await runHere(['users', 'erase', 'anna.adopted', '--yes'], pair)).code, 0);
    for (const url of Object.values(pair))
      await withClient(url, async (client) => {
        const { rows } = await client.query(
          `select count(*)::int as n from audit.audit_logs where reason = 'anna.adopted' and subject <> 'later'`,
        );
        assert.equal(rows[0].n, 0, 'an erasure reaches them');
      });
  });

  test('keeps who wrote the rows of the audit log, and says who imported them', async () => {
    for (const side of ['DB1_URL', 'DB2_URL'] as const) {
      const sql = 'select id, written_by, changed from audit.audit_logs order by id';
      const { rows: before } = await withClient(world.old[side], (client) => client.query(sql));
      const now = await onCopy<{ written_by: string }>(side, sql);
      assert.deepEqual(now.slice(0, -1), before);
      assert.equal(now.at(-1)?.written_by, 'postgres');
    }
  });

  test('leaves nothing for reconcile to find', async () => {
    const { code, stdout } = await runHere(['reconcile'], copy);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /No differences/);
  });

  test('answers a claim that is sent again with the same slot, and sells the others', async () => {
    const slotOf = (request: string) => `select slot_id from public.claims where request_id = '${request}'`;
    await withClient(copy.DB1_URL, async (db1) => {
      const [{ slot_id }] = (await db1.query(slotOf('ann-1'))).rows;
      assert.equal(await claim(db1, 'ann', 'ann-1'), slot_id);
      const fresh = await claim(db1, 'fay', 'fay-1');
      const { rows } = await db1.query('select count(*)::int as n from public.claims where slot_id = $1', [
        fresh,
      ]);
      assert.equal(rows[0].n, 1, 'a slot that has an owner was sold again');
    });
  });

  test('gives a new message a number that no message had', async () => {
    const [row] = await onCopy<{ newest: string; others: string }>(
      'DB1_URL',
      `select max(msg_id) filter (where request_id = 'fay-1') as newest, max(msg_id) filter (where request_id <> 'fay-1') as others
       from public.claims`,
    );
    assert.ok(Number(row?.newest) > Number(row?.others), JSON.stringify(row));
  });

  test('knows an event that is delivered again, and keeps the balance', async () => {
    const outcome = await withClient(copy.DB2_URL, (db2) =>
      recordPayment(db2, 'evt_1', 'payment_intent.succeeded', { id: 'pi_1', amount_received: 2500 }),
    );
    assert.equal(outcome, 'duplicate');
    await work(copy);
    assert.deepEqual(await onCopy('DB2_URL', `select * from webhook.balance('ann')`), [
      { provider: 'stripe', currency: 'eur', amount: '2500' },
    ]);
  });

  test('carries what was on its way, and a dead letter that is replayed', async () => {
    const [letter] = await onCopy<{ msg_id: string }>('DB1_URL', 'select msg_id from pgmq.q_intake_dlq');
    await onCopy('DB1_URL', REPLAY_DEAD_LETTERS, [[letter?.msg_id]]);
    await work(copy);
    const states = await onCopy(
      'DB1_URL',
      'select state, count(*)::int as n from public.claims group by state order by 1',
    );
    assert.deepEqual(states, [
      { state: 'held', n: 1 },
      { state: 'committed', n: 8 },
      { state: 'discarded', n: 1 },
    ]);
    const { stdout } = await runHere(['reconcile'], copy);
    assert.match(stdout, /No differences/);
  });

  test('is made of databases of an older version too, where a table had another name', async () => {
    const older = await world.newPair();
    await withClient(older.DB1_URL, async (client) => {
      await client.query(`select public.allow_hook_host('127.0.0.1:8080', 'olga')`);
      await client.query('alter table intake.hook_allowed_hosts rename to webhook_allowed_hosts');
    });
    const file = join(world.dir, 'older.jsonl');
    assert.equal((await runHere(['export', file], older)).code, 0);
    const newer = await world.newPair();
    const { code, stderr } = await runHere(['import', file], newer);
    assert.equal(code, 0, stderr);
    const hosts = await withClient(newer.DB1_URL, (client) =>
      client.query('select * from public.hook_allowed_hosts()'),
    );
    assert.equal(hosts.rows.length, 1);
  });

  test('is refused a second time', async () => {
    const { code, stderr } = await runHere(['import', world.file], copy);
    assert.equal(code, 1);
    assert.match(stderr, /already imported/);
  });

  test('warns when a worker is connected, and writes nothing where a database does not answer', async () => {
    const file = `${world.file}.second`;
    const url = new URL(world.old.DB1_URL);
    url.searchParams.set('application_name', 'sluice-worker');
    const worker = await import('pg').then(
      ({ default: pg }) => new pg.Client({ connectionString: url.href }),
    );
    await worker.connect();
    const warned = await runHere(['export', file], world.old);
    await worker.end();
    assert.equal(warned.code, 0);
    assert.match(warned.stderr, /warning: sluice-worker connected/);
    const nowhere = world.old.DB2_URL.replace(/:\d+\//, ':1/');
    const { code } = await runHere(['export', `${file}.third`], { ...world.old, DB2_URL: nowhere });
    assert.equal(code, 1);
    assert.equal(existsSync(`${file}.third`), false);
  });
});

// One user of many is erased from every table of both databases. USERS=100000 makes the crowd that large.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { runHere } from '../cli/support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  addAdopted,
  addCrowd,
  addToIntake,
  addToLedger,
  carry,
  claimFor,
  finish,
  openPools,
  type Places,
  take,
} from './personal_history.ts';
import {
  rowsWith,
  type Side,
  statisticsWith,
  sumsOf,
  tablesWithText,
  WITHOUT_USERS,
} from './personal_tables.ts';

const ERIN = 'erin.7f3a@example.com';
const USERS = Number(process.env.USERS ?? 2_000);
const SIDES = ['db1', 'db2'] as const;
const REPLACEMENT = /^erased:[0-9a-f]{32}$/;

/** Tables that have neither a row of the test user nor a reason to have none. */
async function unexplained(client: pg.Client, side: Side): Promise<string[]> {
  const found = await rowsWith(client, ERIN);
  return (await tablesWithText(client)).filter((table) => !found[table] && !WITHOUT_USERS[side][table]);
}

describe('erasing a user', () => {
  let databases: TestDatabases;
  let places: Places;
  let env: Record<string, string>;
  let clients: Record<Side, pg.Client>;
  before(async () => {
    databases = await startDatabases();
    const [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
    clients = { db1, db2 };
    places = { db1, db2, db1Url: databases.db1.url, db2Url: databases.db2.url };
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url, USER: 'root' };
    await openPools(db1, USERS + 10);
    await addCrowd(places, USERS);
    await addToIntake(places, ERIN);
    await addToLedger(db2, ERIN);
    for (const side of SIDES) await addAdopted(clients[side], ERIN);
    await db2.query(
      `select webhook.replay_events(array(select id from public.webhook_events where event_id = 'evt_failed'), 'ann', $1)`,
      ['once more'],
    );
    for (const side of SIDES) await clients[side].query('analyze');
  });
  after(async () => {
    for (const client of Object.values(clients ?? {})) await client.end();
    await databases?.stop();
  });

  it('is tried on a user with a row in every table that can hold one', async () => {
    for (const side of SIDES) {
      assert.deepEqual(await unexplained(clients[side], side), [], side);
      const tables = await tablesWithText(clients[side]);
      const gone = Object.keys(WITHOUT_USERS[side]).filter((table) => !tables.includes(table));
      assert.deepEqual(
        gone,
        OPTIONAL[side].filter((table) => gone.includes(table)),
        'the list names tables that are there',
      );
    }
  });

  it('knows of every column of these tables that can hold a text what becomes of it', async () => {
    for (const side of SIDES) {
      const { rows } = await clients[side].query(
        `select p.place || '.' || o.name as name from audit.personal_places p cross join lateral audit.other_columns(p) o
         where to_regclass(p.place) is not null order by 1`,
      );
      // Some versions of pgmq have it: it is searched by its type.
      assert.deepEqual(
        rows.filter(({ name }) => !/^pgmq\.\w+\.headers$/.test(name)),
        [],
        side,
      );
    }
  });

  it('would be told of a table that is on no list', async () => {
    await clients.db2.query('create table public.forgotten (note text)');
    assert.deepEqual(await unexplained(clients.db2, 'db2'), ['public.forgotten']);
    await clients.db2.query('drop table public.forgotten');
  });

  it('leaves the id in no column of either database, and all sums as they were', async (t) => {
    const { db1, db2 } = clients;
    // On their way: one that a worker has, one of which the ledger has the ticket already, one that is ending, one that waits.
    for (let n = 0; n < 4; n++) await claimFor(db1, 'flight', ERIN);
    const [held, written, ending] = await take(db1, 'flight', 3);
    assert(held && written && ending);
    await db2.query('select public.finalize_batch($1)', [JSON.stringify([written.message])]);
    await db1.query('select public.release_own_claim($1, $2)', [ending.message.claim_id, ERIN]);
    const { rows: ends } = await db1.query('select * from public.take_ends(10, 600)');
    assert.equal(ends.length, 1);
    const before = { db1: await sumsOf(db1, 'db1'), db2: await sumsOf(db2, 'db2') };

    const startMs = performance.now();
    const erased = await runHere(
      ['users', 'erase', ERIN, '--yes', '--json', '--reason', `${ERIN} asked for it`],
      env,
    );
    t.diagnostic(`one of ${USERS} users erased in ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
    assert.equal(erased.code, 0, erased.stderr);
    const { status, replacement, changed } = JSON.parse(erased.stdout);
    assert.equal(status, 'erased');
    assert.match(replacement, REPLACEMENT);
    for (const side of SIDES) {
      assert.deepEqual(await rowsWith(clients[side], ERIN), {}, side);
      assert.deepEqual(await statisticsWith(clients[side], ERIN), [], side);
      assert.deepEqual(await sumsOf(clients[side], side), before[side], side);
      assert(changed[side]['audit.user_keys'] === 1, JSON.stringify(changed));
    }

    // The workers go on with what they had in their hands, under the old name.
    await db2.query('select public.finalize_batch($1)', [JSON.stringify([held.message])]);
    assert.deepEqual(await finish(db1, [held, written], 'committed'), ['committed', 'committed']);
    await db2.query('select public.void_tickets($1)', [JSON.stringify(ends)]);
    await db1.query('select public.finish_ends($1, $2)', [[ends[0].claim_id], ['voided']]);
    await db1.query(`update pgmq.q_intake_queue set vt = now()`);
    await carry(places);
    const claims = await db1.query(
      `select state::text, user_id, count(*)::int as n from public.claims where pool_id = 'flight' group by 1, 2 order by 1`,
    );
    assert.deepEqual(claims.rows, [
      { state: 'committed', user_id: replacement, n: 3 },
      { state: 'released', user_id: replacement, n: 1 },
    ]);
    const tickets = await db2.query(
      `select user_id, count(*)::int as n from public.confirmed_tickets where pool_id = 'flight' group by 1`,
    );
    assert.deepEqual(tickets.rows, [{ user_id: replacement, n: 3 }]);
    const voided = await db2.query(`select user_id from public.voided_tickets where pool_id = 'flight'`);
    assert.deepEqual(voided.rows, [{ user_id: replacement }]);
    for (const side of SIDES) assert.deepEqual(await rowsWith(clients[side], ERIN), {}, side);
    assert.equal((await runHere(['reconcile'], env)).code, 0, 'both databases name the same owners');
  });

  it('finds nothing the second time, says so, and writes nothing', async () => {
    const count = async (side: Side) =>
      (await clients[side].query('select count(*)::int as n from audit.audit_logs')).rows[0].n;
    const before = [await count('db1'), await count('db2')];
    const again = await runHere(['users', 'erase', ERIN, '--yes'], env);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /No database knows this user/);
    assert.deepEqual([await count('db1'), await count('db2')], before);
    for (const side of SIDES) assert.deepEqual(await rowsWith(clients[side], ERIN), {}, side);
  });

  it('is in the audit log of each database once, under the pseudonym, and the chains hold', async () => {
    for (const side of SIDES) {
      const { rows } = await clients[side].query(
        `select actor, subject, reason, details from audit.audit_logs where action = 'user_erase'`,
      );
      assert.equal(rows.length, 1);
      assert.match(rows[0].subject, /^user user:[0-9a-f]{32}$/);
      assert.equal(rows[0].reason, `${rows[0].subject.slice('user '.length)} asked for it`);
      assert.match(rows[0].details.replacement, REPLACEMENT);
      assert.equal(rows[0].actor, 'owner (root)');
      await clients[side].query('select public.seal_audit(100000)');
      const { rows: adopted } = await clients[side].query(
        'select reason, details from audit.audit_logs where id = -5',
      );
      const name = rows[0].details.replacement;
      assert.deepEqual(adopted[0], {
        reason: `changed by ${name}`,
        details: { user_id: name, row: { email: name, note: `for ${name}!` } },
      });
    }
    const checked = await runHere(['audit', 'check'], env);
    assert.equal(checked.code, 0, checked.stdout);
  });

  it('leaves others and their deliveries as they were', async () => {
    const { db1, db2 } = clients;
    const claims = await db1.query(
      `select count(*)::int as n from public.claims where user_id like 'user-%'`,
    );
    assert.equal(claims.rows[0].n, USERS);
    const { rows } = await db2.query(
      `select payload, body_id from public.webhook_events where event_id = 'two_2'`,
    );
    assert.deepEqual(rows, [{ payload: { From: 'another@example.com' }, body_id: null }]);
    const raw = await db2.query(
      `select count(*)::int as n from public.webhook_events where raw_body is not null`,
    );
    assert.equal(raw.rows[0].n, USERS, "the crowd's raw bodies are there, and none of the erased user's");
  });
});

/** Which versions of the extensions have it differs. */
const OPTIONAL: Record<Side, string[]> = {
  db1: ['pgmq.notify_insert_throttle', 'pgmq.topic_bindings'],
  db2: [],
};

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { CallFunction } from '#core/call_function.ts';
import { type UserPorts, type UserRequest, userDatabases } from '#core/users/databases.ts';
import { eraseUser } from '#core/users/erase.ts';
import { runHere } from '../cli/support.ts';
import { caller } from '../fleet/support.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { addToLedger, carry, claimFor, finish, type Places, take } from './personal_history.ts';
import { rowsWith } from './personal_tables.ts';

const BUDGET_MS = 30_000;
const request = (userId: string, more: Partial<UserRequest> = {}): UserRequest => ({
  userId,
  namespace: 'both',
  actor: 'ann',
  reason: null,
  ...more,
});

describe('an erasure', () => {
  let databases: TestDatabases;
  let places: Places;
  let env: Record<string, string>;
  before(async () => {
    databases = await startDatabases();
    const [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
    places = { db1, db2, db1Url: databases.db1.url, db2Url: databases.db2.url };
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url };
    await putOnSale(db1, 'gig', 2_000);
  });
  after(async () => {
    await places?.db1.end();
    await places?.db2.end();
    await databases?.stop();
  });

  /** `before` sees each call, and may end the program there. */
  const portsOf = (t: TestContext, before: (name: string) => void = () => undefined): UserPorts => {
    const watched = (call: CallFunction): CallFunction => {
      return (name, args) => {
        before(name);
        return call(name, args);
      };
    };
    const [db1, db2] = [caller(t, databases.db1.url), caller(t, databases.db2.url)].map(watched);
    assert(db1 && db2);
    return { ...userDatabases(db2, [{ name: 'main', call: db1 }]), now: Date.now, pause: (ms) => sleep(ms) };
  };
  const usersOf = async (client: pg.Client, table: string, where = 'true') =>
    (await client.query(`select distinct user_id as id from ${table} where ${where} order by 1`)).rows.map(
      ({ id }) => id,
    );

  it('of one namespace leaves the other user of the name alone', async (t) => {
    const { db1, db2 } = places;
    for (const verified of [true, false]) await claimFor(db1, 'gig', 'noor@example.com', { verified });
    await carry(places);
    const erased = await eraseUser(
      portsOf(t),
      request('noor@example.com', { namespace: 'unverified' }),
      BUDGET_MS,
    );
    assert.equal(erased.status, 'erased');
    for (const [client, table] of [
      [db1, 'public.claims'],
      [db2, 'public.confirmed_tickets'],
    ] as const) {
      assert.deepEqual(await usersOf(client, table, 'verified'), ['noor@example.com'], table);
      assert.deepEqual(await usersOf(client, table, 'not verified'), [erased.replacement], table);
    }
    const both = await runHere(
      ['users', 'erase', 'noor@example.com', '--verified', '--unverified', '--yes'],
      env,
    );
    assert.equal(both.code, 2);
    const rest = await eraseUser(
      portsOf(t),
      request('noor@example.com', { namespace: 'verified' }),
      BUDGET_MS,
    );
    assert.equal(rest.status, 'erased');
    assert.notEqual(rest.replacement, erased.replacement, 'they were two users');
    assert.deepEqual(await rowsWith(db1, 'noor@example.com'), {});
  });

  it('that was cut short after any of its calls goes on, with the same replacement', async (t) => {
    const { db1, db2 } = places;
    let calls = 0;
    let cuts = 0;
    for (let cutAfter = 1; ; cutAfter += 5) {
      const id = `cut-${cutAfter}@example.com`;
      await claimFor(db1, 'gig', id);
      await carry(places);
      await claimFor(db1, 'gig', id);
      await db2.query(`insert into public.calls (site_id, payload) values ('ops', $1)`, [{ caller: id }]);
      calls = 0;
      const killed = portsOf(t, () => {
        if (++calls > cutAfter) throw new Error('killed');
      });
      const first = await eraseUser(killed, request(id), BUDGET_MS).catch((error: Error) => error);
      const { status } = await eraseUser(portsOf(t), request(id), BUDGET_MS);
      for (const client of [db1, db2])
        assert.deepEqual(await rowsWith(client, id), {}, `cut after ${cutAfter}`);
      await carry(places);
      const { rows } = await db2.query(
        `select count(distinct t.user_id)::int as names, count(*)::int as tickets from public.confirmed_tickets t
         where t.user_id = (select replace(payload ->> 'caller', '', '') from public.calls order by id desc limit 1)`,
      );
      assert.deepEqual(rows, [{ names: 1, tickets: 2 }], `cut after ${cutAfter}`);
      if (!(first instanceof Error)) {
        assert.equal(status, 'nothing');
        break;
      }
      cuts++;
    }
    assert(cuts > 8, String(cuts));
  });

  it('goes on after its process was killed', async () => {
    const { db1, db2 } = places;
    const id = 'kim.killed@example.com';
    await claimFor(db1, 'gig', id);
    // So many that the process is in the midst of them.
    await db2.query(
      `insert into public.calls (site_id, payload) select 'ops', jsonb_build_object('caller', $1::text, 'n', n) from generate_series(1, 30000) n`,
      [id],
    );
    const child = spawn(
      process.execPath,
      [join(PROJECT, 'bin', 'sluice.js'), 'users', 'erase', id, '--yes'],
      {
        env: { ...process.env, ...env, SLUICE_LOG: 'silent' },
        stdio: 'ignore',
      },
    );
    const closed = once(child, 'close');
    const left = async () =>
      (await db2.query(`select count(*)::int as n from public.calls where payload ->> 'caller' = $1`, [id]))
        .rows[0].n;
    while ((await left()) === 30_000) await sleep(5);
    child.kill('SIGKILL');
    await closed;
    assert((await left()) > 0, 'it was not done yet');
    await db2.query(`update audit.erasures set touched_at = now() - interval '11 minutes'`);
    assert.match((await runHere(['doctor'], env)).stdout, /db2 erasures\s+1 not finished/);
    const again = await runHere(['users', 'erase', id, '--yes', '--json'], env);
    assert.equal(again.code, 0, again.stderr);
    const { replacement } = JSON.parse(again.stdout);
    const { rows } = await db2.query(
      `select payload ->> 'caller' as caller, count(*)::int as n from public.calls where payload ->> 'n' is not null group by 1`,
    );
    assert.deepEqual(rows, [{ caller: replacement, n: 30_000 }], 'both runs used one name');
    for (const client of [db1, db2]) assert.deepEqual(await rowsWith(client, id), {});
  });

  it('runs beside workers that carry the very claims, which all become tickets under one name', async (t) => {
    const { db1, db2 } = places;
    const id = 'busy.bee@example.com';
    const CLAIMS = 400;
    for (let n = 0; n < CLAIMS; n++) await claimFor(db1, 'gig', id);
    const [totals, erased] = await Promise.all([
      carry(places),
      eraseUser(portsOf(t), request(id), BUDGET_MS),
    ]);
    await carry(places);
    assert.equal(erased.status, 'erased');
    assert.equal(totals.dead_letter ?? 0, 0);
    for (const [client, table] of [
      [db1, `public.claims`],
      [db2, 'public.confirmed_tickets'],
    ] as const) {
      const { rows } = await client.query(`select count(*)::int as n from ${table} where user_id = $1`, [
        erased.replacement,
      ]);
      assert.equal(rows[0].n, CLAIMS, table);
      assert.deepEqual(await rowsWith(client, id), {}, table);
    }
  });

  it('needs the list of claims on their way: without it a late worker brings the old name back', async (t) => {
    const { db1, db2 } = places;
    const id = 'late.lou@example.com';
    await claimFor(db1, 'gig', id);
    const [taken] = await take(db1, 'gig');
    assert(taken);
    await eraseUser(portsOf(t), request(id), BUDGET_MS);
    const finalize = () =>
      db2.query('select outcome from public.finalize_batch($1)', [JSON.stringify([taken.message])]);
    await db2.query('begin; delete from public.erased_claims');
    await finalize();
    assert.deepEqual(await rowsWith(db2, id), { 'public.confirmed_tickets': 1 });
    await db2.query('rollback');
    await finalize();
    assert.deepEqual((await finalize()).rows, [{ outcome: 'already' }]);
    assert.deepEqual(await rowsWith(db2, id), {});
    assert.deepEqual(await finish(db1, [taken], 'committed'), ['committed']);
  });

  it('waits for a ticket that is being written', async (t) => {
    const { db1, db2 } = places;
    const id = 'open.oda@example.com';
    await claimFor(db1, 'gig', id);
    const [taken] = await take(db1, 'gig');
    assert(taken);
    await db2.query('begin');
    await db2.query('select public.finalize_batch($1)', [JSON.stringify([taken.message])]);
    const erasing = eraseUser(portsOf(t), request(id), BUDGET_MS);
    const watcher = await openClient(databases.db2.url);
    for (;;) {
      const { rows } = await watcher.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'erase_tickets'`,
      );
      if (rows.length > 0) break;
      await sleep(5);
    }
    await watcher.end();
    await db2.query('commit');
    assert.equal((await erasing).status, 'erased');
    assert.deepEqual(await rowsWith(db2, id), {});
    await finish(db1, [taken], 'committed');
  });

  it('says what it waits for while a worker has a message that no claim leads to', async (t) => {
    const { db1 } = places;
    const id = 'hand.hans@example.com';
    const { rows } = await db1.query(`select public.intake_queue_send($1) as msg_id`, [
      { pool_id: 'gig', resource_id: '00000000-0000-4000-8000-00000000abcd', user_id: id, state: 'queued' },
    ]);
    await db1.query(
      `update pgmq.q_intake_queue set read_ct = 1, vt = now() + interval '1 hour' where msg_id = $1`,
      [rows[0].msg_id],
    );
    const waiting = await eraseUser(portsOf(t), request(id), 1_000);
    assert.equal(waiting.status, 'working');
    assert.match(waiting.waits_for ?? '', /a worker has a row of pgmq\.q_intake_queue/);
    await db1.query('delete from pgmq.q_intake_queue where msg_id = $1', [rows[0].msg_id]);
    assert.equal((await eraseUser(portsOf(t), request(id), BUDGET_MS)).status, 'nothing');
  });

  it('of an id that is also an amount changes fields called user_id, and no other', async (t) => {
    const { db1, db2 } = places;
    await claimFor(db1, 'gig', '42');
    await db2.query(`insert into public.calls (site_id, event_id, payload) values ('ops', 'forty-two', $1)`, [
      { user_id: '42', seconds: '42', amount: 42, nested: [{ user_id: 42 }] },
    ]);
    const { replacement } = await eraseUser(portsOf(t), request('42'), BUDGET_MS);
    const { rows } = await db2.query(`select payload from public.calls where event_id = 'forty-two'`);
    assert.deepEqual(rows[0].payload, {
      user_id: replacement,
      seconds: '42',
      amount: 42,
      nested: [{ user_id: replacement }],
    });
    assert.deepEqual(await usersOf(db1, 'public.claims', `user_id = '42'`), []);
  });

  it('does not make a dead letter of what a provider tells about the payment later', async (t) => {
    const { db2 } = places;
    const id = 'paula.pays@example.com';
    await addToLedger(db2, id);
    const { replacement } = await eraseUser(portsOf(t), request(id), BUDGET_MS);
    const refund = {
      id: 'evt_later',
      livemode: true,
      data: {
        object: {
          id: 'ch_1',
          payment_intent: 'pi_erin',
          amount: 2500,
          amount_captured: 2500,
          amount_refunded: 1000,
          currency: 'usd',
          metadata: { user_id: id },
        },
      },
    };
    await db2.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
       select webhook_id, 'stripe', 'evt_later', 'charge.refunded', $1 from webhook.find_endpoint('shop')`,
      [refund],
    );
    await db2.query('call webhook.work()');
    const events = await db2.query(
      `select status::text, error from public.webhook_events where event_id = 'evt_later'`,
    );
    assert.deepEqual(events.rows, [{ status: 'success', error: null }]);
    const { rows } = await db2.query(
      `select user_id, sum(amount)::int as amount from public.credit_ledger where object_id = 'pi_erin' group by 1`,
    );
    assert.deepEqual(rows, [{ user_id: replacement, amount: 1500 }]);
    const again = await eraseUser(portsOf(t), request(id), BUDGET_MS);
    assert.equal(again.status, 'erased', 'the event named the user again');
    assert.deepEqual(await rowsWith(db2, id), {});
  });
});

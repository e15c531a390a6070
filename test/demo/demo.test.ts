import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type Stripe from 'stripe';
import { planBuyers } from '../../src/demo/paid/plan.ts';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';
import { claim, openClient } from '../server/support.ts';
import { type Dev, PROJECT, processesUnder, readEnv, startDev, stopDev } from '../support/dev.ts';
import { sluice } from '../work/support.ts';

describe('sluice demo', () => {
  let home: string;
  let dir: string;
  let dev: Dev;
  before(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-demo-')));
    // Root's server user must be able to get here.
    spawnSync('chmod', ['755', home]);
    dir = join(home, '.sluice');
    dev = startDev({ dir });
    await dev.ready;
  });
  after(async () => {
    await stopDev(dev, 'SIGINT');
    spawnSync(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), 'reset'], {
      env: { ...process.env, SLUICE_DIR: dir },
    });
    rmSync(home, { recursive: true, force: true });
  });

  const demo = (...args: string[]) => sluice(['demo', ...args], { SLUICE_DIR: dir });

  const isLedgerUp = () =>
    openClient(readEnv(dir).DB2_URL ?? '').then(
      (client) => client.end().then(() => true),
      () => false,
    );

  const ticketsOf = async (pool: string): Promise<number> => {
    const db2 = await openClient(readEnv(dir).DB2_URL ?? '');
    try {
      const { rowCount } = await db2.query('select from public.confirmed_tickets where pool_id = $1', [pool]);
      return rowCount ?? 0;
    } finally {
      await db2.end();
    }
  };

  it('is offered by npm start', () => {
    assert.match(dev.output(), /npx sluice demo/);
  });

  it('sells every seat once to a crowd that is larger, and says so in words', async () => {
    const { code, stdout, stderr } = await demo('--buyers', '60', '--seats', '20').ended;
    assert.equal(code, 0, stdout + stderr);
    const pool = /the pool (demo_\d+)/.exec(stderr)?.[1] ?? '';
    assert.match(stderr, new RegExp(`/drop/${pool}\n`));
    assert.match(stdout, /Claimed +20 of 20 seats/);
    assert.match(stdout, /Sold out +40 answers/);
    assert.match(
      stdout,
      /Time +[\d.]+ s from the first claim to the last ticket \([\d,]+ tickets\/s, [\d,]+\/s for each core\)/,
    );
    assert.match(
      stdout,
      /Load +this command, which sent the load, took [\d.]+ s of CPU, \d+ % of this machine's \d+ cores/,
    );
    assert.match(
      stdout,
      /Exactly 20 tickets for 20 claims, each once and for the buyer who was told so; 40 buyers were told "sold out"\./,
    );
    assert(!(stdout + stderr).includes('\u001b'), 'no colour and no cursor without a terminal');
    assert.equal(await ticketsOf(pool), 20);
  });

  it('sells to ten buyers for each seat, and says how fast, with how much of the machine', async () => {
    const { code, stdout, stderr } = await demo('--buyers', '2000', '--seats', '200', '--json').ended;
    assert.equal(code, 0, stdout + stderr);
    const { ok, claimed, tickets, sold_out, total_sec, tickets_per_sec, load, pool_id } = JSON.parse(stdout);
    assert.deepEqual([ok, claimed, tickets, sold_out], [true, 200, 200, 1_800]);
    assert.ok(total_sec > 0 && tickets_per_sec > 0);
    assert.ok(load.cores > 0 && load.cpu_sec > 0 && load.memory_mb > 0 && load.share > 0 && load.share <= 1);
    assert.equal(await ticketsOf(pool_id), 200);
  });

  it('takes the ledger away, and nothing is lost', async () => {
    const { code, stdout, stderr } = await demo('--buyers', '400', '--seats', '300', '--outage=2', '--json')
      .ended;
    assert.equal(stderr, '', 'Node has nothing to warn of');
    const outcome = JSON.parse(stdout);
    assert.equal(code, 0, stdout);
    assert.deepEqual([outcome.ok, outcome.tickets, outcome.sold_out, outcome.problems], [true, 300, 100, []]);
    assert.equal(await ticketsOf(outcome.pool_id), 300);
    assert.equal(await isLedgerUp(), true);
  });

  it('tells of the outage what the databases themselves say', async () => {
    const args = ['--buyers', '3000', '--seats', '2500', '--outage=2', '--json'];
    const { outage, pool_id } = JSON.parse((await demo(...args).ended).stdout);
    const { DB1_URL = '', DB2_URL = '' } = readEnv(dir);
    const [db1, db2] = [await openClient(DB1_URL), await openClient(DB2_URL)];
    try {
      const { rows: started } = await db2.query(
        `select floor(extract(epoch from pg_postmaster_start_time()) * 1000)::float8 as ms`,
      );
      assert.equal(Date.parse(outage.started_at), started[0].ms, 'the ledger’s own start');
      const awayMs = Date.parse(outage.started_at) - Date.parse(outage.stopped_at);
      assert.deepEqual([outage.asked_sec, outage.sec], [2, Math.round(awayMs / 100) / 10]);
      // A timer may be a millisecond early.
      assert(awayMs >= 1_990, `${awayMs} ms`);

      const { rows: tickets } = await db2.query(
        `select claim_id, floor(extract(epoch from confirmed_at) * 1000)::float8 as ms
         from public.confirmed_tickets where pool_id = $1`,
        [pool_id],
      );
      const [stopped, back] = [Date.parse(outage.stopped_at), Date.parse(outage.started_at)];
      const during = tickets.filter(({ ms }) => ms > stopped && ms < back);
      assert.deepEqual(during, [], 'no ticket has a time at which there was no ledger');
      const { rows: earlier } = await db1.query(
        `select claim_id from public.claims where pool_id = $1 and floor(extract(epoch from claimed_at) * 1000) <= $2`,
        [pool_id, back],
      );
      const late = new Set(tickets.filter(({ ms }) => ms >= back).map(({ claim_id }) => claim_id));
      assert.equal(outage.claims_waiting, earlier.filter(({ claim_id }) => late.has(claim_id)).length);
      assert(outage.claims_waiting > 0, 'the crowd went on meanwhile');
    } finally {
      await Promise.all([db1.end(), db2.end()]);
    }
  });

  it('says that the ledger is back when it is, and never after that that it is away', async () => {
    const { code, stdout, stderr } = await demo('--buyers', '400', '--seats', '300', '--outage=3').ended;
    assert.equal(code, 0, stdout + stderr);
    const [before = '', after] = stderr
      .split(/The ledger runs again: it was away for ([\d.]+) s\.\n/)
      .toSpliced(1, 1);
    assert.match(before, /The ledger is stopped for 3 s\.\n/);
    assert.match(before, /The ledger does not answer: claims go on, tickets wait\./);
    assert(after !== undefined, stderr);
    assert.doesNotMatch(after, /does not answer/);
    const [, said] = /it was away for ([\d.]+) s/.exec(stderr) ?? [];
    assert.match(stdout, new RegExp(`Outage +${said} s without the ledger, of which 3 were asked for; `));
  });

  it('counts a person who buys meanwhile as one more buyer', async () => {
    const running = demo('--buyers', '40', '--seats', '100', '--outage=1');
    await running.said(/The ledger is stopped/);
    const { DB1_URL = '', SLUICE_URL = '' } = readEnv(dir);
    const db1 = await openClient(DB1_URL);
    const { rows } = await db1.query(
      `select max(pool_id) as pool from public.engine_config where pool_id ~ '^demo_\\d+$'`,
    );
    await db1.end();
    assert.equal((await claim(SLUICE_URL, rows[0].pool, { user_id: 'a person' })).status, 201);
    const { code, stdout } = await running.ended;
    assert.equal(code, 0, stdout);
    assert.match(stdout, /Others +1 of these tickets/);
    assert.match(stdout, /Exactly 41 tickets for 41 claims/);
    assert.equal(await ticketsOf(rows[0].pool), 41);
  });

  it('gives the ledger back when it is called off, and when it is killed', async () => {
    const stopped = demo('--buyers', '100', '--seats', '100', '--outage=60');
    await stopped.said(/The ledger is stopped/);
    assert.equal(await isLedgerUp(), false);
    stopped.child.kill('SIGINT');
    const { code, stderr } = await stopped.ended;
    assert.equal(code, 1);
    assert.match(stderr, /Called off/);
    while (!(await isLedgerUp())) await sleep(50);

    const killed = demo('--buyers', '100', '--seats', '100', '--outage=60');
    await killed.said(/The ledger is stopped/);
    assert.equal(await isLedgerUp(), false);
    killed.child.kill('SIGKILL');
    await killed.ended;
    while (!(await isLedgerUp())) await sleep(50);
    assert.equal((await demo('--buyers', '5', '--seats', '5').ended).code, 0);
  });

  /** Holds of the newest paid pool run out as soon as each buyer has paid who is going to in time, or has left for the bank. */
  async function hurryHolds(buyers: number, mend: (db2: pg.Client, pool: string) => Promise<unknown>) {
    const { DB1_URL = '', DB2_URL = '', STRIPE_API_URL = '', STRIPE_API_KEY = '' } = readEnv(dir);
    const [db1, db2] = [await openClient(DB1_URL), await openClient(DB2_URL)];
    const standIn = new StandInClient(STRIPE_API_URL, STRIPE_API_KEY);
    const going = planBuyers(buyers).filter(({ way }) => way !== 'leaves').length;
    try {
      for (;;) {
        const { rows } = await db1.query(
          `select max(c.pool_id) as pool, count(o.order_id)::int as orders
           from public.engine_config c join public.orders o on o.pool_id = c.pool_id where o.ended_at is null
             and c.pool_id = (select max(p.pool_id) from public.engine_config p where p.pool_id ~ '^demo_paid_')`,
        );
        const { pool } = rows[0];
        const sessions = await standIn.books<{ session: Stripe.Checkout.Session }>('session');
        const complete = sessions.filter(
          ({ session }) => session.metadata?.pool_id === pool && session.status === 'complete',
        );
        if (rows[0].orders === buyers && complete.length >= going) {
          await mend(db2, pool);
          await db1.query(
            `update public.orders set hold_until = now(), grace_until = now() + interval '5 seconds'
             where pool_id = $1 and hold_until is not null`,
            [pool],
          );
          await db1.query(
            `update public.checkouts k set next_attempt_at = now() from public.orders o
             where o.order_id = k.order_id and o.pool_id = $1 and k.next_attempt_at < 'infinity'`,
            [pool],
          );
          return;
        }
        await sleep(50);
      }
    } finally {
      await Promise.all([db1.end(), db2.end()]);
    }
  }

  it('lets buyers pay, late, twice and not at all, and three books agree to the cent', async () => {
    const running = demo('--paid', '--buyers', '20', '--seats', '50', '--json');
    await hurryHolds(20, async () => undefined);
    const { code, stdout, stderr } = await running.ended;
    assert.equal(code, 0, stdout + stderr);
    const outcome = JSON.parse(stdout);
    assert.deepEqual([outcome.ok, outcome.problems], [true, []]);
    const kinds = outcome.rows.map(({ what }: { what: string }) => what);
    for (const what of [
      'paid in time',
      'let the hold run out',
      'paid late, got seats',
      'refunded by the seller',
    ])
      assert.ok(kinds.includes(what), `${what} in ${kinds}`);
    assert.equal(await ticketsOf(outcome.pool_id), outcome.sums.tickets);
    assert.deepEqual(outcome.entrance, { first: 'valid', second: 'used', refunded: 'voided' });
    const page = await fetch(outcome.ticket_url);
    assert.match(await page.text(), /data-state="valid"/);
  });

  it('ends with 1 where a cent is missing in the ledger', async () => {
    const running = demo('--paid', '--buyers', '4', '--seats', '12');
    await hurryHolds(4, async (db2, pool) => {
      const take = async () =>
        (
          await db2.query(
            `update public.payments p set captured = captured - 1
             from public.confirmed_tickets t
             where t.pool_id = $1 and t.order_id = p.order_id and p.captured = 8500 and not exists (
               select from public.webhook_events e where e.status in ('pending', 'processing', 'failed'))`,
            [pool],
          )
        ).rowCount;
      // When nothing is left that could tell the payment again.
      while ((await take()) === 0) await sleep(50);
    });
    const { code, stdout } = await running.ended;
    assert.equal(code, 1, stdout);
    assert.match(stdout, /not what Sluice promises/);
    assert.match(stdout, /Stripe has 8500 and 0 refunded, the ledger 8499/);
  });

  it('stops no ledger but the one of this stack', async () => {
    const env = readEnv(dir);
    const elsewhere = { ...env, DB2_URL: (env.DB2_URL ?? '').replace(/:\d+\//, ':1/'), SLUICE_DIR: dir };
    const { code, stderr } = await sluice(['demo', '--outage'], elsewhere).ended;
    assert.equal(code, 1);
    assert.match(stderr, /^error: the ledger is not one that `npm start` runs on this machine/);
  });

  it('is told that the server is gone when the stack is stopped in the middle of an outage, which ends at once', async () => {
    const running = demo('--buyers', '50000', '--seats', '50000', '--outage=60');
    await running.said(/The ledger is stopped/);
    dev.child.kill('SIGINT');
    await running.said(/The server does not answer: buyers cannot claim/);
    // Long before the outage would have been over by itself.
    assert.equal(await dev.ended, 0, dev.output());
    assert.deepEqual(processesUnder(join(dir, 'postgres')), []);
    running.child.kill('SIGINT');
    assert.equal((await running.ended).code, 1);
  });
});

describe('sluice demo without a stack', () => {
  it('says how to start one', async () => {
    const { code, stderr } = await sluice(['demo'], { SLUICE_DIR: join(tmpdir(), 'sluice-nowhere') }).ended;
    assert.equal(code, 1);
    assert.match(stderr, /npm start/);
  });

  it('pays nowhere but at a stand-in on this machine', async () => {
    const env = {
      SLUICE_URL: 'http://127.0.0.1:1',
      SLUICE_ADMIN_KEY: 'x'.repeat(20),
      DB1_URL: 'postgres://x',
      DB2_URL: 'postgres://x',
    };
    const stripe = { STRIPE_API_URL: 'https://api.stripe.com', STRIPE_API_KEY: 'sk_test_x' };
    const { code, stderr } = await sluice(['demo', '--paid'], {
      ...env,
      ...stripe,
      SLUICE_DIR: join(tmpdir(), 'sluice-nowhere'),
    }).ended;
    assert.equal(code, 1);
    assert.match(stderr, /^error: no stand-in for Stripe runs here/);
    for (const words of [['--outage'], ['--buyers=501']])
      assert.equal((await sluice(['demo', '--paid', ...words], env).ended).code, 2, words.join(' '));
  });

  it('understands nothing but whole numbers', async () => {
    for (const option of ['--buyers=0', '--seats=x', '--outage=61', '--buyers=1.5']) {
      const { code } = await sluice(['demo', option], { SLUICE_DIR: join(tmpdir(), 'sluice-nowhere') }).ended;
      assert.equal(code, 2, option);
    }
  });
});

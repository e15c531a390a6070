// What `npm start` does when one of its servers dies, and when a person stops one.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { createSluiceClient } from '#client/index.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { claim, putOnSale } from '../server/support.ts';
import { type Dev, notedPid, processesUnder, readEnv, startDev, stopDev } from '../support/dev.ts';
import { sluice } from '../work/support.ts';

const PATIENCE_MS = 60_000;
const POOL = 'demo_concert_2026';

async function until(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    assert.ok(Date.now() < deadline, `${what}: not within ${PATIENCE_MS / 1_000} s`);
    await sleep(50);
  }
}

describe('npm start, when one of its servers is gone', () => {
  let home: string;
  let dir: string;
  let dev: Dev;
  let env: Record<string, string>;
  let buyers = 0;

  before(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-alive-')));
    // Root's server user must be able to get here.
    spawnSync('chmod', ['755', home]);
    dir = join(home, '.sluice');
    dev = startDev({ dir });
    await dev.ready;
    env = readEnv(dir);
  });
  after(async () => {
    await stopDev(dev, 'SIGINT');
    await sluice(['reset'], { SLUICE_DIR: dir }).ended;
    rmSync(home, { recursive: true, force: true });
  });

  const buy = () => claim(env.SLUICE_URL ?? '', POOL, { user_id: `buyer ${++buyers}` });
  const run = (...args: string[]) => sluice(args, { SLUICE_DIR: dir }).ended;
  const control = (...args: string[]) => run('dev', ...args);
  const sendEvent = () =>
    run('webhooks', 'send', 'stripe', 'payment_intent.succeeded', '--user', 'ann', '--amount', '100');
  const answers = (url: string | undefined) => withClient(url ?? '', async () => true).catch(() => false);
  const hasTicket = (claimId: string) =>
    withClient(env.DB2_URL ?? '', async (db2) => {
      const found = await db2.query('select from public.confirmed_tickets where claim_id = $1', [claimId]);
      return found.rowCount === 1;
    });
  const rest = async (side: 'DB1' | 'DB2') => {
    const apikey = env[`${side}_SUPABASE_SERVICE_ROLE_KEY`] ?? '';
    const table = side === 'DB1' ? 'engine_config' : 'confirmed_tickets';
    const url = `${env[`${side}_SUPABASE_URL`]}/rest/v1/${table}?select=pool_id&limit=1`;
    return (await fetch(url, { headers: { apikey } })).status;
  };
  const kill = (name: string) => process.kill(notedPid(dir, name), 'SIGKILL');

  test('DB2 that dies comes back by itself; claims are taken meanwhile and become tickets', async () => {
    kill('db2-postgres');
    await until('DB2 is gone', async () => !(await answers(env.DB2_URL)));
    const { status, json } = await buy();
    assert.equal(status, 201);
    await until('DB2 is back', () => answers(env.DB2_URL));
    await until('the claim is a ticket', () => hasTicket(json.claim_id));
    await until('REST of DB2 is back', async () => (await rest('DB2')) === 200);
    assert.match(dev.output(), /DB2 \(ledger\): Postgres died; it starts again in [\d.]+ s\..*\n/);
    await until('it says so', () => /DB2 \(ledger\): Postgres runs again\n/.test(dev.output()));
    assert.deepEqual(readEnv(dir), env, 'the addresses stay');
  });

  test('DB1 that dies comes back by itself; claims get 503 with Retry-After, events are taken', async () => {
    kill('db1-postgres');
    await until('DB1 is gone', async () => !(await answers(env.DB1_URL)));
    const refused = await buy();
    assert.equal(refused.status, 503);
    assert.match(String(refused.headers['retry-after']), /^\d+$/);
    await until('DB1 is back', () => answers(env.DB1_URL));
    let last = refused;
    await until('claims are taken', async () => {
      last = await buy();
      return last.status === 201;
    });
    await until('the claim is a ticket', () => hasTicket(last.json.claim_id));
    await until('REST of DB1 is back', async () => (await rest('DB1')) === 200);
    assert.deepEqual(readEnv(dir), env, 'the addresses stay');
  });

  test('the stand-in for Stripe that dies comes back with its books; what was paid there becomes a ticket', async () => {
    await withClient(env.DB1_URL ?? '', (db1) =>
      putOnSale(db1 as pg.Client, 'paid_alive', 1, {
        confirm_by: 'payment',
        price: 500,
        currency: 'eur',
        payment_tenant: 'stripe',
        hold_sec: 600,
      }),
    );
    const client = createSluiceClient({ url: env.SLUICE_URL ?? '' });
    const held = await client.claim({ pool: 'paid_alive', userId: 'ann' });
    const { url } = await client.checkout(held);
    assert.ok(url.startsWith(env.STRIPE_API_URL ?? '-'));
    kill('stripe-stand-in');
    const page = () => fetch(url).catch(() => undefined);
    await until('it is gone', async () => (await page()) === undefined);
    await until('it is back', async () => (await page())?.status === 200);
    const paid = await fetch(url, { method: 'POST', redirect: 'manual' });
    assert.equal(paid.headers.get('location'), `${env.SLUICE_URL}/drop/paid_alive?claim=${held.claim_id}`);
    await until('the claim is a ticket', () => hasTicket(held.claim_id));
    await until('it says so', () => /Stripe \(stand-in\) runs again\n/.test(dev.output()));
    assert.deepEqual(readEnv(dir), env, 'the addresses stay');
  });

  test('PostgREST and a function that die are started again behind their old address', async () => {
    for (const [name, isBack, line] of [
      ['db2-postgrest', async () => (await rest('DB2')) === 200, /DB2 \(ledger\): PostgREST runs again\n/],
      [
        'bridge-worker',
        async () => {
          const headers = { authorization: `Bearer ${env.DB1_SUPABASE_SERVICE_ROLE_KEY}` };
          const url = `${env.DB1_SUPABASE_URL}/functions/v1/bridge-worker`;
          return (await fetch(url, { method: 'POST', headers })).status === 200;
        },
        /Functions: bridge-worker runs again\n/,
      ],
    ] as const) {
      kill(name);
      await until(`${name} is gone`, async () => !(await isBack()));
      assert.equal((await buy()).status, 201);
      await until(`${name} is back`, isBack);
      await until(`${name} is reported`, () => line.test(dev.output()));
    }
  });

  test('`dev stop db2` is an outage that lasts until `dev start db2`', async () => {
    const deaths = () => dev.output().split('DB2 (ledger): Postgres died').length;
    const before = deaths();
    const stopped = await control('stop', 'db2');
    assert.deepEqual([stopped.code, stopped.stderr], [0, '']);
    assert.match(stopped.stdout, /^DB2 \(ledger\) is stopped\..*dev start db2/);
    assert.equal(await answers(env.DB2_URL), false);
    const { status, json } = await buy();
    assert.equal(status, 201);
    const again = await control('stop', 'db2');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /^error: DB2 \(ledger\) is stopped already\nhint: .*dev start db2/);
    assert.equal(deaths(), before, 'a wanted stop is not a death');
    const started = await control('start', 'db2');
    assert.deepEqual([started.code, started.stderr], [0, '']);
    assert.match(started.stdout, /^DB2 \(ledger\) runs\./);
    await until('the claim is a ticket', () => hasTicket(json.claim_id));
    const twice = await control('start', 'db2');
    assert.equal(twice.code, 1);
    assert.match(twice.stderr, /^error: DB2 \(ledger\) runs already\nhint: /);
  });

  test('while DB1 is stopped events are taken, and Ctrl-C ends everything all the same', async () => {
    assert.equal((await control('stop', 'db1')).code, 0);
    assert.equal((await buy()).status, 503);
    const sent = await sendEvent();
    assert.equal(sent.code, 0, sent.stderr);
    assert.equal(await stopDev(dev, 'SIGINT'), 0);
    assert.deepEqual(processesUnder(dir), []);
    dev = startDev({ dir });
    await dev.ready;
    env = readEnv(dir);
    assert.equal((await buy()).status, 201, 'the next start starts what was stopped');
  });

  test('only the owner can read how to stop and start a database, and the words are checked', async () => {
    const file = join(dir, 'control.json');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const { url } = JSON.parse(readFileSync(file, 'utf8'));
    assert.equal((await fetch(`${url}/db2/stop`, { method: 'POST' })).status, 401);
    assert.equal(await answers(env.DB2_URL), true);
    for (const args of [['stop'], ['stop', 'db3'], ['start', 'db1', 'db2'], ['restart', 'db2']])
      assert.equal((await control(...args)).code, 2, args.join(' '));
  });

  test('Ctrl-C while a dead server is being brought back leaves nothing', async () => {
    kill('db2-postgres');
    kill('db1-postgrest');
    await until('DB2 is gone', async () => !(await answers(env.DB2_URL)));
    assert.equal(await stopDev(dev, 'SIGINT'), 0);
    assert.deepEqual(processesUnder(dir), []);
  });

  test('without a stack `dev stop` and `dev start` say so', async () => {
    for (const word of ['stop', 'start']) {
      const { code, stderr } = await control(word, 'db2');
      assert.equal(code, 1);
      assert.match(stderr, /^error: no stack runs in .*\nhint: .*npm start/);
    }
  });
});

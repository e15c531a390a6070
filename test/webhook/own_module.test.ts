// `npm start` and `sluice work` as people use them: demo endpoints, and a module of handlers of their own.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { addDemoEndpoints } from '../../src/stack/demo_setup.ts';
import { bearer, openClient } from '../server/support.ts';
import { type Dev, PROJECT, readEnv, startDev, stopDev } from '../support/dev.ts';
import { sluice } from '../work/support.ts';
import { paymentEvent, send } from './world.ts';

const MODULE = `
  const handlers = [{
    name: 'welcome',
    provider: 'stripe',
    types: ['customer.created'],
    async apply(event: { eventId: string }, tx: { query(text: string, values: unknown[]): Promise<unknown[]> }) {
      await tx.query('insert into public.welcomed values ($1)', [event.eventId]);
    },
  }];
  export default handlers;
`;

describe('webhooks in npm start', () => {
  let home: string;
  let dir: string;
  let dev: Dev;
  let env: Record<string, string>;
  let db2: pg.Client;
  before(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-webhooks-')));
    // Root's server user must be able to get here.
    spawnSync('chmod', ['755', home]);
    dir = join(home, '.sluice');
    writeFileSync(join(home, 'handlers.ts'), MODULE);
    dev = startDev({ dir, env: { SLUICE_HANDLERS: join(home, 'handlers.ts') } });
    await dev.ready;
    env = readEnv(dir);
    db2 = await openClient(env.DB2_URL ?? '');
    await db2.query('create table public.welcomed (event_id text)');
  });
  after(async () => {
    await db2?.end();
    await stopDev(dev, 'SIGINT');
    spawnSync(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), 'reset'], {
      env: { ...process.env, SLUICE_DIR: dir },
    });
    rmSync(home, { recursive: true, force: true });
  });

  const post = (body: string) =>
    send({
      url: `${env.SLUICE_URL}/webhooks/stripe`,
      provider: 'stripe',
      body,
      secret: env.STRIPE_WEBHOOK_SECRET ?? '',
    });
  const until = async (sql: string): Promise<void> => {
    while ((await db2.query(sql)).rowCount === 0) await sleep(10);
  };

  it('the demo endpoint takes a signed payment, a worker credits it, and /metrics has counted it', async () => {
    assert.equal((await post(paymentEvent('evt_demo'))).json.status, 'recorded');
    await until(`select from public.credit_ledger where event_id = 'evt_demo'`);
    const counted = /webhook_processing_total\{[^}]*provider="stripe"[^}]*result="success"[^}]*\} 1/;
    const page = async () =>
      (await fetch(`${env.SLUICE_URL}/metrics`, { headers: bearer(env.SLUICE_ADMIN_KEY ?? '') })).text();
    while (!counted.test(await page())) await sleep(10);
  });

  it('all four demo endpoints are there, also after setting them up a second time', async () => {
    await addDemoEndpoints(env.DB2_URL ?? '');
    const { rows } = await db2.query('select name, mode from public.webhook_endpoints order by name');
    assert.deepEqual(
      rows,
      ['daily', 'stripe', 'twilio', 'whatsapp'].map((name) => ({ name, mode: 'queued' })),
    );
  });

  it('a module named by SLUICE_HANDLERS takes the events of its types', async () => {
    await post(paymentEvent('evt_own', { type: 'customer.created' }));
    await until(`select from public.welcomed where event_id = 'evt_own'`);
    await until(`select from public.webhook_events where event_id = 'evt_own' and status = 'success'`);
  });

  it('a module without a list is refused at the start, and a handler with a fault is told', async () => {
    const { DB1_URL = '', DB2_URL = '' } = env;
    const wrong = join(home, 'wrong.ts');
    const start = (text: string) => {
      writeFileSync(wrong, text);
      return sluice(['work', '--once'], { DB1_URL, DB2_URL, SLUICE_HANDLERS: wrong }).ended;
    };
    for (const [text, reason, exit] of [
      ['export default 7', /default export is not a list/, 1],
      ['export default [{ name: "x" }]', /handler 1 has no provider/, 0],
      ['export default [null]', /handler 1 is not an object/, 0],
      ['export default (', /cannot be loaded/, 1],
    ] as const) {
      const { code, stderr } = await start(text);
      assert.equal(code, exit, stderr);
      assert.match(stderr, reason);
    }
  });
});

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createPayments } from '#core/orders/stripe.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { openStripe } from '../../src/orders/stripe.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { FUNCTION_NAMES } from '../../src/stack/functions.ts';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';
import { putOnSale } from '../server/support.ts';
import { addressesOf, deno, run, startWorld, type World } from './world.ts';

const FUNCTIONS = 'db1/supabase/functions';
const POOL = 'demo_concert_2026';

describe('the Edge Functions on a running stack', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.stop());

  const cacheDir = () => join(world.dir, 'run', 'deno');
  const drain = async (): Promise<{ status: string; processed: number; total: number }> => {
    const { db1 } = world.stack;
    const answer = await fetch(`${db1.gateway.url}/functions/v1/bridge-worker`, {
      method: 'POST',
      headers: { authorization: `Bearer ${db1.keys.serviceRole}` },
    });
    assert.equal(answer.status, 200);
    return (await answer.json()) as { status: string; processed: number; total: number };
  };
  const countIn = (url: string, from: string): Promise<number> =>
    withClient(
      url,
      async (client) => (await client.query(`select count(*)::int as n from ${from}`)).rows[0].n,
    );

  test('every function has a place in the stack, and every entry stays under 60 lines', () => {
    const folders = readdirSync(join(PROJECT_ROOT, FUNCTIONS), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('_'))
      .map((entry) => entry.name);
    assert.deepEqual(folders.sort(), [...FUNCTION_NAMES].sort());
    for (const name of folders) {
      const lines = readFileSync(join(PROJECT_ROOT, FUNCTIONS, name, 'index.ts'), 'utf8').split('\n').length;
      assert.ok(lines < 60, `${name} has ${lines}`);
    }
  });

  test('a folder that is deployed holds its entry and tests: what tests share lies in _conformance', () => {
    for (const name of FUNCTION_NAMES) {
      const files = readdirSync(join(PROJECT_ROOT, FUNCTIONS, name));
      assert.deepEqual(
        files.filter((file) => !file.endsWith('.test.ts')),
        ['index.ts'],
        name,
      );
    }
  });

  test('deno check finds nothing wrong with the functions, the core and their tests', async () => {
    const files = FUNCTION_NAMES.flatMap((name) => [
      `${FUNCTIONS}/${name}/index.ts`,
      `${FUNCTIONS}/${name}/index.test.ts`,
    ]);
    const conformance = ['bridge', 'hook'].map((name) => `${FUNCTIONS}/_conformance/${name}.test.ts`);
    const { code, output } = await deno('check', [...files, ...conformance], {}, cacheDir());
    assert.equal(code, 0, output);
  });

  test('deno test passes against the stack', async () => {
    const args = ['--cached-only', '--no-check', '--allow-net', '--allow-env', `${FUNCTIONS}/`];
    const { code, output } = await deno('test', args, addressesOf(world.stack), cacheDir());
    assert.equal(code, 0, output);
    assert.match(output, /ok \| 38 passed \| 0 failed/);
  });

  test("the PRD's four curl lines sell a ticket", async () => {
    const { db1, db2 } = world.stack;
    const curl = async (line: string) => {
      const ours = line
        .replaceAll('http://127.0.0.1:54321', db1.gateway.url)
        .replaceAll('http://127.0.0.1:54421', db2.gateway.url)
        .replaceAll('<db1_anon_key>', db1.keys.anon)
        .replaceAll('<db1_service_role_key>', db1.keys.serviceRole)
        .replaceAll('<db2_service_role_key>', db2.keys.serviceRole);
      return JSON.parse((await run('sh', ['-c', `${ours} -sS`])).output);
    };
    const slotId = await curl(`curl -X POST 'http://127.0.0.1:54321/rest/v1/rpc/claim_resource_and_queue' \\
      -H 'apikey: <db1_anon_key>' -H 'Content-Type: application/json' \\
      -d '{"p_pool_id":"demo_concert_2026","p_user_id":"user_42"}'`);
    const drained = await curl(`curl -X POST 'http://127.0.0.1:54321/functions/v1/bridge-worker' \\
      -H 'Authorization: Bearer <db1_service_role_key>'`);
    assert.deepEqual(drained, { status: 'ok', processed: 1, dlq: 0, total: 1 });
    const tickets: { resource_id: string; user_id: string }[] =
      await curl(`curl 'http://127.0.0.1:54421/rest/v1/confirmed_tickets?select=*' \\
      -H 'apikey: <db2_service_role_key>'`);
    assert.equal(tickets.find((ticket) => ticket.resource_id === slotId)?.user_id, 'user_42');
    const consumed: { id: string }[] =
      await curl(`curl 'http://127.0.0.1:54321/rest/v1/inventory_slots?select=id,status&status=eq.CONSUMED' \\
      -H 'apikey: <db1_service_role_key>'`);
    assert.ok(consumed.some((slot) => slot.id === slotId));
  });

  test('a paid order that no webhook told becomes a ticket in one call, and one that was not paid is freed', async () => {
    const { db1, db2, stripe } = world.stack;
    assert.ok(stripe);
    const client = new StandInClient(stripe.url, stripe.key);
    const payments = createPayments(await openStripe(stripe.key, { STRIPE_API_URL: stripe.url }));
    const orders = await withClient(db1.url, async (database) => {
      await putOnSale(database, 'paid', 2, {
        confirm_by: 'payment',
        price: 500,
        currency: 'eur',
        payment_tenant: 'stripe',
        hold_sec: 600,
      });
      await database.query(`select public.claim_batch('{paid,paid}', '{ann,bob}', '{1,2}', '{true,true}')`);
      const { rows } = await database.query(
        `select b.order_id, b.n, b.params, b.idempotency_key from public.claims c
         cross join lateral public.begin_checkout(c.claim_id, c.user_id, 'http://127.0.0.1') b where c.pool_id = 'paid'`,
      );
      for (const { order_id, n, params, idempotency_key } of rows) {
        const { id, url } = await payments.createSession(params, idempotency_key);
        await database.query('select public.checkout_created($1, $2, $3, $4)', [order_id, n, id, url]);
        if (params.metadata.user_id === 'ann') await client.pay(id);
      }
      await database.query('update public.orders set hold_until = now()');
      await database.query('update public.checkouts set next_attempt_at = now()');
      return rows.length;
    });
    assert.equal(orders, 2);
    assert.equal((await drain()).processed, 1);
    assert.equal(
      await countIn(db2.url, `public.confirmed_tickets where pool_id = 'paid' and user_id = 'ann'`),
      1,
    );
    await drain();
    assert.equal(
      await countIn(db1.url, `public.inventory_slots where pool_id = 'paid' and status = 'AVAILABLE'`),
      1,
    );
  });

  test('the audit log names service_role, whatever an X-Operator says', async () => {
    const { db1 } = world.stack;
    await withClient(db1.url, (client) =>
      client.query(`select pgmq.send('intake_dlq', '{"pool_id":"p"}', 0)`),
    );
    const call = (path: string, init: RequestInit = {}) =>
      fetch(`${db1.gateway.url}/functions/v1/admin-dlq${path}`, {
        ...init,
        headers: {
          authorization: `Bearer ${db1.keys.serviceRole}`,
          'content-type': 'application/json',
          ...init.headers,
        },
      });
    const { messages } = (await (await call('?pool_id=p')).json()) as { messages: { msg_id: number }[] };
    const body = JSON.stringify({ msg_ids: [messages[0]?.msg_id] });
    const answer = await call('/discard', { method: 'POST', headers: { 'x-operator': 'Grace H.' }, body });
    assert.equal(answer.status, 200);
    const subject = `dead letter ${messages[0]?.msg_id}`;
    assert.equal(
      await countIn(db1.url, `audit.audit_logs where actor = 'service_role' and subject = '${subject}'`),
      1,
    );
    assert.equal(await countIn(db1.url, `audit.audit_logs where actor = 'Grace H.'`), 0);
  });

  test('while DB2 is down messages stay on the queue, and afterwards they drain without a dead letter', async () => {
    const { db1, db2 } = world.stack;
    const before = await countIn(db2.url, 'public.confirmed_tickets');
    const dead = await countIn(db1.url, 'pgmq.q_intake_dlq');
    await withClient(db1.url, (client) =>
      client.query(
        `select public.claim_resource_and_queue('${POOL}', 'outage_' || i) from generate_series(1, 150) i`,
      ),
    );
    await db2.postgres.stop();
    const drained = await drain();
    assert.equal(drained.processed, 0);
    assert.ok(drained.total > 0);
    assert.equal(await countIn(db1.url, 'pgmq.q_intake_queue'), 150);
    await db2.postgres.start();
    while ((await countIn(db1.url, 'pgmq.q_intake_queue')) > 0) await drain();
    assert.equal(await countIn(db2.url, 'public.confirmed_tickets'), before + 150);
    assert.equal(await countIn(db1.url, 'pgmq.q_intake_dlq'), dead);
  });

  test('while DB1 does not answer both functions say 503 with Retry-After', async () => {
    const { gateway, keys } = world.stack.db1;
    const { restPort } = gateway.upstreams;
    delete gateway.upstreams.restPort;
    try {
      for (const [path, method] of [
        ['bridge-worker', 'POST'],
        ['admin-dlq', 'GET'],
      ]) {
        const headers = { authorization: `Bearer ${keys.serviceRole}` };
        const answer = await fetch(`${gateway.url}/functions/v1/${path}`, { method: method ?? '', headers });
        assert.equal(answer.status, 503);
        assert.equal(answer.headers.get('retry-after'), '1');
        const { error } = (await answer.json()) as { error: { code: string } };
        assert.equal(error.code, 'database_unavailable');
      }
    } finally {
      if (restPort !== undefined) gateway.upstreams.restPort = restPort;
    }
  });
});

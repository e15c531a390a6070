// What operators do with money that has no user, over the admin API and the command line.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { ADMIN_KEY, ask, assertRefusal, bearer, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { webhooksHere } from './webhook_support.ts';

describe('payments without a user', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db2: pg.Client;
  const headers = { ...bearer(ADMIN_KEY) };
  const get = (path: string, by: Record<string, string> = headers) =>
    ask(`${server.url}/admin/webhooks${path}`, { headers: by });
  const post = (path: string, body: unknown, by: Record<string, string> = headers) =>
    ask(`${server.url}/admin/webhooks${path}`, { method: 'POST', headers: by, body });
  const webhooks = (...args: string[]) => webhooksHere(databases.db2.url, args);
  const json = async (...args: string[]) => JSON.parse((await webhooks(...args, '--json')).stdout);

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db2 = await openClient(databases.db2.url);
    await db2.query(
      `insert into public.payments (provider, object_id, told, occurred_at, arrival, last_event_id, amount, currency, captured)
       values ('stripe', 'pi_1', 'succeeded', '2026-01-01', 1, 'evt_1', 1000, 'eur', 1000),
         ('stripe:eu', 'pi_1', 'succeeded', '2026-01-01', 2, 'evt_1', 700, 'eur', 700)`,
    );
  });
  after(async () => {
    await db2?.end();
    await server?.stop();
    await databases?.stop();
  });

  it('are open to the admin key alone', async () => {
    assertRefusal(await get('/payments', {}), 401, 'auth_required');
    const body = { tenant: 'stripe', payment: 'pi_1', user_id: 'eve' };
    assertRefusal(await post('/payments/name', body, {}), 401, 'auth_required');
  });

  it('are listed by the API, which names the user of one tenant', async () => {
    const { json: found } = await get('/payments');
    assert.deepEqual(
      found.payments.map((one: Record<string, unknown>) => [
        one.provider,
        one.object_id,
        one.captured,
        one.currency,
      ]),
      [
        ['stripe', 'pi_1', 1000, 'eur'],
        ['stripe:eu', 'pi_1', 700, 'eur'],
      ],
    );
    const body = { tenant: 'stripe', payment: 'pi_1', user_id: 'ann', reason: 'ticket 7' };
    assertRefusal(await post('/payments/name', { ...body, user_id: '' }), 422, 'invalid_input');
    assert.deepEqual((await post('/payments/name', body)).json, { named: true });
    assertRefusal(await post('/payments/name', { ...body, user_id: 'eve' }), 404, 'not_found');
    const { rows } = await db2.query('select user_id, amount::int, provider from public.credit_ledger');
    assert.deepEqual(rows, [{ user_id: 'ann', amount: 1000, provider: 'stripe' }]);
    const audit = await db2.query(
      `select actor, reason from audit.audit_logs where action = 'payment_name_user'`,
    );
    assert.deepEqual(audit.rows, [{ actor: 'admin', reason: 'ticket 7' }]);
  });

  it('are the same on the command line', async () => {
    assert.match(
      (await webhooks('payments')).stdout,
      /^TENANT +PAYMENT +STATE +CAPTURED +REFUNDED +DISPUTED +CURRENCY +SINCE\nstripe:eu +pi_1 +succeeded +700 +0 +0 +eur +2026-01-01/,
    );
    const wrong = await webhooks('payments', 'name', 'pi_1', 'bob');
    assert.deepEqual(
      [wrong.code, wrong.stderr.split('\n')[0]],
      [1, 'no payment pi_1 of the tenant stripe waits for its user'],
    );
    const named = await webhooks(
      'payments',
      'name',
      'pi_1',
      'bob',
      '--tenant',
      'stripe:eu',
      '--reason',
      'ticket 8',
    );
    assert.deepEqual(
      [named.code, named.stdout],
      [0, 'The payment pi_1 is that of bob, who has its credits now.\n'],
    );
    assert.equal((await webhooks('payments')).stdout, 'Every payment has its user.\n');
    assert.deepEqual(await json('payments'), { payments: [] });
    assert.equal((await webhooks('payments', 'name', 'pi_1')).code, 2);
  });
});

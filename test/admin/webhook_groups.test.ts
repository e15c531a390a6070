// What operators see of events that are alike, and of money that has no user, over the admin API and the command line.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { ADMIN_KEY, ask, assertRefusal, bearer, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { auditRows, statuses, storeEvents, webhooksHere } from './webhook_support.ts';

describe('groups of events, and payments without a user', () => {
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
  const shapesOf = ({ groups }: { groups: { event_type: string; error: string; events: number }[] }) =>
    groups.map(({ event_type, error, events }) => `${event_type} ${error} ${events}`);

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db2 = await openClient(databases.db2.url);
    for (const number of [17, 18, 19])
      await storeEvents(db2, [`lost-${number}`], {
        type: 'order.paid',
        error: `order ${number} is not known`,
        ...(number === 18 && { status: 'failed' }),
      });
    await storeEvents(db2, ['void-1'], { type: 'order.void', error: 'order 20 is not known' });
    await storeEvents(db2, ['slow-1'], { type: 'order.paid', error: 'the shop does not answer' });
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

  it('open to the admin key alone', async () => {
    for (const path of ['/groups', '/payments']) assertRefusal(await get(path, {}), 401, 'auth_required');
    const body = { tenant: 'stripe', payment: 'pi_1', user_id: 'eve' };
    assertRefusal(await post('/payments/name', body, {}), 401, 'auth_required');
  });

  it('are listed by the API, the largest group first, filtered as events are', async () => {
    const { status, json: all } = await get('/groups');
    assert.equal(status, 200);
    assert.deepEqual(shapesOf(all), [
      'order.paid order # is not known 3',
      'order.paid the shop does not answer 1',
      'order.void order # is not known 1',
    ]);
    const [first] = all.groups;
    assert.deepEqual(
      [first.handler, first.dead_letters, first.example_error],
      [null, 2, 'order 19 is not known'],
    );
    assert.equal((await get(`/events/${first.example_id}`)).json.event_id, 'lost-19');
    assert.deepEqual(shapesOf((await get('/groups?type=order.v*')).json), [
      'order.void order # is not known 1',
    ]);
    assert.deepEqual((await get('/groups?provider=stripe')).json, { groups: [] });
    assertRefusal(await get('/groups?status=failed'), 422, 'invalid_input');
  });

  it('are listed by the command line, as a table and as JSON', async () => {
    assert.deepEqual(shapesOf(await json('groups')), shapesOf((await get('/groups')).json));
    const { stdout } = await webhooks('groups', '--type', 'order.paid');
    assert.match(
      stdout,
      /^EVENTS +DEAD +HANDLER +TYPE +ERROR +FIRST SEEN +LAST SEEN +EXAMPLE\n3 +2 +- +order\.paid +order # is not known /,
    );
    assert.equal(
      (await webhooks('groups', '--since', '2100-01-01')).stdout,
      'No event failed, and none is a dead letter.\n',
    );
    assert.equal((await webhooks('groups', '--since', 'then')).code, 2);
  });

  it('are skipped and replayed by the words of the group', async () => {
    const group = ['--type', 'order.paid', '--error', 'order # is not known'];
    const dry = await json('skip', ...group, '--dry-run');
    assert.deepEqual(
      dry.results.map(({ event_id }: { event_id: string }) => event_id),
      ['lost-17', 'lost-18', 'lost-19'],
    );
    const filter = { type: 'order.paid', error: 'order # is not known' };
    const { results } = (await post('/events/replay', { filter, reason: 'the shop is mended' })).json;
    assert.deepEqual(
      results.map(({ outcome }: { outcome: string }) => outcome),
      ['replayed', 'replayed', 'replayed'],
    );
    const now = await statuses(db2);
    assert.deepEqual(
      [now['lost-18'], now['void-1'], now['slow-1']],
      ['pending', 'dead_letter', 'dead_letter'],
    );
    assert.equal((await auditRows(db2, 'webhook_replay')).length, 3);
    assert.deepEqual(shapesOf((await get('/groups')).json).length, 2);
  });

  it('of money: the API lists what waits, and names the user of one tenant', async () => {
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

  it('of money: the command line does the same', async () => {
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

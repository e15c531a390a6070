import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import type { RunningServer } from '../../src/server/server.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import {
  ADMIN_KEY,
  ask,
  assertRefusal,
  bearer,
  claim,
  openClient,
  putOnSale,
  startTestServer,
  token,
} from './support.ts';

const SECRET = 'a-secret-of-my-own';
const withSecret = { 'x-claim-secret': SECRET };
const UNKNOWN_CLAIM = '99999999-9999-4999-8999-999999999999';

describe('the claim door on real databases', () => {
  let databases: TestDatabases;
  let client: pg.Client;
  let server: RunningServer;
  let url = '';
  let ann = {};
  let bob = {};

  before(async () => {
    databases = await startDatabases();
    client = await openClient(databases.db1.url);
    server = await startTestServer(databases);
    url = server.url;
    ann = bearer(await token({ role: 'authenticated', sub: 'ann' }));
    bob = bearer(await token({ role: 'authenticated', sub: 'bob' }));
  });
  after(async () => {
    await server?.stop();
    await client?.end();
    await databases?.stop();
  });

  const rows = async (text: string, values: unknown[]) => (await client.query(text, values)).rows;

  it('sells a slot, and what it says is in the database and on the queue', async () => {
    await putOnSale(client, 'plain', 1, { hold_sec: 60 });
    const { status, json } = await claim(url, 'plain', { user_id: 'ann', request_id: 'r1' });
    assert.equal(status, 201);
    assert.deepEqual(Object.keys(json), [
      'claim_id',
      'resource_id',
      'pool_id',
      'user_id',
      'request_id',
      'status',
      'claimed_at',
      'hold_until',
    ]);
    assert.equal(Date.parse(json.hold_until) - Date.parse(json.claimed_at), 60_000);
    const [row] = await rows('select c.*, c.state::text from public.claims c where claim_id = $1', [
      json.claim_id,
    ]);
    assert.deepEqual(
      [row.slot_id, row.pool_id, row.user_id, row.request_id, row.state, row.verified],
      [json.resource_id, 'plain', 'ann', 'r1', json.status, false],
    );
    const messages = await rows(`select 1 from pgmq.q_intake_queue where message ->> 'claim_id' = $1`, [
      json.claim_id,
    ]);
    assert.equal(messages.length, 1);
  });

  it('gives the same claim to the same request, and another to another user with that id', async () => {
    await putOnSale(client, 'same', 3);
    const first = await claim(url, 'same', { user_id: 'ann', request_id: 'r1' });
    const again = await claim(url, 'same', { user_id: 'ann', request_id: 'r1' });
    const byHeader = await claim(url, 'same', { user_id: 'ann' }, { 'idempotency-key': 'r1' });
    assert.deepEqual([first.status, again.status, byHeader.status], [201, 200, 200]);
    assert.deepEqual(again.json, first.json);
    assert.deepEqual(byHeader.json, first.json);
    const other = await claim(url, 'same', { user_id: 'bob', request_id: 'r1' });
    assert.equal(other.status, 201);
    assert.notEqual(other.json.claim_id, first.json.claim_id);
  });

  it('refuses what the pool does not have or does not allow', async () => {
    await putOnSale(client, 'one', 1, { max_per_user: 1 });
    await putOnSale(client, 'two', 2, { max_per_user: 1 });
    await putOnSale(client, 'later', 1, { opens_at: '2999-01-01' });
    await putOnSale(client, 'over', 1, { closes_at: '2001-01-01' });
    await putOnSale(client, 'members', 1, { require_auth: true });
    await claim(url, 'one', { user_id: 'ann' });
    await claim(url, 'two', { user_id: 'ann' });
    assertRefusal(await claim(url, 'one', { user_id: 'bob' }), 409, 'sold_out');
    assertRefusal(await claim(url, 'two', { user_id: 'ann' }), 409, 'limit');
    assertRefusal(await claim(url, 'later', { user_id: 'ann' }), 409, 'closed');
    assertRefusal(await claim(url, 'over', { user_id: 'ann' }), 409, 'closed');
    assertRefusal(await claim(url, 'nowhere', { user_id: 'ann' }), 404, 'unknown_pool');
    assertRefusal(await claim(url, 'members', { user_id: 'ann' }), 401, 'auth_required');
    assert.equal((await claim(url, 'members', { user_id: 'ann' }, ann)).status, 201);
  });

  it('lets a signed-in user claim for itself alone', async () => {
    await putOnSale(client, 'signed', 2);
    assertRefusal(await claim(url, 'signed', { user_id: 'bob' }, ann), 403, 'not_yours');
    const { status, json } = await claim(url, 'signed', {}, ann);
    assert.deepEqual([status, json.user_id], [201, 'ann']);
    const [row] = await rows('select verified from public.claims where claim_id = $1', [json.claim_id]);
    assert.equal(row.verified, true);
  });

  it('shows and releases a claim to its owner, once, and sells the slot again', async () => {
    await putOnSale(client, 'back', 1);
    const made = await claim(url, 'back', {}, ann);
    const path = `${url}/v1/claims/${made.json.claim_id}`;
    assert.equal((await ask(path, { headers: ann })).json.status, made.json.status);
    for (const headers of [{}, bob]) {
      assertRefusal(await ask(path, { headers }), 404, 'unknown_claim');
      assertRefusal(await ask(path, { method: 'DELETE', headers }), 404, 'unknown_claim');
    }
    const released = await ask(path, { method: 'DELETE', headers: ann });
    assert.deepEqual([released.status, released.json.status], [200, 'released']);
    const again = await ask(path, { method: 'DELETE', headers: ann });
    assert.deepEqual(again.json, released.json);
    const next = await claim(url, 'back', { user_id: 'bob' });
    assert.deepEqual([next.status, next.json.resource_id], [201, made.json.resource_id]);
    assert.notEqual(next.json.claim_id, made.json.claim_id);
  });

  it('tells a buyer about how many are ahead, fewer as those are carried, and nothing once it is a ticket', async () => {
    await client.query('delete from pgmq.q_intake_queue');
    await putOnSale(client, 'line', 4);
    const made: { claim_id: string }[] = [];
    for (const user of ['a', 'b', 'c', 'd'])
      made.push((await claim(url, 'line', { user_id: user, secret: SECRET })).json);
    const ahead = async (at: number) =>
      (await ask(`${url}/v1/claims/${made[at]?.claim_id}`, { headers: withSecret })).json.ahead;
    assert.deepEqual([await ahead(0), await ahead(3)], [0, 3]);
    const [taken] = await rows(
      `select * from public.bridge_take(array[intake.lane_of('line')], '{1}', 60)`,
      [],
    );
    await rows(
      `select public.bridge_finish(array[$1::bigint], array[$2::int], '{committed}', '{null}', '{0}')`,
      [taken.msg_id, taken.read_ct],
    );
    assert.deepEqual([await ahead(0), await ahead(1), await ahead(3)], [null, 0, 2]);
  });

  const auditOf = async (claimId: string) =>
    (
      await rows(
        `select actor, action, details ->> 'user_id' = audit.pseudonym('ann') as is_ann from audit.audit_logs where subject = $1`,
        [`claim ${claimId}`],
      )
    ).map(({ actor, action, is_ann }) => [actor, action, is_ann]);

  it('lets operators and services release any claim, says why it ended and who did it, once', async () => {
    const service = bearer(await token({ role: 'service_role' }));
    await putOnSale(client, 'ops', 3);
    for (const [headers, actor] of [
      [bearer(ADMIN_KEY), 'admin'],
      // The server ignores a name that any client can write.
      [{ ...bearer(ADMIN_KEY), 'x-operator': 'ada' }, 'admin'],
      [service, 'service_role'],
    ] as const) {
      const made = await claim(url, 'ops', {}, ann);
      const path = `${url}/v1/claims/${made.json.claim_id}`;
      const release = () => ask(path, { method: 'DELETE', headers });
      const released = await release();
      assert.deepEqual([released.status, released.json.end_reason], [200, 'released by an operator']);
      assert.deepEqual((await release()).json, released.json);
      assert.deepEqual(await auditOf(made.json.claim_id), [[actor, 'claim_release', true]]);
    }
  });

  it('writes nothing down where the owner releases', async () => {
    await putOnSale(client, 'mine', 1);
    const made = await claim(url, 'mine', {}, ann);
    const path = `${url}/v1/claims/${made.json.claim_id}`;
    const released = await ask(path, { method: 'DELETE', headers: ann });
    assert.deepEqual([released.status, released.json.end_reason], [200, 'released by the buyer']);
    assert.deepEqual(await auditOf(made.json.claim_id), []);
  });

  it('says that what is with the bridge is ending, and does not release a ticket', async () => {
    await putOnSale(client, 'late', 2);
    const taken = await claim(url, 'late', { user_id: 'ann', secret: SECRET });
    await rows(`update pgmq.q_intake_queue set read_ct = 1 where message ->> 'claim_id' = $1`, [
      taken.json.claim_id,
    ]);
    for (const method of ['DELETE', 'DELETE', 'GET']) {
      const { status, json } = await ask(`${url}/v1/claims/${taken.json.claim_id}`, {
        method,
        headers: withSecret,
      });
      assert.deepEqual(
        [status, json.status, json.ending, json.ended_at],
        [method === 'GET' ? 200 : 202, 'queued', true, null],
      );
    }
    await rows(`update public.claims set state = 'committed', end_as = null where claim_id = $1`, [
      taken.json.claim_id,
    ]);
    const committed = await ask(`${url}/v1/claims/${taken.json.claim_id}`, {
      method: 'DELETE',
      headers: withSecret,
    });
    assertRefusal(committed, 409, 'already_committed');
  });

  it('does not know a claim that was never made', async () => {
    assertRefusal(await ask(`${url}/v1/claims/${UNKNOWN_CLAIM}`), 404, 'unknown_claim');
    assertRefusal(await ask(`${url}/v1/claims/${UNKNOWN_CLAIM}`, { method: 'DELETE' }), 404, 'unknown_claim');
  });

  it('shows a pool, in numbers', async () => {
    await putOnSale(client, 'shown', 5, { max_per_user: 2 });
    await claim(url, 'shown', { user_id: 'ann' });
    const { status, json } = await ask(`${url}/v1/pools/shown`);
    assert.equal(status, 200);
    assert.deepEqual(
      [json.pool_id, json.status, json.capacity, json.available, json.max_per_user, json.require_auth],
      ['shown', 'open', 5, 4, 2, false],
    );
    assertRefusal(await ask(`${url}/v1/pools/nowhere`), 404, 'unknown_pool');
  });

  it('is alive and ready', async () => {
    assert.deepEqual((await ask(`${url}/healthz`)).json, { status: 'ok' });
    assert.deepEqual((await ask(`${url}/readyz`)).json, { status: 'ready' });
  });
});

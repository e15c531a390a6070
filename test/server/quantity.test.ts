import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { createSluiceClient } from '#client/index.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { ask, assertRefusal, claim, openClient, putOnSale, startTestServer } from './support.ts';

const secret = 'a-secret-of-the-buyer';

describe('a claim of several slots', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    server = await startTestServer(databases);
  });
  after(async () => {
    await Promise.all([db1?.end(), server?.stop()]);
    await databases?.stop();
  });

  const live = async (pool: string): Promise<number> => {
    const { rows } = await db1.query(
      'select count(*)::int as n from public.claims where pool_id = $1 and freed_at is null',
      [pool],
    );
    return rows[0].n;
  };

  it('is answered with all of them and their order, and the same again', async () => {
    await putOnSale(db1, 'family', 10, { max_quantity: 4 });
    const body = { user_id: 'ann', request_id: 'r1', secret, quantity: 3 };
    const first = await claim(server.url, 'family', body);
    assert.equal(first.status, 201, first.text);
    const { claim_id, resource_id, order, claims } = first.json;
    assert.deepEqual(order, { order_id: claim_id, seats: 3 });
    assert.equal(claims.length, 3);
    assert.deepEqual(claims[0], { claim_id, resource_id, label: null });
    assert.equal(new Set(claims.map((one: { resource_id: string }) => one.resource_id)).size, 3);
    const again = await claim(server.url, 'family', body);
    assert.equal(again.status, 200);
    assert.deepEqual(again.json.claims, claims);
    assert.equal(await live('family'), 3);

    const headers = { 'x-claim-secret': secret };
    const seen = await ask(`${server.url}/v1/claims/${claim_id}`, { headers });
    assert.equal(seen.json.order.order_id, claim_id);
    assert.deepEqual(
      seen.json.order.claims.map((one: { claim_id: string }) => one.claim_id),
      claims.map((one: { claim_id: string }) => one.claim_id),
    );
    const released = await ask(`${server.url}/v1/claims/${claim_id}`, { method: 'DELETE', headers });
    assert.equal(released.status, 200, released.text);
    assert.equal(await live('family'), 0);
  });

  it('is all or none', async () => {
    await putOnSale(db1, 'scarce', 5, { max_quantity: 4 });
    assert.equal((await claim(server.url, 'scarce', { user_id: 'ann', quantity: 3 })).status, 201);
    assertRefusal(await claim(server.url, 'scarce', { user_id: 'bob', quantity: 3 }), 409, 'not_enough');
    assert.equal(await live('scarce'), 3);
    assert.equal((await claim(server.url, 'scarce', { user_id: 'bob', quantity: 2 })).status, 201);
    assert.equal(await live('scarce'), 5);
    assertRefusal(await claim(server.url, 'scarce', { user_id: 'cat' }), 409, 'sold_out');
  });

  it('is refused beyond what the pool sells at once, and where limits count all of them', async () => {
    await putOnSale(db1, 'limited', 20, { max_quantity: 4, max_per_user: 5 });
    assertRefusal(
      await claim(server.url, 'limited', { user_id: 'ann', quantity: 5 }),
      422,
      'quantity_refused',
    );
    assert.equal((await claim(server.url, 'limited', { user_id: 'ann', quantity: 3 })).status, 201);
    assertRefusal(await claim(server.url, 'limited', { user_id: 'ann', quantity: 3 }), 409, 'limit');
    assert.equal((await claim(server.url, 'limited', { user_id: 'ann', quantity: 2 })).status, 201);
    await putOnSale(db1, 'single', 5);
    assertRefusal(
      await claim(server.url, 'single', { user_id: 'ann', quantity: 2 }),
      422,
      'quantity_refused',
    );
    assert.equal(await live('single'), 0);
  });

  it('goes with claims of one slot in one batch, and none gets a slot of another', async () => {
    await putOnSale(db1, 'mixed', 100, { max_quantity: 10 });
    const wanted = Array.from({ length: 40 }, (_, n) => 1 + (n % 4));
    const answers = await Promise.all(
      wanted.map((quantity, n) =>
        claim(server.url, 'mixed', { user_id: `user-${n}`, ...(quantity > 1 && { quantity }) }),
      ),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      wanted.map(() => 201),
    );
    const slots = answers.flatMap(({ json }) => json.claims ?? [json]).map((one) => one.resource_id);
    assert.equal(slots.length, 100);
    assert.equal(new Set(slots).size, 100);
    assert.equal(await live('mixed'), 100);
  });

  it('needs a user or a secret where the pool is paid for', async () => {
    await putOnSale(db1, 'paid', 5, {
      confirm_by: 'payment',
      price: 2_500,
      currency: 'eur',
      payment_tenant: 'stripe',
      hold_sec: 600,
      max_quantity: 2,
    });
    assertRefusal(await claim(server.url, 'paid', { user_id: 'ann' }), 401, 'secret_required');
    const held = await claim(server.url, 'paid', { user_id: 'ann', secret, quantity: 2 });
    assert.deepEqual([held.status, held.json.status], [201, 'held'], held.text);
    const { json } = await ask(`${server.url}/v1/claims/${held.json.claim_id}`, {
      headers: { 'x-claim-secret': secret },
    });
    const { status, amount, currency, unit_price, seats } = json.order;
    assert.deepEqual(
      { status, amount, currency, unit_price, seats },
      { status: 'held', amount: 5_000, currency: 'eur', unit_price: 2_500, seats: 2 },
    );
    const pool = await ask(`${server.url}/v1/pools/paid`);
    const { confirm_by, price, max_quantity } = pool.json;
    assert.deepEqual(
      { confirm_by, price, max_quantity },
      { confirm_by: 'payment', price: 2_500, max_quantity: 2 },
    );
  });

  it('is what the client asks for', async () => {
    await putOnSale(db1, 'client', 5, { max_quantity: 2 });
    const sluice = createSluiceClient({ url: server.url });
    const made = await sluice.claim({ pool: 'client', userId: 'ann', quantity: 2 });
    assert.equal(made.claims?.length, 2);
    const seen = await sluice.getClaim(made);
    assert.deepEqual(
      seen.order?.claims?.map(({ claim_id }) => claim_id),
      made.claims?.map(({ claim_id }) => claim_id),
    );
    await assert.rejects(sluice.claim({ pool: 'client', userId: 'bob', quantity: 3 }), {
      code: 'quantity_refused',
    });
  });

  it('counts all its slots against the address', async () => {
    await putOnSale(db1, 'hasty', 50, { max_quantity: 10 });
    const limited = await startTestServer(databases, {
      limits: { claims: { burst: 12, perSec: 0.001 }, loopback: true },
    });
    try {
      assert.equal((await claim(limited.url, 'hasty', { user_id: 'ann', quantity: 10 })).status, 201);
      assertRefusal(await claim(limited.url, 'hasty', { user_id: 'ann', quantity: 3 }), 429, 'rate_limited');
      // The first token of that refusal is gone; the last one is not.
      assert.equal((await claim(limited.url, 'hasty', { user_id: 'ann' })).status, 201);
      assertRefusal(await claim(limited.url, 'hasty', { user_id: 'ann' }), 429, 'rate_limited');
    } finally {
      await limited.stop();
    }
  });
});

// POST /v1/claims/:id/checkout: one session at a time, whatever happens between the row and Stripe's answer.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type Stripe from 'stripe';
import { createSluiceClient } from '#client/index.ts';
import { ADMIN_KEY, ask, assertRefusal, bearer, startTestServer, token } from '../server/support.ts';
import { type Buyer, OrderWorld, PRICE, secretOf } from './world.ts';

describe('checkout', () => {
  let world: OrderWorld;
  before(async () => {
    world = await OrderWorld.start();
  });
  after(() => world?.stop());
  afterEach(() => world.standIn.control.set({ down: false, cut: false, slowMs: 0, failNext: 0 }));

  const sessionsOf = async ({ claim_id }: Buyer) =>
    (await world.standIn.control.books<{ session: Stripe.Checkout.Session }>('session'))
      .map(({ session }) => session)
      .filter((session) => session.client_reference_id === claim_id);
  const checkoutsOf = async ({ claim_id }: Buyer): Promise<string[]> => {
    const sql = 'select n, state from public.checkouts where order_id = $1 order by n';
    return (await world.db1.query(sql, [claim_id])).rows.map(({ n, state }) => `${n} ${state}`);
  };

  it('asks Stripe for exactly what the order is: price, order, user, and the way back', async () => {
    const pool = await world.pool(2);
    const buyer = await world.claimGroup(pool, 2);
    const { json } = await world.checkout(buyer);
    assert.equal(json.amount, 2 * PRICE);
    const [session] = await sessionsOf(buyer);
    const back = `${world.server.url}/drop/${pool}?claim=${buyer.claim_id}`;
    assert.deepEqual(
      [session?.amount_total, session?.currency, session?.success_url, session?.cancel_url],
      [2 * PRICE, 'eur', back, back],
    );
    assert.deepEqual(session?.allowed_payment_method_types, ['card']);
    assert.deepEqual(session?.metadata, {
      claim_id: buyer.claim_id,
      user_id: 'ann',
      verified: 'false',
      pool_id: pool,
      checkout: `${buyer.claim_id}:1`,
    });
  });

  it('takes the price of a ticket for 1,500,000 rupiah', async () => {
    const { status, text } = await ask(`${world.server.url}/admin/pools`, {
      method: 'POST',
      headers: bearer(ADMIN_KEY),
      body: {
        ...{ pool_id: 'jakarta', slots: 1, hold_sec: 600, confirm_by: 'payment', payment_tenant: 'stripe' },
        ...{ price: 150_000_000, currency: 'idr' },
      },
    });
    assert.equal(status, 201, text);
    const buyer = await world.claim('jakarta');
    const { json } = await world.checkout(buyer);
    assert.deepEqual([json.amount, json.currency], [150_000_000, 'idr']);
    assert.equal((await sessionsOf(buyer))[0]?.amount_total, 150_000_000);
  });

  it('never takes the way back from the request', async () => {
    const buyer = await world.claim(await world.pool(1));
    const headers = { 'x-claim-secret': buyer.secret, host: 'evil.example', origin: 'https://evil.example' };
    const url = `${world.server.url}/v1/claims/${buyer.claim_id}/checkout`;
    const { status } = await ask(url, { method: 'POST', headers });
    assert.equal(status, 201);
    assert.ok((await sessionsOf(buyer))[0]?.success_url?.startsWith(`${world.server.url}/drop/`));
  });

  it('is for the owner: the secret, the token of the user, and no other', async () => {
    const pool = await world.pool(2);
    const buyer = await world.claim(pool);
    assertRefusal(
      await world.checkout({ ...buyer, secret: 'another-secret-0123456789' }),
      404,
      'unknown_claim',
    );
    const url = (id: string) => `${world.server.url}/v1/claims/${id}/checkout`;
    const ann = bearer(await token({ sub: 'ann', role: 'authenticated' }));
    const mine = await ask(`${world.server.url}/v1/pools/${pool}/claims`, {
      method: 'POST',
      headers: ann,
      body: { request_id: 'r1' },
    });
    assert.equal(mine.json.status, 'held', mine.text);
    const bob = bearer(await token({ sub: 'bob', role: 'authenticated' }));
    assertRefusal(await ask(url(mine.json.claim_id), { method: 'POST', headers: bob }), 404, 'unknown_claim');
    assert.equal((await ask(url(mine.json.claim_id), { method: 'POST', headers: ann })).status, 201);
    assert.equal((await ask(url(mine.json.claim_id), { method: 'GET', headers: ann })).status, 405);
  });

  it('is refused where the pool takes no payments, and for invalid ids', async () => {
    await world.db1.query(`insert into public.engine_config (pool_id) values ('auto')`);
    await world.db1.query(`insert into public.inventory_slots (pool_id) values ('auto')`);
    const secret = 'a-secret-of-the-auto-pool';
    const { json } = await ask(`${world.server.url}/v1/pools/auto/claims`, {
      method: 'POST',
      body: { user_id: 'ann', request_id: '1', secret },
    });
    const auto = { claim_id: json.claim_id, secret, pool: 'auto' };
    assertRefusal(await world.checkout(auto), 409, 'not_for_payment');
    assertRefusal(await world.checkout({ ...auto, claim_id: 'no-uuid' }), 422, 'invalid_input');
  });

  it('answers 503 while Stripe is down, and gives the same one session afterwards', async () => {
    const buyer = await world.claim(await world.pool(1));
    await world.standIn.control.set({ down: true });
    const refused = await world.checkout(buyer);
    assertRefusal(refused, 503, 'payment_unavailable');
    assert.ok(Number(refused.headers['retry-after']) > 0);
    await world.standIn.control.set({ down: false, cut: true });
    assertRefusal(await world.checkout(buyer), 503, 'payment_unavailable');
    await world.standIn.control.set({ cut: false });
    const made = await world.checkout(buyer);
    assert.equal(made.status, 201, made.text);
    assert.equal((await sessionsOf(buyer)).length, 1);
    assert.deepEqual(await checkoutsOf(buyer), ['1 open']);
  });

  for (const trouble of [{ down: true }, { down: false, cut: true }])
    it(`logs one line for refusals alike, without a stack, while Stripe is ${trouble.down ? 'down' : 'cut off'}`, async (t) => {
      const lines: string[] = [];
      const buyer = await world.claim(await world.pool(1));
      t.mock.method(process.stderr, 'write', (text: unknown) => lines.push(String(text)) > 0);
      const level = process.env.SLUICE_LOG;
      process.env.SLUICE_LOG = 'warn';
      const apiUrls = { STRIPE_API_URL: world.standIn.url };
      const server = await startTestServer(world.databases, { host: '127.0.0.1', secretOf, apiUrls });
      process.env.SLUICE_LOG = level;
      try {
        await world.standIn.control.set(trouble);
        lines.length = 0;
        const headers = { 'x-claim-secret': buyer.secret };
        for (let time = 0; time < 2; time++) {
          const path = `/v1/claims/${buyer.claim_id}/checkout`;
          const refused = await ask(server.url + path, { method: 'POST', headers });
          assertRefusal(refused, 503, 'payment_unavailable');
        }
        const told = lines.filter((line) => line.includes(buyer.claim_id));
        assert.equal(told.length, 1, told.join(''));
        assert.doesNotMatch(told[0] ?? '', /"stack"/);
        const { level: own, code, cause } = JSON.parse(told[0] ?? '');
        assert.deepEqual([own, code], ['warn', 'payment_unavailable']);
        assert.match(cause.error, /connection to Stripe/);
        assert.ok(cause.cause.error, 'what failed');
      } finally {
        await server.stop();
      }
    });

  it('of two at once gives one session', async () => {
    const buyer = await world.claim(await world.pool(1));
    await world.standIn.control.set({ slowMs: 100 });
    const answers = await Promise.all([1, 2, 3].map(() => world.checkout(buyer)));
    for (const answer of answers) assert.ok([200, 201, 503].includes(answer.status), answer.text);
    assert.equal((await sessionsOf(buyer)).length, 1);
    assert.equal((await world.checkout(buyer)).status, 200);
  });

  it('takes another key where the first one repeats a failure that made nothing', async () => {
    const buyer = await world.claim(await world.pool(1));
    await world.standIn.control.set({ failNext: 1, failuresAreDone: false });
    assertRefusal(await world.checkout(buyer), 503, 'payment_unavailable');
    const made = await world.checkout(buyer);
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(await checkoutsOf(buyer), ['1 expired', '2 open']);
    assert.equal((await sessionsOf(buyer)).length, 1);
  });

  it('finds the session that was made although Stripe answered 500', async () => {
    const buyer = await world.claim(await world.pool(1));
    await world.standIn.control.set({ failNext: 1, failuresAreDone: true });
    assertRefusal(await world.checkout(buyer), 503, 'payment_unavailable');
    const made = await world.checkout(buyer);
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(await checkoutsOf(buyer), ['1 open']);
    assert.deepEqual(
      (await sessionsOf(buyer)).map(({ url }) => url),
      [made.json.url],
    );
  });

  it('takes another key where the first try failed and its request has become too late for Stripe', async () => {
    const buyer = await world.claim(await world.pool(1));
    await world.standIn.control.set({ down: true });
    assertRefusal(await world.checkout(buyer), 503, 'payment_unavailable');
    await world.standIn.control.set({ down: false });
    // As if 90 seconds had passed.
    await world.db1.query(
      `update public.checkouts set params = params || jsonb_build_object('expires_at', (params ->> 'expires_at')::int - 90)
       where order_id = $1`,
      [buyer.claim_id],
    );
    const made = await world.checkout(buyer);
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(await checkoutsOf(buyer), ['1 expired', '2 open']);
    assert.equal((await sessionsOf(buyer)).length, 1);
  });

  /** DB1 is set back to before the checkout; its next request to Stripe has another end. */
  const forgetCheckout = async (buyer: Buyer): Promise<void> => {
    await world.db1.query('delete from public.checkouts where order_id = $1', [buyer.claim_id]);
    await world.db1.query(
      `update public.orders set hold_until = hold_until + interval '1 hour' where order_id = $1`,
      [buyer.claim_id],
    );
  };

  it('finds the session of a checkout that DB1 lost', async () => {
    const buyer = await world.claim(await world.pool(1));
    const first = await world.checkout(buyer);
    await forgetCheckout(buyer);
    const again = await world.checkout(buyer);
    assert.deepEqual([again.status, again.json.url], [201, first.json.url], again.text);
    assert.deepEqual(await checkoutsOf(buyer), ['1 open']);
    assert.equal((await sessionsOf(buyer)).length, 1);
  });

  it('asks for no second payment where the session that DB1 lost is paid', async () => {
    const buyer = await world.claim(await world.pool(1));
    const session = await world.session(buyer);
    await forgetCheckout(buyer);
    await world.standIn.control.set({ webhooks: 'dropped' });
    await world.standIn.control.pay(session);
    assertRefusal(await world.checkout(buyer), 409, 'paid');
    await world.endHold(buyer);
    await world.orders();
    await world.standIn.control.set({ webhooks: 'on' });
    assert.equal(await world.statusOf(buyer), 'paid');
    assert.equal((await sessionsOf(buyer)).length, 1);
  });

  it('tells what Stripe said where it refuses every try', async (t) => {
    const lines: string[] = [];
    const buyer = await world.claim(await world.pool(1));
    await world.db1.query('update public.orders set unit_price = 1e12 where order_id = $1', [buyer.claim_id]);
    t.mock.method(process.stderr, 'write', (text: unknown) => lines.push(String(text)) > 0);
    const apiUrls = { STRIPE_API_URL: world.standIn.url };
    const level = process.env.SLUICE_LOG;
    process.env.SLUICE_LOG = 'warn';
    const server = await startTestServer(world.databases, { host: '127.0.0.1', secretOf, apiUrls });
    process.env.SLUICE_LOG = level;
    try {
      const headers = { 'x-claim-secret': buyer.secret };
      const url = `${server.url}/v1/claims/${buyer.claim_id}/checkout`;
      const refused = await ask(url, { method: 'POST', headers });
      assertRefusal(refused, 503, 'payment_unavailable');
      assert.match(refused.json.error.hint, /^Stripe refuses .* operator/);
    } finally {
      await server.stop();
    }
    assert.match(lines.join(''), /a checkout session was refused.*Invalid amount/);
  });

  it('of a server that does not know its own address, or has no key that fits, makes nothing', async () => {
    const servers = [
      { more: { host: '0.0.0.0' }, hint: /SLUICE_PUBLIC_URL/ },
      { more: { secretOf: () => undefined }, hint: /Try again/ },
      { more: { secretOf: () => 'whsec_not_a_key_of_stripe' }, hint: /Try again/ },
      { more: { secretOf: () => 'sk_test_0123456789abcdef' }, hint: /Try again/ },
    ];
    for (const { more, hint } of servers) {
      const server = await startTestServer(world.databases, {
        host: '127.0.0.1',
        secretOf,
        apiUrls: { STRIPE_API_URL: world.standIn.url },
        ...more,
      });
      try {
        const buyer = await world.claim(await world.pool(1));
        const answer = await ask(
          `${server.url.replace('0.0.0.0', '127.0.0.1')}/v1/claims/${buyer.claim_id}/checkout`,
          {
            method: 'POST',
            headers: { 'x-claim-secret': buyer.secret },
          },
        );
        assertRefusal(answer, 503, 'payment_unavailable');
        assert.match(answer.json.error.hint, hint);
        assert.equal((await sessionsOf(buyer)).length, 0);
      } finally {
        await server.stop();
      }
    }
  });

  it('counts once against the limit of its address', async () => {
    const limited = await startTestServer(world.databases, {
      host: '127.0.0.1',
      secretOf,
      apiUrls: { STRIPE_API_URL: world.standIn.url },
      limits: { claims: { burst: 2, perSec: 0.001 }, loopback: true },
    });
    try {
      const buyer = await world.claim(await world.pool(1));
      const url = `${limited.url}/v1/claims/${buyer.claim_id}/checkout`;
      const checkOut = () => ask(url, { method: 'POST', headers: { 'x-claim-secret': buyer.secret } });
      assert.equal((await checkOut()).status, 201);
      assert.equal((await checkOut()).status, 200);
      assertRefusal(await checkOut(), 429, 'rate_limited');
    } finally {
      await limited.stop();
    }
  });

  it('is a call of the client, and tells what trying again does not change', async () => {
    const client = createSluiceClient({ url: world.server.url });
    const claim = await client.claim({ pool: await world.pool(1), userId: 'ann' });
    assert.equal(claim.status, 'held');
    const { url, amount, currency } = await client.checkout(claim);
    assert.deepEqual([amount, currency, (await client.checkout(claim)).url], [PRICE, 'eur', url]);
    await client.release(claim);
    await assert.rejects(client.checkout(claim), { code: 'hold_over', retryable: false });
  });

  it('is tried again by the client while Stripe does not answer, and is one session in the end', async () => {
    await world.standIn.control.set({ down: true });
    const pauses: number[] = [];
    const client = createSluiceClient({
      url: world.server.url,
      maxTries: 3,
      // Stripe is back in the second pause.
      sleep: async (ms) => {
        pauses.push(ms);
        if (pauses.length === 2) await world.standIn.control.set({ down: false, cut: false });
        else await world.standIn.control.set({ down: false, cut: true });
      },
    });
    const claim = await client.claim({ pool: await world.pool(1), userId: 'ann' });
    const { url } = await client.checkout(claim);
    assert.equal(pauses.length, 2);
    assert.deepEqual(
      (await sessionsOf({ ...claim, pool: '' })).map((session) => session.url),
      [url],
    );
    await world.standIn.control.set({ down: true });
    const impatient = createSluiceClient({ url: world.server.url, maxTries: 1 });
    const other = await impatient.claim({ pool: await world.pool(1), userId: 'ann' });
    await assert.rejects(impatient.checkout(other), {
      code: 'payment_unavailable',
      retryable: true,
      tries: 1,
    });
  });
});

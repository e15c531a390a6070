// The Edge Function `claims` answers what the Node route answers: the same requests, on the same databases.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, it } from 'node:test';
import type pg from 'pg';
import type Stripe from 'stripe';
import { createSluiceClient } from '#client/index.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { StandInClient } from '../../src/stripe_stand_in/client.ts';
import { ADMIN_KEY, type Answer, ask, openClient, putOnSale } from '../server/support.ts';
import { PUBLIC_URL, startWorld, type World } from './world.ts';

const POOL = 'edge_paid';
const SECRET = 'a-secret-of-the-buyer';
const PRICE = 700;

describe('the checkout of the Edge Function', () => {
  let world: World;
  let server: RunningServer;
  let db1: pg.Client;
  let standIn: StandInClient;
  let functions: string;
  before(async () => {
    world = await startWorld();
    const { stack } = world;
    assert.ok(stack.stripe);
    const { url: stripeUrl, key } = stack.stripe;
    standIn = new StandInClient(stripeUrl, key);
    db1 = await openClient(stack.db1.url);
    server = await startServer({
      port: 0,
      host: '127.0.0.1',
      db1Url: stack.db1.url,
      db2Url: stack.db2.url,
      adminKey: ADMIN_KEY,
      jwtSecret: stack.secrets.db1JwtSecret,
      secretOf: (name) => ({ STRIPE_API_KEY: key })[name],
      apiUrls: { STRIPE_API_URL: stripeUrl },
    });
    // What stands before /v1 in the client's paths.
    functions = `${stack.db1.gateway.url}/functions`;
    await putOnSale(db1, POOL, 50, {
      confirm_by: 'payment',
      price: PRICE,
      currency: 'eur',
      payment_tenant: 'stripe',
      hold_sec: 600,
    });
    await putOnSale(db1, 'edge_auto', 5);
  });
  after(async () => {
    await server?.stop();
    await db1?.end();
    await world?.stop();
  });
  afterEach(() => standIn.set({ down: false, cut: false }));

  async function hold(pool = POOL): Promise<string> {
    const { rows } = await db1.query(
      `select claim_id from public.claim_batch(p_pool_ids => array[$1], p_user_ids => array['ann'],
         p_request_ids => array[$2], p_verified => array[false], p_proofs => $3)`,
      [
        pool,
        randomUUID(),
        JSON.stringify([{ secret_hash: createHash('sha256').update(SECRET).digest('hex') }]),
      ],
    );
    return rows[0].claim_id;
  }

  type Request = { path: string; method?: string; headers?: Record<string, string>; body?: unknown };
  const edge = ({ path, ...rest }: Request) => ask(functions + path, { method: 'POST', ...rest });
  const node = ({ path, ...rest }: Request) => ask(server.url + path, { method: 'POST', ...rest });
  const pathOf = (claimId: string) => `/v1/claims/${claimId}/checkout`;
  const mine = (claimId: string): Request => ({
    path: pathOf(claimId),
    headers: { 'x-claim-secret': SECRET },
  });
  const told = ({ status, json, headers }: Answer) => ({
    status,
    ...(json.error && { code: json.error.code, message: json.error.message, hint: json.error.hint }),
    retry: headers['retry-after'],
    type: headers['content-type'],
  });

  it('makes the one session, which the server gives as well', async () => {
    const claimId = await hold();
    const made = await edge(mine(claimId));
    assert.equal(made.status, 201, made.text);
    const again = [await edge(mine(claimId)), await node(mine(claimId))];
    for (const { status, json } of again) assert.deepEqual([status, json], [200, made.json]);
    const sessions = await standIn.books<{ session: Stripe.Checkout.Session }>('session');
    const ours = sessions.filter(({ session }) => session.client_reference_id === claimId);
    assert.deepEqual(
      ours.map(({ session }) => [session.url, session.amount_total, session.success_url]),
      [[made.json.url, PRICE, `${PUBLIC_URL}/drop/${POOL}?claim=${claimId}`]],
    );
  });

  it('is what the client asks for, with the address of the functions', async () => {
    const claim = { claim_id: await hold(), secret: SECRET };
    const { amount, url } = await createSluiceClient({ url: functions }).checkout(claim);
    assert.deepEqual([amount, (await node(mine(claim.claim_id))).json.url], [PRICE, url]);
  });

  it('can be called by a page of another origin, which reads what is refused as well', async () => {
    const origin = 'https://shop.example';
    const claimId = await hold();
    const asks = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-claim-secret',
    };
    const preflight = await edge({ path: pathOf(claimId), method: 'OPTIONS', headers: { origin, ...asks } });
    const { headers } = preflight;
    assert.equal(preflight.status, 204, preflight.text);
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.equal(headers['access-control-allow-methods'], 'POST');
    assert.equal(headers['access-control-allow-headers'], 'x-claim-secret');
    assert.equal(headers['access-control-allow-credentials'], undefined);
    for (const [status, request] of [
      [201, mine(claimId)],
      [404, { path: pathOf(claimId) }],
      [405, { path: pathOf(claimId), method: 'DELETE' }],
      [413, { ...mine(claimId), body: 'x'.repeat(100_000) }],
    ] as const) {
      const answer = await edge({ ...request, headers: { origin, ...request.headers } });
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [status, '*']);
      assert.equal(answer.headers['access-control-expose-headers'], 'retry-after, x-request-id');
    }
    const worker = await edge({ path: '/v1/bridge-worker', method: 'OPTIONS', headers: { origin, ...asks } });
    assert.deepEqual([worker.status, worker.headers['access-control-allow-origin']], [405, undefined]);
  });

  it('refuses in the same words', async () => {
    const [held, auto] = [await hold(), await hold('edge_auto')];
    const over = await hold();
    await db1.query('update public.orders set hold_until = now() where order_id = $1', [over]);
    const requests: Record<string, Request> = {
      'another secret': { path: pathOf(held), headers: { 'x-claim-secret': 'another-secret-0123456' } },
      'no secret': { path: pathOf(held) },
      'no such claim': mine(randomUUID()),
      'an id that is not one': mine('no-uuid'),
      'a token of rubbish': { path: pathOf(held), headers: { authorization: 'Bearer a.b.c' } },
      'a wrong key': { path: pathOf(held), headers: { authorization: `Bearer ${'k'.repeat(40)}` } },
      'a pool without payment': mine(auto),
      'a hold that is over': mine(over),
    };
    const seen: Record<string, string> = {};
    for (const [name, request] of Object.entries(requests)) {
      const [one, other] = [told(await edge(request)), told(await node(request))];
      assert.deepEqual(one, other, name);
      seen[name] = `${one.status} ${one.code}`;
    }
    assert.deepEqual(seen, {
      'another secret': '404 unknown_claim',
      'no secret': '404 unknown_claim',
      'no such claim': '404 unknown_claim',
      'an id that is not one': '422 invalid_input',
      'a token of rubbish': '401 auth_required',
      'a wrong key': '401 auth_required',
      'a pool without payment': '409 not_for_payment',
      'a hold that is over': '409 hold_over',
    });
  });

  it('answers 503 while Stripe is down or cuts the answer off, and gives the one session afterwards', async () => {
    const claimId = await hold();
    for (const fault of [{ down: true }, { down: false, cut: true }]) {
      await standIn.set(fault);
      const [one, other] = [told(await edge(mine(claimId))), told(await node(mine(claimId)))];
      assert.deepEqual(one, other);
      assert.equal(`${one.status} ${one.code}`, '503 payment_unavailable');
    }
    await standIn.set({ cut: false });
    const made = await edge(mine(claimId));
    assert.equal(made.status, 201, made.text);
    const sessions = await standIn.books<{ session: Stripe.Checkout.Session }>('session');
    assert.equal(sessions.filter(({ session }) => session.client_reference_id === claimId).length, 1);
  });

  it('answers 503 while DB1 does not answer, and needs DB2 for nothing but the name of a key', async () => {
    const claimId = await hold();
    const { db1: intake, db2: ledger } = world.stack;
    const without = async (gateway: typeof intake.gateway, act: () => Promise<void>) => {
      const { restPort } = gateway.upstreams;
      delete gateway.upstreams.restPort;
      try {
        await act();
      } finally {
        if (restPort !== undefined) gateway.upstreams.restPort = restPort;
      }
    };
    await without(intake.gateway, async () => {
      const { status, json } = await edge(mine(claimId));
      assert.deepEqual([status, json.error.code], [503, 'database_unavailable']);
    });
    await without(ledger.gateway, async () => {
      const { status, text } = await edge(mine(claimId));
      assert.equal(status, 201, text);
    });
  });
});

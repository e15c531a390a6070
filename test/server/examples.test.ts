// Every example of the description, sent to a real server whose databases hold what the examples name.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { createDocument } from '#core/openapi/document.ts';
import { OPERATIONS } from '#core/openapi/operations.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { bury } from '../admin/support.ts';
import { addSites, SECRETS as CALL_SECRETS, nowSec, signedRequest } from '../calls/support.ts';
import { addOperator } from '../operators/support.ts';
import { OrderWorld, secretOf } from '../orders/world.ts';
import { TICKET_SECRET } from '../tickets/support.ts';
import { addEndpoint, paymentEvent, SECRETS } from '../webhook/world.ts';
import { ADMIN_KEY, bearer, putOnSale } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came and asserts on it.
type Json = any;

interface Example {
  name: string;
  method: string;
  /** With its query, below the server's address. */
  target: string;
  headers: Record<string, string>;
  body: string | undefined;
  operation: Json;
}

const exampleOf = (name: string): string => OPERATIONS[name]?.path ?? '';
const CLAIM = exampleOf('GET /v1/claims/:claim');
const ORDER = exampleOf('GET /admin/orders/:order');
const TICKET = exampleOf('GET /admin/tickets/:ticket');
const POOL = exampleOf('GET /v1/pools/:pool');

/** Signed by a provider, which the description cannot show: the test signs them. */
const SIGNED: Readonly<Record<string, (url: string, body: string) => Promise<Partial<Example>>>> = {
  deliverEvents: async (url) => {
    const body = paymentEvent('evt_1');
    const headers = await providerNamed('stripe')?.sign(
      { method: 'POST', url, body: Buffer.from(body) },
      SECRETS.STRIPE_WEBHOOK_SECRET ?? '',
      { port: nodeHmac, nowSec: nowSec() },
    );
    return { headers: { ...headers, 'content-type': 'application/json' }, body };
  },
  answerHandshake: async () => {
    const query = { 'hub.mode': 'subscribe', 'hub.verify_token': SECRETS.WHATSAPP_VERIFY_TOKEN ?? '' };
    return {
      target: `/webhooks/whatsapp?${new URLSearchParams({ ...query, 'hub.challenge': '1158201444' })}`,
    };
  },
  deliverCall: async (_, body) => ({
    headers: { ...signedRequest(body).headers, 'content-type': 'application/json' },
  }),
};

/** Read out of the document alone, as a reader would. Throws where the document leaves the reader alone. */
function examplesOf(document: Json): Example[] {
  return Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]): Example => {
      const name = `${method.toUpperCase()} ${path}`;
      let place = path;
      const query = new URLSearchParams();
      const headers: Record<string, string> = {};
      for (const { name: field, in: where, required, example } of operation.parameters) {
        if (example === undefined) assert(!required, `${name}: ${field} has no example`);
        else if (where === 'path') place = place.replace(`{${field}}`, encodeURIComponent(example));
        else if (where === 'query') query.set(field, example);
        else headers[field] = example;
      }
      const content = operation.requestBody?.content['application/json'];
      assert(content === undefined || content.example !== undefined, `${name}: the body has no example`);
      const body = content && JSON.stringify(content.example).replace('your-key', ADMIN_KEY);
      if (content) headers['content-type'] = 'application/json';
      const target = query.size === 0 ? place : `${place}?${query}`;
      return { name, method: method.toUpperCase(), target, headers, body, operation };
    }),
  );
}

/** What destroys comes last: looks, then changes, then ends. */
const rankOf = ({ method }: Example): number => ['GET', 'POST', 'DELETE'].indexOf(method);

describe('the examples of the description', () => {
  let world: OrderWorld;
  let document: Json;
  before(async () => {
    world = await OrderWorld.start({
      secretOf: (name) => CALL_SECRETS[name === 'OPS_SITE_SECRET' ? 'SITE_SECRET' : name] ?? secretOf(name),
      ticketSecrets: [TICKET_SECRET],
    });
    await fill(world);
    document = await (await fetch(`${world.server.url}/openapi.json`)).json();
  });
  after(() => world?.stop());

  it('are there for every operation that needs one, and each is answered as the description says', async () => {
    const { url } = world.server;
    const examples = examplesOf(document).toSorted((one, other) => rankOf(one) - rankOf(other));
    assert(examples.length >= 60, `${examples.length} examples`);
    const wrong: string[] = [];
    for (const example of examples) {
      const { operationId, security, responses } = example.operation;
      const sign = SIGNED[operationId];
      const { target, headers, body } = {
        ...example,
        ...(await sign?.(url + example.target, example.body ?? '')),
      };
      const isOperators = security.some((one: Json) => 'operatorKey' in one);
      const response = await fetch(url + target, {
        method: example.method,
        headers: { ...headers, ...(isOperators && bearer(ADMIN_KEY)) },
        ...(body !== undefined && { body }),
      });
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
      const text = isStream ? '' : await response.text();
      await (isStream ? response.body?.cancel() : undefined);
      if (!response.ok || responses[response.status] === undefined)
        wrong.push(`${operationId}, ${example.method} ${target}: ${response.status} ${text.slice(0, 300)}`);
    }
    assert.deepEqual(wrong, []);
  });

  it('are missed where a route has none: a parameter without an example is found by this test', () => {
    const routes = [{ method: 'GET', path: '/new/:thing' }];
    const made = createDocument({ routes, descriptions: {}, schemas: {}, version: '0' });
    assert.throws(() => examplesOf(made), /GET \/new\/\{thing\}: thing has no example/);
  });

  it('name no operation that is not there, and each has a name of its own that a person would choose', () => {
    const ids: string[] = Object.values<Json>(document.paths).flatMap((methods) =>
      Object.values<Json>(methods).map(({ operationId }) => operationId),
    );
    assert.deepEqual(
      ids.filter((id) => !/^[a-z]+([A-Z][a-z]+)*$/.test(id)),
      [],
      'these routes have no line in _shared/openapi/operations.ts',
    );
    assert.deepEqual(
      ids.toSorted(),
      Object.values(OPERATIONS)
        .map(({ id }) => id)
        .toSorted(),
    );
  });
});

/** Rows with the ids that the examples name. */
async function fill({ db1, db2 }: OrderWorld): Promise<void> {
  await putOnSale(db1, POOL, 50);
  const letters = await bury(db1, POOL, 7);
  assert(letters.includes(Number(exampleOf('GET /admin/dlq/:msg_id'))), `${letters}`);
  const { rows: issues } = await db1.query(
    `select id from public.issue_list(p_kind => 'claim', p_lane => $1)`,
    [POOL],
  );
  assert.equal(issues[0]?.id, exampleOf('GET /admin/issues/:issue'));
  const paid = {
    confirm_by: 'payment',
    price: 100,
    currency: 'eur',
    payment_tenant: 'stripe',
    hold_sec: 3600,
  };
  await putOnSale(db1, 'paid', 1, paid);
  const secret = OPERATIONS['GET /v1/claims/:claim']?.headers?.['X-Claim-Secret'] ?? '';
  const proof = { secret_hash: createHash('sha256').update(secret).digest('hex'), address: '127.0.0.1' };
  for (const [pool, id] of [
    [POOL, CLAIM],
    ['paid', ORDER],
  ] as const) {
    const { rows } = await db1.query(
      `select claim_id from public.claim_batch(p_pool_ids => array[$1], p_user_ids => array['ann'],
         p_request_ids => array[$2], p_verified => array[false], p_proofs => $3)`,
      [pool, `the claim ${id}`, JSON.stringify([proof])],
    );
    await rename(db1, rows[0].claim_id, id);
  }
  await db2.query('select public.finalize_transaction($1)', [
    { claim_id: TICKET, resource_id: crypto.randomUUID(), pool_id: POOL, user_id: 'ann', state: 'queued' },
  ]);
  await addSites(db2);
  await db2.query(`select calls.add_site($1, '{OPS_SITE_SECRET}', true, null, 'test')`, [
    exampleOf('GET /admin/sites/:site'),
  ]);
  await addOperator(db1, exampleOf('POST /admin/operators/:operator/rotate'), 'viewer');
  await addEndpoint(db2, 'whatsapp', 'whatsapp', 'queued', { verify_token_name: 'WHATSAPP_VERIFY_TOKEN' });
  await db2.query(
    `insert into public.webhook_events (id, webhook_id, event_id, status, error, payload)
     select $1, e.webhook_id, 'evt_0', 'dead_letter', 'no user', '{}' from public.webhook_endpoints e where e.name = 'stripe'`,
    [exampleOf('GET /admin/webhooks/events/:id')],
  );
  await db2.query(
    `insert into public.payments (provider, object_id, told, occurred_at, arrival, last_event_id, amount, currency, captured)
     values ('stripe', 'pi_1', 'succeeded', now(), 1, 'evt_0', 100, 'eur', 100)`,
  );
  await db2.query(
    `insert into public.refunds_due (id, payment_key, amount, currency, reason, state, is_auto, refund_key)
     values ($1, 'stripe/pi_1', 100, 'eur', 'sold_out', 'review', true, 'pi_1')`,
    [exampleOf('GET /admin/refunds/:refund')],
  );
  await db2.query(
    `select calls.record_calls(array['6f1c2a52-7f0e-4c8f-9d51-2f4c1f3f9a10'], array['call-0'], array['ring'], array['{}'],
       array[now()], array['x'])`,
  );
  await db2.query('update public.calls set id = $1', [exampleOf('GET /admin/calls/:id')]);
}

/** A claim chooses its own id; here it gets the one that the examples name. */
async function rename(db1: pg.Client, from: string, to: string): Promise<void> {
  for (const statement of [
    'update public.claims set claim_id = $2, order_id = case when order_id is not null then $2::uuid end where claim_id = $1',
    'update public.orders set order_id = $2 where order_id = $1',
    `update pgmq.q_intake_queue set message = message || jsonb_build_object('claim_id', $2::text) where message ->> 'claim_id' = $1`,
  ])
    await db1.query(statement, [from, to]);
}

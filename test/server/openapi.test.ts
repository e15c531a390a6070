import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { CLAIM_BODY } from '#core/claim_body.ts';
import { POOL_CREATE_BODY } from '#core/console/pools.ts';
import { ERROR_KINDS } from '#core/errors.ts';
import { createDocument, UNDESCRIBED } from '#core/openapi/document.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { DESCRIPTIONS } from '../../src/server/openapi_route.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { bury } from '../admin/support.ts';
import { addSites, SECRETS as CALL_SECRETS, callBody, nowSec, signedRequest } from '../calls/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { paymentEvent, SECRETS as WEBHOOK_SECRETS } from '../webhook/world.ts';
import { ADMIN_KEY, ask, bearer, claim, openClient, putOnSale, startTestServer } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came and asserts on it.
type Json = any;

/** As much of JSON Schema as the document uses. Returns what is wrong, with its place. */
function wrong(document: Json, schema: Json, value: Json, place: string): string[] {
  if (schema.$ref !== undefined) {
    const target = schema.$ref.replace('#/', '').split('/');
    return wrong(
      document,
      target.reduce((at: Json, key: string) => at[key], document),
      value,
      place,
    );
  }
  const types = [schema.type].flat();
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const isNumber =
    type === 'number' && (types.includes('number') || (types.includes('integer') && Number.isInteger(value)));
  if (!isNumber && !types.includes(type)) return [`${place} is ${type}, not ${types}`];
  if (type === 'string' && schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value))
    return [`${place} does not match ${schema.pattern}`];
  if (type === 'array')
    return value.flatMap((item: Json, index: number) =>
      wrong(document, schema.items, item, `${place}[${index}]`),
    );
  if (type !== 'object' || schema.properties === undefined) return [];
  const missing = (schema.required ?? [])
    .filter((name: string) => !(name in value))
    .map((name: string) => `${place}.${name} is missing`);
  const inside = Object.entries(value).flatMap(([name, item]) =>
    schema.properties[name] === undefined
      ? [`${place}.${name} is not described`]
      : wrong(document, schema.properties[name], item, `${place}.${name}`),
  );
  return [...missing, ...inside];
}

describe('GET /openapi.json', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let document: Json;
  const operations = (): [string, string, Json][] =>
    Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
      Object.entries<Json>(methods).map(([method, operation]): [string, string, Json] => [
        method,
        path,
        operation,
      ]),
    );

  before(async () => {
    databases = await startDatabases();
    const secrets: Record<string, string> = { ...CALL_SECRETS, ...WEBHOOK_SECRETS };
    server = await startTestServer(databases, { secretOf: (name) => secrets[name] });
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'p', 10);
    document = (await ask(`${server.url}/openapi.json`)).json;
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });

  it('describes every route of this server, and none that is not there', () => {
    const undescribed = operations().filter(([, , { tags }]) => tags.includes(UNDESCRIBED.tag));
    assert.deepEqual(
      undescribed.map(([method, path]) => `${method} ${path}`),
      [],
    );
    const there = operations().map(
      ([method, path]) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/, ':$1')}`,
    );
    assert.deepEqual(
      Object.keys(DESCRIPTIONS).filter((name) => !there.includes(name)),
      [],
    );
    assert.ok(there.includes('POST /v1/pools/:pool/claims'));
  });

  it('names a route without a description, instead of hiding it', () => {
    const routes = [{ method: 'GET', path: '/new/:thing' }];
    const made: Json = createDocument({ routes, descriptions: {}, schemas: {}, version: '0' });
    assert.deepEqual(made.paths['/new/{thing}'].get.tags, ['undescribed']);
  });

  it('is OpenAPI 3.1 with references that lead somewhere, ids that are unique and parameters that are declared', () => {
    assert.match(document.openapi, /^3\.1\./);
    for (const [, name = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g))
      assert.ok(document.components.schemas[name], name);
    const ids = operations().map(([, , { operationId }]) => operationId);
    assert.equal(new Set(ids).size, ids.length);
    for (const [method, path, { parameters, responses }] of operations()) {
      const declared = parameters.filter((it: Json) => it.in === 'path').map((it: Json) => it.name);
      assert.deepEqual(
        declared,
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
        `${method} ${path}`,
      );
      for (const response of Object.values<Json>(responses))
        assert.ok(response.description, `${method} ${path}`);
    }
  });

  it('holds the very schemas that check bodies, and the errors that are sent', () => {
    const body = (path: string) => document.paths[path].post.requestBody.content['application/json'].schema;
    assert.deepEqual(body('/v1/pools/{pool}/claims'), CLAIM_BODY);
    assert.deepEqual(body('/admin/pools'), JSON.parse(JSON.stringify(POOL_CREATE_BODY)));
    const { responses } = document.paths['/v1/pools/{pool}/claims'].post;
    assert.match(responses[409].description, /`sold_out`: /);
    assert.ok(responses[503].headers['Retry-After']);
    for (const code of ['sold_out', 'limit', 'closed'] as const)
      assert.ok(responses[ERROR_KINDS[code].http].description.includes(code));
  });

  it('describes what is really answered', async () => {
    const made = (await claim(server.url, 'p', { user_id: 'ann', request_id: 'r' })).json;
    const [letter] = await bury(db1, 'p', 1);
    const { claim_id: kept } = (await claim(server.url, 'p', { user_id: 'bob' })).json;
    const admin = bearer(ADMIN_KEY);
    const db2 = await openClient(databases.db2.url);
    try {
      await addSites(db2);
    } finally {
      await db2.end();
    }
    const endpoint = { name: 'stripe', provider: 'stripe', secret_names: ['STRIPE_WEBHOOK_SECRET'] };
    const change = { name: 'stripe', changes: { max_attempts: 3 } };
    const rotation = { name: 'stripe', secret_names: ['STRIPE_WEBHOOK_SECRET'] };
    const siteRotation = { secret_names: ['SITE_SECRET'] };
    const event = paymentEvent('evt_1');
    const place = `${server.url}/webhooks/stripe`;
    const signed = await providerNamed('stripe')?.sign(
      { method: 'POST', url: place, body: Buffer.from(event) },
      WEBHOOK_SECRETS.STRIPE_WEBHOOK_SECRET ?? '',
      { port: nodeHmac, nowSec: nowSec() },
    );
    const call = signedRequest(callBody({ event_id: 'c' }));
    const asked: [string, string, string, Record<string, string>?, Json?][] = [
      ['POST', '/v1/pools/{pool}/claims', '/v1/pools/p/claims', {}, { user_id: 'ann', request_id: 'r' }],
      ['POST', '/v1/pools/{pool}/claims', '/v1/pools/none/claims', {}, { user_id: 'ann' }],
      ['GET', '/v1/claims/{claim}', `/v1/claims/${made.claim_id}`],
      ['GET', '/v1/claims/{claim}', `/v1/claims/${made.claim_id}`, admin],
      ['GET', '/v1/pools/{pool}', '/v1/pools/p'],
      ['GET', '/v1/pools/{pool}/challenge', '/v1/pools/p/challenge'],
      ['GET', '/v1/pools/{pool}/challenge', '/v1/pools/none/challenge'],
      ['GET', '/v1/login', '/v1/login'],
      ['GET', '/healthz', '/healthz'],
      ['GET', '/readyz', '/readyz'],
      ['GET', '/admin/pools', '/admin/pools', admin],
      ['POST', '/admin/pools', '/admin/pools', admin, { pool_id: 'q', slots: 2 }],
      ['GET', '/admin/pools/{pool}', '/admin/pools/q', admin],
      ['GET', '/admin/pools/{pool}', '/admin/pools/q', {}],
      ['POST', '/admin/pools/{pool}', '/admin/pools/q', admin, { add_slots: 1 }],
      ['GET', '/admin/claims', '/admin/claims?user_id=ann', admin],
      ['GET', '/admin/claims/{claim}', `/admin/claims/${made.claim_id}`, admin],
      ['GET', '/admin/dlq', '/admin/dlq', admin],
      ['GET', '/admin/dlq/{msg_id}', `/admin/dlq/${letter}`, admin],
      ['POST', '/admin/dlq/replay', '/admin/dlq/replay', admin, { msg_ids: [letter], dry_run: true }],
      ['POST', '/admin/claims/{claim}/release', `/admin/claims/${kept}/release`, admin, { reason: 'asked' }],
      ['POST', '/admin/webhooks/endpoints', '/admin/webhooks/endpoints', admin, endpoint],
      ['POST', '/admin/webhooks/endpoints/change', '/admin/webhooks/endpoints/change', admin, change],
      ['POST', '/admin/webhooks/endpoints/rotate', '/admin/webhooks/endpoints/rotate', admin, rotation],
      ['GET', '/admin/webhooks/endpoints', '/admin/webhooks/endpoints', admin],
      ['POST', '/admin/sites', '/admin/sites', admin, { site_id: 'hotel', secret_names: ['SITE_SECRET'] }],
      ['POST', '/admin/sites/{site}', '/admin/sites/hotel', admin, { on_outage: 'accept' }],
      ['POST', '/admin/sites/{site}/rotate', '/admin/sites/hotel/rotate', admin, siteRotation],
      ['GET', '/admin/sites/{site}', '/admin/sites/hotel', admin],
      ['GET', '/admin/sites/{site}', '/admin/sites/none', admin],
      ['GET', '/admin/sites', '/admin/sites', admin],
      ['POST', '/admin/operators', '/admin/operators', admin, { name: 'Ada', role: 'viewer' }],
      ['POST', '/admin/operators', '/admin/operators', admin, { name: 'Ada', role: 'viewer' }],
      ['POST', '/admin/operators/{operator}/rotate', '/admin/operators/Ada/rotate', admin, {}],
      ['POST', '/admin/operators/{operator}/revoke', '/admin/operators/Ada/revoke', admin, {}],
      ['GET', '/admin/operators', '/admin/operators', admin],
      ['POST', '/webhooks/{endpoint}', '/webhooks/stripe', { ...signed }, event],
      ['POST', '/webhooks/{endpoint}', '/webhooks/stripe', {}, event],
      ['GET', '/webhooks/{endpoint}', '/webhooks/stripe'],
      ['GET', '/admin/webhooks/events', '/admin/webhooks/events', admin],
      ['POST', '/call-events', '/call-events', call.headers, call.body],
      ['POST', '/call-events', '/call-events', call.headers, call.body],
      ['GET', '/admin/calls', '/admin/calls?kind=ring', admin],
      ['GET', '/admin/audit', '/admin/audit', admin],
      ['GET', '/admin/audit', '/admin/audit?db=2', admin],
      ['GET', '/admin/health', '/admin/health', admin],
      ['GET', '/admin/session', '/admin/session', admin],
      ['GET', '/admin/search', '/admin/search?q=ann', admin],
      ['GET', '/admin/search', '/admin/search', admin],
      ['GET', '/admin/totals/{list}', '/admin/totals/claims?state=queued', admin],
      ['GET', '/admin/totals/{list}', '/admin/totals/nothing', admin],
      ['GET', '/admin/export/{list}', '/admin/export/nothing', admin],
      ['GET', '/admin/tickets', '/admin/tickets', admin],
      ['GET', '/admin/tickets/{ticket}', `/admin/tickets/${made.claim_id}`, admin],
      ['GET', '/admin/payments', '/admin/payments', admin],
      ['GET', '/admin/payments/{payment}', '/admin/payments/stripe%2Fnothing', admin],
      ['GET', '/admin/credits', '/admin/credits', admin],
      ['GET', '/admin/users/{user}/summary', '/admin/users/ann/summary', admin],
    ];
    const check = async ([method, path, url, headers = {}, body]: (typeof asked)[number]) => {
      const answer = await ask(`${server.url}${url}`, { method, headers, ...(body && { body }) });
      const described = document.paths[path][method.toLowerCase()].responses[answer.status];
      assert.ok(
        described,
        `${method} ${url} answered ${answer.status}, which is not described: ${answer.text}`,
      );
      const schema = described.content?.['application/json'].schema;
      const found =
        schema === undefined ? [answer.text].filter(Boolean) : wrong(document, schema, answer.json, 'answer');
      assert.deepEqual(found, [], `${method} ${url}: ${answer.text}`);
      return answer.json;
    };
    for (const one of asked) await check(one);
    const { events } = await check([
      'GET',
      '/admin/webhooks/events',
      '/admin/webhooks/events?limit=1',
      admin,
    ]);
    const id = events[0].id;
    await check(['GET', '/admin/webhooks/events/{id}', `/admin/webhooks/events/${id}`, admin]);
    for (const act of ['replay', 'skip'])
      await check([
        'POST',
        `/admin/webhooks/events/${act}`,
        `/admin/webhooks/events/${act}`,
        admin,
        { ids: [id] },
      ]);
    const { items } = await check(['GET', '/admin/calls', '/admin/calls', admin]);
    await check(['GET', '/admin/calls/{id}', `/admin/calls/${items[0].id}`, admin]);
    await check(['GET', '/admin/calls/{id}', `/admin/calls/${id}`, admin]);
  });
});

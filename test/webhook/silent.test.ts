// A database that has taken the question and never answers.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NO_METRICS } from '#core/ports.ts';
import type { Endpoint } from '#core/webhook/ports.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { WebhookRoutes } from '#core/webhook/routes.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { askRoutes, memoryLog } from '../core/support.ts';
import { paymentEvent } from './world.ts';

const SECRET = 'a secret that is long enough';
const findSecret = async () => ({ is_allowed: true, value: null });
const silent = () => new Promise<never>(() => undefined);
const ENDPOINT = {
  webhook_id: 'w',
  name: 'shop',
  provider: 'stripe',
  mode: 'queued',
  secret_names: ['S'],
  public_url: null,
  scheme: null,
  max_body_bytes: 1_000,
  is_active: true,
} as unknown as Endpoint;

describe('a silent database', () => {
  for (const [what, findEndpoint] of [
    ['the endpoint', silent],
    ['the record', async () => ENDPOINT],
  ] as const) {
    it(`is answered 503 where it was asked for ${what}`, async () => {
      const store = { findEndpoint, record: silent, processEvent: silent, findReply: async () => null };
      const ports = { store, hmac: nodeHmac, secretOf: () => SECRET, findSecret, wake: () => undefined };
      const door = new WebhookRoutes({ ...ports, log: memoryLog(), metrics: NO_METRICS, now: Date.now }, 20);
      const body = paymentEvent('evt_silent');
      const asked = { method: 'POST', url: '', body: Buffer.from(body) };
      const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) };
      const headers = await providerNamed('stripe')?.sign(asked, SECRET, context);
      const answer = await askRoutes(door.routes())({
        method: 'POST',
        path: '/webhooks/shop',
        body,
        ...(headers && { headers }),
      });
      assert.deepEqual([answer.status, answer.json.error.code], [503, 'database_unavailable']);
    });
  }
});

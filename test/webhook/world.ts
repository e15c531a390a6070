// Two databases, a server in this process, endpoints with known secrets, and deliveries signed as the provider would.

import type { Agent } from 'node:http';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { createLog } from '../../src/log.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startServer } from '../../src/server/server.ts';
import { processOnce, type WebhookCrewOptions } from '../../src/webhook/crew.ts';
import { type Handlers, NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { ADMIN_KEY, type Answer, ask, JWT_SECRET, openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

export const SECRETS: Record<string, string> = {
  STRIPE_WEBHOOK_SECRET: 'whsec_test_stripe',
  TWILIO_AUTH_TOKEN: '0123456789abcdef0123456789abcdef',
  WHATSAPP_APP_SECRET: 'whatsapp-app-secret',
  WHATSAPP_VERIFY_TOKEN: 'whatsapp-verify-token',
  DAILY_WEBHOOK_SECRET: Buffer.from('daily-secret-of-thirty-two-bytes').toString('base64'),
};
export const SECRET_NAMES: Record<string, string> = {
  stripe: 'STRIPE_WEBHOOK_SECRET',
  twilio: 'TWILIO_AUTH_TOKEN',
  whatsapp: 'WHATSAPP_APP_SECRET',
  daily: 'DAILY_WEBHOOK_SECRET',
};

export interface Sending {
  url: string;
  provider: string;
  body: string | Uint8Array;
  secret?: string;
  headers?: Record<string, string>;
  nowSec?: number;
  agent?: Agent;
}

/** POSTs a body with the signature that the provider would put on it; `headers` replace what they name. */
export async function send({
  url,
  provider,
  body,
  secret,
  headers,
  nowSec,
  agent,
}: Sending): Promise<Answer> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = await providerNamed(provider)?.sign(
    { method: 'POST', url, body: bytes },
    secret ?? SECRETS[SECRET_NAMES[provider] ?? ''] ?? '',
    { port: nodeHmac, nowSec: nowSec ?? Math.floor(Date.now() / 1000) },
  );
  const all = { 'content-type': 'application/json', ...signed, ...headers };
  return ask(url, { method: 'POST', body: bytes, headers: all, ...(agent && { agent }) });
}

/** A Stripe event about a payment intent. */
export function paymentEvent(id: string, change: Record<string, unknown> = {}): string {
  const { type = 'payment_intent.succeeded', created = 1_770_000_000, ...object } = change;
  return JSON.stringify({
    id,
    object: 'event',
    type,
    created,
    pending_webhooks: 1,
    data: {
      object: {
        id: `pi_${id}`,
        object: 'payment_intent',
        amount: 100,
        amount_received: 100,
        currency: 'eur',
        metadata: { user_id: 'ann' },
        ...object,
      },
    },
  });
}

export class WebhookWorld {
  readonly databases: TestDatabases;
  readonly server: RunningServer;
  readonly db2: pg.Client;
  readonly handlers: Handlers;

  constructor(databases: TestDatabases, server: RunningServer, db2: pg.Client, handlers: Handlers) {
    this.databases = databases;
    this.server = server;
    this.db2 = db2;
    this.handlers = handlers;
  }

  static async start(handlers: Handlers = NO_HANDLERS): Promise<WebhookWorld> {
    process.env.SLUICE_LOG ??= 'silent';
    const databases = await startDatabases();
    const server = await startServer({
      port: 0,
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => SECRETS[name],
      handlers,
    });
    return new WebhookWorld(databases, server, await openClient(databases.db2.url), handlers);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.db2.end();
    await this.databases.stop();
  }

  /** The endpoint's webhook_id. */
  addEndpoint(name: string, provider: string, mode: string, settings: Record<string, unknown> = {}) {
    return addEndpoint(this.db2, name, provider, mode, settings);
  }

  send(endpoint: string, provider: string, body: string | Uint8Array, more: Partial<Sending> = {}) {
    return send({ url: `${this.server.url}/webhooks/${endpoint}`, provider, body, ...more });
  }

  /** What a worker does until nothing is due. */
  process(handlers: Handlers = this.handlers, compare?: WebhookCrewOptions['compare']) {
    const options = { workers: 1, batchSize: 100, handlers, metrics: NO_METRICS, log: createLog('silent') };
    return processOnce(
      { db2Url: this.databases.db2.url, ...options, ...(compare && { compare }) },
      new AbortController().signal,
    );
  }

  async rows<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.db2.query<Row>(sql, values)).rows;
  }

  async event(eventId: string) {
    const [row] = await this.rows(
      `select e.id, e.status::text, e.attempts, e.error, e.payload, convert_from(e.raw_body, 'LATIN1') as raw_body
       from public.webhook_events e where e.event_id = $1`,
      [eventId],
    );
    return row;
  }

  /** What the events of one payment are worth, as the ledger has it. */
  async credited(userId: string): Promise<{ rows: number; sum: number }> {
    const [row] = await this.rows<{ rows: number; sum: number }>(
      `select count(*)::int as rows, coalesce(sum(amount), 0)::int as sum
       from public.credit_ledger where user_id = $1`,
      [userId],
    );
    return row ?? { rows: 0, sum: 0 };
  }
}

/** As the owner of the database. */
export async function allowSecrets(db2: pg.Client, names: readonly string[]): Promise<void> {
  await db2.query(
    'insert into webhook.secret_names (name) select unnest($1::text[]) on conflict do nothing',
    [names],
  );
}

/** A second one of a provider shares the tenant of the first, as two doors for one sender do. */
export async function addEndpoint(
  db2: pg.Client,
  name: string,
  provider: string,
  mode: string,
  settings: Record<string, unknown> = {},
): Promise<string> {
  const { rows } = await db2.query(
    `select webhook.add_endpoint(p_name => $1, p_provider => $2, p_secret_names => $3, p_mode => $4,
       p_settings => $5, p_actor => 'test', p_tenant => (select t.tenant from webhook.tenants t where t.tenant = $2)) as id`,
    [name, provider, [SECRET_NAMES[provider]], mode, settings],
  );
  return rows[0].id;
}

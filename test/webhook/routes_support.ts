// The webhook door on ports in memory: an endpoint as a test wants it, a provider that signs, and what was told to whom.

import { NO_TRACER, type TracedSpan } from '#core/ports.ts';
import { Router } from '#core/router.ts';
import type { Delivery, Endpoint, EventStatus, Recorded } from '#core/webhook/ports.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { WebhookRoutes } from '#core/webhook/routes.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { memoryLog } from '../core/support.ts';
import { metricLines } from './process_support.ts';

export const NOW_MS = 1_700_000_000_900;
const SECRETS: Record<string, string> = {
  NEW: 'new-secret-of-the-shop-as-long-as-twilios',
  OLD: 'old-secret-of-the-shop-as-long-as-twilios',
  TOKEN: 'token-for-the-handshake',
  SHORT: 'fifteen letters',
  FORBIDDEN: 'a-variable-that-is-no-secret',
  EMPTY: '',
};
export const BODY = '{"id":"evt_1","type":"charge.succeeded"}';

const ENDPOINT: Endpoint = {
  webhook_id: 'the webhook',
  name: 'shop',
  provider: 'stripe',
  mode: 'queued',
  on_outage: 'refuse',
  secret_names: ['NEW', 'OLD'],
  verify_token_name: null,
  public_url: null,
  scheme: null,
  max_body_bytes: 1_000,
  is_active: true,
};

interface Sent {
  body?: string | Uint8Array;
  secret?: string;
  headers?: Record<string, string | string[]>;
  query?: string;
  method?: string;
  path?: string;
}

export function open(change: Partial<Endpoint> = {}) {
  const endpoint = { ...ENDPOINT, ...change };
  const seen = { deliveries: [] as Delivery[], tried: [] as string[], woken: 0, nowMs: NOW_MS };
  const answers = {
    /** What the database waits for before it has recorded, and before an effect is taken. */
    recording: Promise.resolve(),
    taking: Promise.resolve(),
    outcomes: [] as Recorded['outcome'][],
    status: 'pending' as EventStatus,
    processedOf: (_id: string) => 'success',
    reply: null as string | null,
  };
  const spans: TracedSpan[] = [];
  const log = memoryLog();
  const metrics = metricLines();
  const webhooks = new WebhookRoutes({
    store: {
      findEndpoint: async (name) => (name === 'shop' ? endpoint : undefined),
      record: async (deliveries) => {
        seen.deliveries.push(...deliveries);
        seen.nowMs += 5;
        await answers.recording;
        return deliveries.map(({ events }) =>
          events.map(({ eventId, quarantine }, index) => {
            const outcome = answers.outcomes[index] ?? (quarantine === null ? 'recorded' : 'quarantined');
            const status = outcome === 'quarantined' ? 'dead_letter' : answers.status;
            return { ordinal: index + 1, id: `row of ${eventId}`, outcome, status, lane: 0 };
          }),
        );
      },
      findReply: async () => answers.reply,
      processEvent: async (id) => {
        seen.tried.push(id);
        await answers.taking;
        return { status: null, error: null, outcome: answers.processedOf(id) };
      },
    },
    hmac: nodeHmac,
    secretOf: (name) => SECRETS[name],
    findSecret: async (name) => ({ is_allowed: name !== 'FORBIDDEN', value: null }),
    wake: () => void seen.woken++,
    log,
    metrics,
    tracer: { ...NO_TRACER, isOn: true, record: (span) => void spans.push(span) },
    now: () => seen.nowMs,
  });
  const door = new Router(webhooks.routes(), log);
  const ask = async ({ body = '', headers = {}, query, method = 'POST', path = '/webhooks/shop' }: Sent) => {
    const {
      status,
      headers: got,
      body: text,
    } = await door.handle(door.find(method, path), {
      method,
      path,
      headers,
      body: Buffer.from(body),
      requestId: 'r',
      ...(query !== undefined && { query }),
    });
    return { status, headers: got, text: String(text) };
  };
  const send = async ({ secret = SECRETS.NEW ?? '', ...sent }: Sent = {}) => {
    const body = sent.body ?? BODY;
    const signed = await providerNamed(endpoint.provider)?.sign(
      {
        method: 'POST',
        url: endpoint.public_url ?? 'http://localhost/webhooks/shop',
        body: Buffer.from(body),
      },
      secret,
      {
        port: nodeHmac,
        nowSec: Math.floor(NOW_MS / 1_000),
        ...(endpoint.scheme && { scheme: endpoint.scheme }),
      },
    );
    const headers = { 'content-type': 'application/json', host: 'localhost', ...signed, ...sent.headers };
    const answer = await ask({ ...sent, body, headers });
    const json = JSON.parse(answer.text.startsWith('{') ? answer.text : '{}');
    return {
      ...answer,
      json,
      code: json.error?.code as string | undefined,
      hint: json.error?.hint as string | undefined,
    };
  };
  const warnings = () => log.lines.filter(({ level }) => level === 'warn' || level === 'error');
  return { send, ask, seen, answers, log, warnings, metrics, spans, webhooks };
}

// The cases that every runtime has to pass. Node's test and Deno's import this one module, so nothing here belongs to either.

import { utf8 } from '../../../db1/supabase/functions/_shared/webhook/bytes.ts';
import { type HmacPort, webHmac } from '../../../db1/supabase/functions/_shared/webhook/hmac.ts';
import type {
  Refusal,
  Scheme,
  SignedRequest,
} from '../../../db1/supabase/functions/_shared/webhook/provider.ts';
import { providerNamed } from '../../../db1/supabase/functions/_shared/webhook/providers.ts';
import fixture from '../../fixtures/webhook-vectors.json' with { type: 'json' };

export interface Case {
  readonly name: string;
  readonly provider: string;
  readonly request: SignedRequest;
  readonly secrets: readonly string[];
  readonly nowSec: number;
  readonly scheme?: Scheme;
  readonly expected: 'ok' | Refusal;
  /** The ids that read() finds. */
  readonly eventIds?: readonly string[];
}

export const NOW = 1_700_000_000;
const URL_HERE = 'https://example.com/webhooks/demo';

interface Vector {
  readonly provider: string;
  readonly why?: string;
  readonly kind: string;
  readonly secret?: string;
  readonly authToken?: string;
  readonly appSecret?: string;
  readonly now?: number;
  readonly url?: string;
  readonly body?: string;
  readonly params?: Record<string, string | string[]>;
  readonly header?: Record<string, string>;
  readonly signature?: string;
  readonly expect?: boolean;
  readonly eventKeys?: string[];
  readonly message?: string;
  readonly hex?: string;
  readonly request?: string;
  readonly response?: { body: string };
  readonly texts?: string[];
}

export const VECTORS = fixture.vectors as readonly Vector[];

/** The file's names for what we call otherwise. */
const PROVIDER_OF: Record<string, string> = {
  'twilio-json': 'twilio',
  meta: 'whatsapp',
  'standard-webhooks': 'standard',
};

/** These are no requests; the tests look at them one by one. */
const NO_REQUEST = new Set(['stripe-hmac', 'meta-handshake', 'replay-malleability']);

export function vectorCases(): Case[] {
  return VECTORS.filter(({ provider }) => !NO_REQUEST.has(provider)).map((vector, index) => {
    const headers = vector.header ?? { 'x-twilio-signature': vector.signature ?? '' };
    const timestamp = Object.entries(headers).find(([name]) => name.endsWith('timestamp'))?.[1];
    return {
      name: `vector ${index + 1}, ${vector.provider}, ${vector.kind}${vector.why ? `: ${vector.why}` : ''}`,
      provider: PROVIDER_OF[vector.provider] ?? vector.provider,
      request: { method: 'POST', url: vector.url ?? URL_HERE, headers, body: bodyOf(vector) },
      secrets: [vector.secret ?? vector.authToken ?? vector.appSecret ?? ''],
      nowSec: vector.now ?? Number(timestamp ?? NOW),
      expected: vector.expect === false ? 'stale' : 'ok',
      ...(vector.eventKeys && { eventIds: vector.eventKeys }),
    };
  });
}

function bodyOf({ body, params = {} }: Vector): Uint8Array {
  if (body !== undefined) return utf8(body);
  const pairs = Object.entries(params).flatMap(([name, value]) => [value].flat().map((item) => [name, item]));
  return utf8(new URLSearchParams(pairs).toString());
}

/** A body of each provider that its own sign() is given. */
interface Plain {
  readonly provider: string;
  readonly secret: string;
  readonly body: string;
  readonly url?: string;
  readonly scheme?: Scheme;
  readonly headers?: Record<string, string>;
  readonly eventIds: readonly string[];
}

const DAILY_SECRET = 'c2VjcmV0LWZvci1kYWlseS10ZXN0cy0wMTIzNDU2Nzg5';
const JSON_HASH = '0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620';
export const SCHEME: Scheme = {
  header: 'x-acme-signature',
  algorithm: 'sha256',
  encoding: 'base64',
  prefix: 'v2=',
  timestamp_header: 'x-acme-time',
  signed: '{id}:{timestamp}:{body}:end',
  id: 'x-acme-id',
  type: '/kind/name',
  tolerance_sec: 60,
  secret_encoding: 'hex',
};

const PLAIN: readonly Plain[] = [
  {
    provider: 'stripe',
    secret: 'whsec_test_secret',
    body: '{"id":"evt_1","type":"charge.succeeded"}',
    eventIds: ['evt_1'],
  },
  {
    provider: 'twilio',
    secret: '12345',
    body: 'CallSid=CA1&CallStatus=completed&To=12',
    eventIds: ['call:CA1:completed'],
  },
  {
    provider: 'twilio',
    secret: '12345',
    url: `https://example.com/hook?bodySHA256=${JSON_HASH}`,
    body: '{"property": "value", "boolean": true}',
    eventIds: [`request:${JSON_HASH.slice(0, 32)}`],
  },
  {
    provider: 'whatsapp',
    secret: 'app-secret',
    body: '{"entry":[{"changes":[{"value":{"messages":[{"id":"wamid.A"}]}}]}]}',
    eventIds: ['message:wamid.A'],
  },
  { provider: 'daily', secret: DAILY_SECRET, body: '{"id":"d1","type":"meeting.ended"}', eventIds: ['d1'] },
  {
    provider: 'github',
    secret: "It's a Secret to Everybody",
    body: '{"action":"opened"}',
    headers: { 'x-github-delivery': 'guid-1', 'x-github-event': 'issues' },
    eventIds: ['guid-1'],
  },
  {
    provider: 'shopify',
    secret: 'shop-secret',
    body: '{"id":1}',
    headers: { 'x-shopify-event-id': 'shop-1', 'x-shopify-topic': 'orders/create' },
    eventIds: ['orders/create:shop-1'],
  },
  {
    provider: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    body: '{"event_id":"Ev1","event":{"type":"app_mention"}}',
    eventIds: ['Ev1'],
  },
  {
    provider: 'standard',
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    body: '{"type":"user.created"}',
    eventIds: ['msg_eeda84e7bad3591de94def5c959f2cc3'],
  },
  {
    provider: 'hmac',
    secret: '00ff10',
    scheme: SCHEME,
    body: '{"kind":{"name":"made"}}',
    eventIds: ['evt_78bd9bdc720e6c52d6608ee838eec7b1'],
  },
];

/** One valid request of each provider. */
export function validCases(port: HmacPort = webHmac): Promise<Case[]> {
  return Promise.all(
    PLAIN.map(async ({ provider, secret, body, url = URL_HERE, scheme, headers = {}, eventIds }) => {
      const asked = { method: 'POST', url, body: utf8(body) };
      const context = { port, nowSec: NOW, ...(scheme && { scheme }) };
      const signed = await providerNamed(provider)?.sign(asked, secret, context);
      return {
        name: `${provider}${url === URL_HERE ? '' : ' with JSON'}`,
        provider,
        request: { ...asked, headers: { ...headers, ...signed } },
        secrets: [secret],
        nowSec: NOW,
        ...(scheme && { scheme }),
        expected: 'ok' as const,
        eventIds,
      };
    }),
  );
}

/** What is wrong with the answer to a case; undefined where nothing is. */
export async function problemOf(
  { provider, request, secrets, nowSec, scheme, expected, eventIds }: Case,
  port: HmacPort,
): Promise<string | undefined> {
  const known = providerNamed(provider);
  if (known === undefined) return `unknown provider ${provider}`;
  const context = { port, nowSec, ...(scheme && { scheme }) };
  const verification = await known.verify(request, secrets, context);
  const got = verification.ok ? 'ok' : verification.reason;
  if (got !== expected) return `expected ${expected}, got ${got}`;
  if (eventIds === undefined) return undefined;
  const ids = (await known.read(request, context)).map(({ eventId }) => eventId);
  return ids.join() === eventIds.join() ? undefined : `read ${ids}`;
}

// A door for each family of providers: what it sends, how it signs, and how its signature can be spelled wrongly.

import type { Scheme } from '#core/webhook/provider.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { sampleOf } from '../../src/webhook/samples.ts';
import type { Door, Signing } from './doors.ts';
import { nowSec, type Place } from './place.ts';

const MEGABYTE = 1024 * 1024;
/** Long ago and the same for all: what an event tells of is not what is looked at here. */
const OCCURRED_SEC = 1_770_000_000;

/** A provider of our own that signs time and body, as data. */
export const SCHEME: Scheme = {
  header: 'x-abuse-signature',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  timestamp_header: 'x-abuse-timestamp',
  signed: '{timestamp}.{body}',
  id: '/id',
  type: '/type',
  tolerance_sec: 300,
  secret_encoding: 'utf8',
};

interface Family {
  readonly provider: string;
  readonly secret: string;
  readonly type: string;
  readonly header: string;
  readonly encoding: 'hex' | 'base64';
  /** Where the time is signed: a header of its own, or a part of the signature's. */
  readonly timestamp?: string;
  readonly isForm?: true;
  /** Where fields of the event itself begin, if that is not the body. */
  readonly eventStart?: string;
}

export const FAMILIES: readonly Family[] = [
  {
    provider: 'stripe',
    secret: 'STRIPE_WEBHOOK_SECRET',
    type: 'table.test',
    header: 'stripe-signature',
    encoding: 'hex',
    timestamp: 'stripe-signature',
  },
  {
    provider: 'twilio',
    secret: 'TWILIO_AUTH_TOKEN',
    type: 'call.completed',
    header: 'x-twilio-signature',
    encoding: 'base64',
    isForm: true,
  },
  {
    provider: 'whatsapp',
    secret: 'WHATSAPP_APP_SECRET',
    type: 'message.text',
    header: 'x-hub-signature-256',
    encoding: 'hex',
    eventStart: '"messages":[{',
  },
  {
    provider: 'daily',
    secret: 'DAILY_WEBHOOK_SECRET',
    type: 'meeting.ended',
    header: 'x-webhook-signature',
    encoding: 'base64',
    timestamp: 'x-webhook-timestamp',
  },
  {
    provider: 'github',
    secret: 'STRIPE_WEBHOOK_SECRET',
    type: 'issues.opened',
    header: 'x-hub-signature-256',
    encoding: 'hex',
  },
  {
    provider: 'shopify',
    secret: 'STRIPE_WEBHOOK_SECRET',
    type: 'orders/create',
    header: 'x-shopify-hmac-sha256',
    encoding: 'base64',
  },
  {
    provider: 'slack',
    secret: 'STRIPE_WEBHOOK_SECRET',
    type: 'app_mention',
    header: 'x-slack-signature',
    encoding: 'hex',
    timestamp: 'x-slack-request-timestamp',
  },
  {
    provider: 'standard',
    secret: 'DAILY_WEBHOOK_SECRET',
    type: 'user.created',
    header: 'webhook-signature',
    encoding: 'base64',
    timestamp: 'webhook-timestamp',
  },
  {
    provider: 'hmac',
    secret: 'STRIPE_WEBHOOK_SECRET',
    type: 'table.test',
    header: SCHEME.header,
    encoding: 'hex',
    timestamp: SCHEME.timestamp_header ?? '',
  },
];

export const endpointOf = (provider: string): string => `abuse-${provider}`;

async function sign(place: Place, family: Family, url: string, body: Uint8Array, signing: Signing) {
  const { provider, secret } = family;
  const context = {
    port: nodeHmac,
    nowSec: signing.atSec ?? nowSec(),
    ...(provider === 'hmac' && { scheme: SCHEME }),
  };
  const headers = await providerNamed(provider)?.sign(
    { method: 'POST', url, body },
    signing.secret ?? place.secrets[secret] ?? '',
    context,
  );
  if (headers === undefined) throw new Error(`no signer for ${provider}`);
  return { ...headers };
}

/** Where no sample is, the shape of our own scheme. */
function sampleFor({ provider, type }: Family, eventId: string) {
  const order = { type, eventId, user: 'ann', amount: 100, atSec: OCCURRED_SEC };
  const body = JSON.stringify({ id: eventId, type });
  return sampleOf(provider, order) ?? { body, contentType: 'application/json', headers: {} };
}

export const webhookDoors: readonly Door[] = FAMILIES.map((family): Door => {
  const { provider, header, encoding, timestamp } = family;
  const path = `/webhooks/${endpointOf(provider)}`;
  return {
    name: `POST ${path}`,
    group: 'webhook',
    method: 'POST',
    paths: { node: () => path, deno: () => `/functions/v1${path}` },
    allow: 'POST, GET',
    maxBytes: provider === 'whatsapp' ? 3 * MEGABYTE : MEGABYTE,
    isForm: family.isForm === true,
    bodyOf: (_, id) => sampleFor(family, id).body,
    headersOf: (_, id) => {
      const { contentType, headers } = sampleFor(family, id);
      return { 'content-type': contentType, ...headers };
    },
    sign: (place, url, body, signing) => sign(place, family, url, body, signing),
    signature: { header, encoding, ...(timestamp !== undefined && { timestamp }) },
    ...(family.eventStart !== undefined && { eventStart: family.eventStart }),
  };
});

// What an endpoint can be told, checked the same way at the admin door and on the command line. The table's own
// constraints check again; here the mistake gets a sentence.

import { HttpError } from '../errors.ts';
import { REASON } from '../operator.ts';
import { type FromSchema, type Schema, SchemaError } from '../schema.ts';
import { providerOf } from './provider.ts';
import { providerNamed } from './providers.ts';
import { readScheme, SCHEME_SCHEMA } from './scheme.ts';

const NAME = { type: 'string', pattern: '^[a-z0-9][a-z0-9_-]{0,62}$' } as const satisfies Schema;
export const SECRET_NAME = {
  type: 'string',
  pattern: '^[A-Z][A-Z0-9_]{0,99}$',
  description: 'the name of a secret on the list of `sluice webhooks secrets`, never its value',
} as const satisfies Schema;
const TENANT = {
  type: 'string',
  pattern: '^[a-z0-9][a-z0-9_-]{0,62}(:[a-z0-9][a-z0-9_-]{0,62})?$',
  description:
    'one that exists, to share its events, payments and credits; the endpoint’s own where left out',
} as const satisfies Schema;
/** Stripe says which account an event is about; of Twilio they are the accounts whose records are asked for. */
const ACCOUNT = { type: 'string', pattern: '^[A-Za-z0-9_/-]{1,100}$' } as const satisfies Schema;

const SETTINGS = {
  mode: { type: 'string', pattern: '^(inline|queued)$' },
  on_outage: {
    type: 'string',
    pattern: '^(refuse|accept)$',
    description:
      'while DB2 is away: refuse answers 503; accept commits the verified delivery to the inbox and answers 2xx. Where left out: accept for Twilio in mode queued, refuse otherwise',
  },
  secret_names: { type: 'array', items: SECRET_NAME, minItems: 1, maxItems: 5 },
  verify_token_name: { ...SECRET_NAME, type: ['string', 'null'] },
  api_key_name: {
    ...SECRET_NAME,
    type: ['string', 'null'],
    description: 'the name of the key with which the provider is asked what it sent, never the key',
  },
  livemode: { type: 'string', pattern: '^(live|test|both)$' },
  accounts: {
    type: 'array',
    items: ACCOUNT,
    maxItems: 100,
    description:
      'Stripe: connected accounts whose events are taken, beside the endpoint’s own account. Twilio: the accounts to ask for gaps.',
  },
  public_url: { type: ['string', 'null'], maxLength: 2000, pattern: '^https?://' },
  scheme: { ...SCHEME_SCHEMA, type: ['object', 'null'] },
  max_attempts: { type: 'integer', minimum: 1, maximum: 100 },
  backoff_cap_sec: { type: 'integer', minimum: 1, maximum: 86_400 },
  lease_sec: { type: 'integer', minimum: 1, maximum: 3_600 },
  max_body_bytes: { type: 'integer', minimum: 1, maximum: 10_485_760 },
  keep_payload_days: { type: ['integer', 'null'], minimum: 1, maximum: 36_500 },
  is_active: { type: 'boolean' },
} as const;

export const NEW_ENDPOINT = {
  type: 'object',
  properties: { name: NAME, provider: NAME, tenant: TENANT, ...SETTINGS },
  required: ['name', 'provider', 'secret_names'],
  additionalProperties: false,
} as const satisfies Schema;

export const ENDPOINT_SETTINGS = {
  type: 'object',
  properties: SETTINGS,
  additionalProperties: false,
} as const satisfies Schema;

export const ADD_BODY = {
  ...NEW_ENDPOINT,
  properties: { ...NEW_ENDPOINT.properties, reason: REASON },
} as const satisfies Schema;

export const CHANGE_BODY = {
  type: 'object',
  properties: { name: NAME, changes: ENDPOINT_SETTINGS, reason: REASON },
  required: ['name', 'changes'],
  additionalProperties: false,
} as const satisfies Schema;

/** What a rotation says beside whose secrets they are. */
export const ROTATION = {
  secret_names: { ...SETTINGS.secret_names, description: 'New ones, newest first; they go in front.' },
  only: { type: 'boolean', description: 'Makes the secrets of before invalid. Where left out they stay.' },
  reason: REASON,
} as const;

export const ROTATE_BODY = {
  type: 'object',
  properties: { name: NAME, ...ROTATION },
  required: ['name', 'secret_names'],
  additionalProperties: false,
} as const satisfies Schema;

export type NewEndpoint = FromSchema<typeof NEW_ENDPOINT>;
export type EndpointSettings = FromSchema<typeof ENDPOINT_SETTINGS>;

/** Checks what a schema cannot: that the provider can be verified, and that the scheme, with its defaults, signs the body. */
export function completeEndpoint(endpoint: NewEndpoint): NewEndpoint {
  if (providerNamed(endpoint.provider) === undefined)
    throw new HttpError('invalid_input', `The provider ${endpoint.provider} is unknown.`);
  if (endpoint.tenant !== undefined && providerOf(endpoint.tenant) !== endpoint.provider)
    throw new HttpError('invalid_input', `The tenant ${endpoint.tenant} is not one of ${endpoint.provider}.`);
  return { ...endpoint, ...completeSettings(endpoint) };
}

export function completeSettings(settings: EndpointSettings): EndpointSettings {
  const { scheme } = settings;
  if (scheme === undefined || scheme === null) return settings;
  try {
    return { ...settings, scheme: { ...readScheme(scheme) } };
  } catch (error) {
    if (error instanceof SchemaError) throw new HttpError('invalid_input', error.message);
    throw error;
  }
}

// `sluice webhooks endpoints`: where providers deliver to, and which secrets they sign with.

import { readFileSync } from 'node:fs';
import { HttpError } from '#core/errors.ts';
import { JsonError, type JsonValue, parseJson } from '#core/json.ts';
import { check, type FromSchema, type Schema, SchemaError } from '#core/schema.ts';
import { namedSecrets } from '#core/webhook/admin.ts';
import {
  completeEndpoint,
  completeSettings,
  ENDPOINT_SETTINGS,
  NEW_ENDPOINT,
} from '#core/webhook/endpoint_settings.ts';
import type { EndpointRow, OperatorStore, Signed } from '#core/webhook/operators.ts';
import { PROVIDER_NAMES, providerNamed } from '#core/webhook/providers.ts';
import { StackError } from '../failure.ts';
import { requireSecrets, withStore } from './db2.ts';
import { action, type Group, UsageError, type Values } from './grammar.ts';
import { actor, listAction } from './operator.ts';
import { type ChangeValues, readSecretNames, SENDER_OPTIONS, senderActions } from './senders.ts';
import { formatTable } from './table.ts';
import { readReason, readUrl } from './values.ts';

const { properties: SETTING } = ENDPOINT_SETTINGS;
const rangeOf = ({ minimum, maximum }: { minimum: number; maximum: number }) => [minimum, maximum] as const;

const TEXT_SETTINGS = {
  mode: {
    value: 'queued|inline',
    choices: ['queued', 'inline'],
    about: 'whether workers or the server run the handlers',
  },
  'on-outage': {
    value: 'refuse|accept',
    choices: ['refuse', 'accept'],
    about:
      'while DB2 is down: answer 503 (refuse), or 2xx once the inbox has it (accept; the default for queued Twilio)',
  },
  'verify-token-name': { value: 'NAME', about: 'the name of the token for a GET handshake, never the token' },
  'api-key-name': {
    value: 'NAME',
    about: 'the name of the key for `sluice webhooks backfill`, never the key',
  },
  'public-url': { value: 'URL', about: 'the address that the provider signs' },
  livemode: {
    value: 'live|test|both',
    choices: ['live', 'test', 'both'],
    about: "which of Stripe's events it takes (default live); others are skipped",
  },
} as const;
const NUMBER_SETTINGS = {
  'max-attempts': { range: rangeOf(SETTING.max_attempts), about: 'tries before an event is a dead letter' },
  'backoff-cap-sec': {
    range: rangeOf(SETTING.backoff_cap_sec),
    about: 'the longest pause between two tries',
  },
  'lease-sec': { range: rangeOf(SETTING.lease_sec), about: 'how long a worker holds an event' },
  'max-body-bytes': { range: rangeOf(SETTING.max_body_bytes), about: 'the largest body the endpoint takes' },
  'keep-payload-days': {
    range: rangeOf(SETTING.keep_payload_days),
    about: 'after how many days payloads are removed (default: what `sluice retention list` says)',
  },
} as const;
const SETTINGS = {
  ...TEXT_SETTINGS,
  'scheme-file': { value: 'FILE', about: 'JSON that describes the signature, for the provider hmac' },
  ...NUMBER_SETTINGS,
  account: {
    value: 'ID',
    multiple: true,
    about:
      'for Stripe, a connected account whose events the endpoint also takes; for Twilio, an account to ask for gaps; give the whole list',
  },
  'own-account': { about: 'remove all connected accounts' },
  ...SENDER_OPTIONS,
} as const;

type Change = (store: OperatorStore, by: Signed) => Promise<EndpointRow>;

async function write(change: Change, { reason, json }: ChangeValues): Promise<number> {
  const by = { actor: actor(), reason: readReason(reason) };
  show([await withStore((store) => change(store, by))], json);
  return 0;
}

async function list(json: boolean): Promise<number> {
  const endpoints = await withStore((store) => store.listEndpoints());
  if (endpoints.length === 0 && !json) console.log('No endpoints.');
  else show(endpoints, json);
  return 0;
}

const add = action({
  about: 'Add an endpoint',
  args: '<name>',
  options: {
    provider: {
      value: 'PROVIDER',
      choices: PROVIDER_NAMES,
      about: `who delivers there: ${PROVIDER_NAMES.join(', ')}; needed`,
    },
    tenant: {
      value: 'TENANT',
      about: 'share the events, payments and credits of this tenant, which exists (default: its own)',
    },
    ...SETTINGS,
  },
  examples: [
    'sluice webhooks endpoints add stripe-eu --provider stripe --secret-name STRIPE_EU_SECRET --mode inline',
  ],
  async run(values, [name]) {
    const { provider, tenant } = values;
    if (provider === undefined)
      throw new UsageError(`add needs --provider, one of ${PROVIDER_NAMES.join(', ')}`);
    const shared = tenant === undefined ? {} : { tenant };
    const endpoint = understood(NEW_ENDPOINT, { name, provider, ...shared, ...settingsOf(values) });
    const complete = refusedAsUsage(() => completeEndpoint(endpoint));
    await requireSecrets(namedSecrets(complete), providerNamed(provider));
    return write((store, by) => store.addEndpoint(complete, by), values);
  },
});

const change = action({
  about: 'Change other settings of an endpoint',
  args: '<name>',
  options: SETTINGS,
  examples: ['sluice webhooks endpoints change stripe-eu --max-attempts 20'],
  async run(values, [name]) {
    const settings = settingsOf(values);
    if (Object.keys(settings).length === 0) throw new UsageError('change needs something to change');
    const complete = refusedAsUsage(() => completeSettings(understood(ENDPOINT_SETTINGS, settings)));
    const named = namedSecrets(complete);
    if (named.length > 0) await requireUsable(name, named);
    return write((store, by) => store.changeEndpoint(name, complete, by), values);
  },
});

async function requireUsable(name: string, secretNames: readonly string[]): Promise<void> {
  const known = await withStore((store) => store.findEndpoint(name));
  if (known === undefined)
    throw new StackError(`unknown endpoint ${name}`, '`sluice webhooks endpoints list` shows them');
  await requireSecrets(secretNames, providerNamed(known.provider));
}

export const endpoints: Group = {
  about: 'Where providers deliver, and which secrets they sign with',
  default: 'list',
  actions: {
    list: listAction('List where providers deliver to', 'sluice webhooks endpoints list', list),
    add,
    change,
    ...senderActions({
      args: '<name>',
      path: 'webhooks endpoints',
      sample: 'stripe-eu',
      change: (name, changes, values) =>
        write((store, by) => store.changeEndpoint(name, changes, by), values),
      async rotate(name, rotation, values) {
        await requireUsable(name, rotation.secretNames);
        return write((store, by) => store.rotateEndpoint(name, rotation, by), values);
      },
    }),
  },
};

function settingsOf(values: Values<typeof SETTINGS>): Record<string, JsonValue> {
  const settings: Record<string, JsonValue> = {};
  const { 'secret-name': names, 'verify-token-name': tokenName, 'api-key-name': keyName } = values;
  if (names.length > 0) settings.secret_names = readSecretNames('--secret-name', names);
  if (tokenName !== undefined) readSecretNames('--verify-token-name', [tokenName]);
  if (keyName !== undefined) readSecretNames('--api-key-name', [keyName]);
  if (values['public-url'] !== undefined) readUrl('--public-url', values['public-url']);
  for (const option of Object.keys({ ...TEXT_SETTINGS, ...NUMBER_SETTINGS })) {
    const value = values[option as keyof typeof TEXT_SETTINGS | keyof typeof NUMBER_SETTINGS];
    if (value !== undefined) settings[option.replaceAll('-', '_')] = value;
  }
  if (values.account.length > 0 || values['own-account']) settings.accounts = values.account;
  if (values['scheme-file'] !== undefined) settings.scheme = readSchemeFile(values['scheme-file']);
  return settings;
}

function readSchemeFile(path: string): JsonValue {
  try {
    return parseJson(readFileSync(path));
  } catch (error) {
    if (error instanceof JsonError) throw new UsageError(`${path} is not JSON: ${error.message}`);
    throw new StackError(`${path} cannot be read`, 'name a JSON file that describes the signature', error);
  }
}

function understood<S extends Schema>(schema: S, value: JsonValue): FromSchema<S> {
  try {
    return check(schema, value, 'the endpoint');
  } catch (error) {
    if (error instanceof SchemaError) throw new UsageError(error.message);
    throw error;
  }
}

function refusedAsUsage<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (error instanceof HttpError) throw new UsageError(error.hint);
    throw error;
  }
}

function show(endpoints: EndpointRow[], asJson: boolean): void {
  if (asJson) {
    console.log(JSON.stringify({ endpoints }));
    return;
  }
  const rows = endpoints.map((endpoint) => [
    endpoint.name,
    endpoint.tenant,
    endpoint.livemode,
    endpoint.accounts.join(',') || '-',
    endpoint.mode,
    endpoint.on_outage,
    endpoint.is_active ? 'on' : 'off',
    endpoint.secret_names.join(','),
    String(endpoint.max_attempts),
    endpoint.webhook_id,
  ]);
  const heads = [
    'NAME',
    'TENANT',
    'TAKES',
    'ACCOUNTS',
    'MODE',
    'ON OUTAGE',
    'ACTIVE',
    'SECRETS',
    'ATTEMPTS',
    'WEBHOOK ID',
  ];
  console.log(formatTable(heads, rows));
}

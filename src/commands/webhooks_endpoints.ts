// `sluice webhooks endpoints`: where providers deliver to, and which secrets they sign with.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { HttpError } from '#core/errors.ts';
import { JsonError, type JsonValue, parseJson } from '#core/json.ts';
import { check, type FromSchema, type Schema, SchemaError } from '#core/schema.ts';
import {
  completeEndpoint,
  completeSettings,
  ENDPOINT_SETTINGS,
  NEW_ENDPOINT,
} from '#core/webhook/endpoint_settings.ts';
import type { EndpointRow, OperatorStore, Signed } from '#core/webhook/operators.ts';
import { StackError } from '../failure.ts';
import { actor } from './operator.ts';
import { readSecretNames, rotated } from './secret_names.ts';
import { formatTable } from './table.ts';
import { UsageError } from './usage_error.ts';
import { readText, readWhole } from './webhooks_filter.ts';
import { withStore } from './webhooks_store.ts';

const OPTIONS = {
  provider: { type: 'string' },
  'secret-name': { type: 'string', multiple: true },
  only: { type: 'boolean', default: false },
  mode: { type: 'string' },
  'verify-token-name': { type: 'string' },
  'public-url': { type: 'string' },
  'scheme-file': { type: 'string' },
  'max-attempts': { type: 'string' },
  'backoff-cap-sec': { type: 'string' },
  'lease-sec': { type: 'string' },
  'max-body-bytes': { type: 'string' },
  'keep-payload-days': { type: 'string' },
  reason: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>>['values'];

const TEXTS = ['mode', 'verify-token-name', 'public-url'] as const;
const NUMBERS = [
  'max-attempts',
  'backoff-cap-sec',
  'lease-sec',
  'max-body-bytes',
  'keep-payload-days',
] as const;

type Act = (store: OperatorStore, name: string, values: Values, by: Signed) => Promise<EndpointRow>;

const ACTIONS: Readonly<Record<string, Act>> = {
  add,
  rotate,
  change,
  disable: switchTo(false),
  enable: switchTo(true),
};

export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [action = 'list', name, ...rest] = positionals;
  if (rest.length > 0) throw new UsageError(`one endpoint at a time, not ${[name, ...rest].join(' ')}`);
  if (action === 'list') return list(values);
  const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (act === undefined) throw new UsageError(`endpoints cannot ${action}`);
  if (name === undefined) throw new UsageError(`${action} needs the name of an endpoint`);
  const reason = values.reason === undefined ? null : readText('--reason', values.reason);
  const endpoint = await withStore((store) => act(store, name, values, { actor: actor(), reason }));
  show([endpoint], values.json);
  return 0;
}

async function list({ json }: Values): Promise<number> {
  const endpoints = await withStore((store) => store.listEndpoints());
  if (endpoints.length === 0 && !json) console.log('No endpoints.');
  else show(endpoints, json);
  return 0;
}

async function add(store: OperatorStore, name: string, values: Values, by: Signed): Promise<EndpointRow> {
  if (values.provider === undefined) throw new UsageError('add needs --provider');
  const endpoint = understood(NEW_ENDPOINT, { name, provider: values.provider, ...settingsOf(values) });
  return store.addEndpoint(
    refusedAsUsage(() => completeEndpoint(endpoint)),
    by,
  );
}

async function change(store: OperatorStore, name: string, values: Values, by: Signed): Promise<EndpointRow> {
  const settings = settingsOf(values);
  if (Object.keys(settings).length === 0) throw new UsageError('change needs something to change');
  const changes = understood(ENDPOINT_SETTINGS, settings);
  return store.changeEndpoint(
    name,
    refusedAsUsage(() => completeSettings(changes)),
    by,
  );
}

async function rotate(store: OperatorStore, name: string, values: Values, by: Signed): Promise<EndpointRow> {
  const given = readSecretNames('--secret-name', values['secret-name'] ?? []);
  if (given.length === 0) throw new UsageError('rotate needs --secret-name');
  const known = await store.findEndpoint(name);
  if (known === undefined)
    throw new StackError(`there is no endpoint ${name}`, '`sluice webhooks endpoints list` shows them');
  const secret_names = rotated(given, known.secret_names, values.only);
  return store.changeEndpoint(name, understood(ENDPOINT_SETTINGS, { secret_names }), by);
}

function switchTo(is_active: boolean): Act {
  return (store, name, _, by) => store.changeEndpoint(name, { is_active }, by);
}

function settingsOf(values: Values): Record<string, JsonValue> {
  const settings: Record<string, JsonValue> = {};
  const column = (option: string) => option.replaceAll('-', '_');
  const { 'secret-name': names, 'verify-token-name': tokenName } = values;
  if (names !== undefined) settings.secret_names = readSecretNames('--secret-name', names);
  if (tokenName !== undefined) readSecretNames('--verify-token-name', [tokenName]);
  for (const option of TEXTS) if (values[option] !== undefined) settings[column(option)] = values[option];
  for (const option of NUMBERS) {
    const text = values[option];
    if (text !== undefined)
      settings[column(option)] = readWhole(`--${option}`, text, Number.MAX_SAFE_INTEGER);
  }
  if (values['scheme-file'] !== undefined) settings.scheme = readSchemeFile(values['scheme-file']);
  return settings;
}

function readSchemeFile(path: string): JsonValue {
  try {
    return parseJson(readFileSync(path));
  } catch (error) {
    if (error instanceof JsonError) throw new UsageError(`${path} is no JSON: ${error.message}`);
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
    endpoint.provider,
    endpoint.mode,
    endpoint.is_active ? 'on' : 'off',
    endpoint.secret_names.join(','),
    String(endpoint.max_attempts),
    endpoint.webhook_id,
  ]);
  console.log(formatTable(['NAME', 'PROVIDER', 'MODE', 'ACTIVE', 'SECRETS', 'ATTEMPTS', 'WEBHOOK ID'], rows));
}

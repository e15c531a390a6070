// `sluice webhooks verify`: for the person whose signatures fail at night. Says whether a stored request is valid, and if
// not why, without showing a secret or the signature that would have been valid.

import { readFileSync } from 'node:fs';
import { JsonError } from '#core/json.ts';
import { SchemaError } from '#core/schema.ts';
import { toHex } from '#core/webhook/bytes.ts';
import type { Provider, ReadEvent, SignedRequest, VerifyContext } from '#core/webhook/provider.ts';
import { PROVIDER_NAMES, providerNamed } from '#core/webhook/providers.ts';
import { readScheme } from '#core/webhook/scheme.ts';
import { nodeHmac } from '../webhook/hmac.ts';
import { findHints, SIGNING_RULES } from '../webhook/verify_hints.ts';
import { action, UsageError, type Values } from './grammar.ts';
import { OPTION } from './operator.ts';
import { readUrl } from './values.ts';

const OPTIONS = {
  secret: { value: 'SECRET', multiple: true, about: "the endpoint's secret; during a rotation each of them" },
  'body-file': { value: 'FILE', about: 'the body, byte for byte as it came; - reads standard input' },
  header: { value: "'NAME: VALUE'", multiple: true, about: 'a header of the request' },
  url: { value: 'URL', about: 'the full address as the provider knows it (Twilio signs it)' },
  now: { range: [0, 99_999_999_999], about: 'the time to check with, in seconds since 1970 (default: now)' },
  scheme: { value: 'JSON', about: "the signature's description, for the provider hmac" },
  json: OPTION.json,
} as const;

interface Report {
  readonly valid: boolean;
  readonly reason: string | null;
  readonly detail: string;
  /** Which secret matched, counted from 1. */
  readonly secret: number | null;
  readonly rule: string;
  readonly body: { readonly bytes: number; readonly sha256: string };
  readonly hints: readonly string[];
  readonly events: readonly Pick<ReadEvent, 'eventId' | 'eventType' | 'occurredAt' | 'quarantine'>[];
}

async function run(values: Values<typeof OPTIONS>, [name]: [string]): Promise<number> {
  const provider = providerNamed(name);
  if (provider === undefined) throw new UsageError(`say which provider: ${PROVIDER_NAMES.join(', ')}`);
  const { secret: secrets, 'body-file': bodyFile, header: headers, url } = values;
  if (secrets.length === 0 || bodyFile === undefined)
    throw new UsageError('--secret and --body-file are needed');
  if (provider.name === 'twilio' && url === undefined)
    throw new UsageError('Twilio signs the address: --url is needed');
  const context = readContext(values.now, values.scheme);
  const request = {
    method: 'POST',
    url: url === undefined ? '' : readUrl('--url', url),
    headers: readHeaders(headers),
    body: readBody(bodyFile),
  };
  const report = await reportOn(provider, request, secrets, context);
  console.log(values.json ? JSON.stringify(report) : textOf(provider, report));
  return report.valid ? 0 : 1;
}

async function reportOn(
  provider: Provider,
  request: SignedRequest,
  secrets: readonly string[],
  context: VerifyContext,
): Promise<Report> {
  const verification = await provider.verify(request, secrets, context);
  const known = {
    rule: SIGNING_RULES[provider.name] ?? '',
    body: { bytes: request.body.length, sha256: toHex(await context.port.sha256(request.body)) },
  };
  if (!verification.ok) {
    const { reason, detail } = verification;
    const hints = reason === 'stale' ? [] : await findHints(provider, request, secrets, context);
    return { valid: false, reason, detail, secret: null, ...known, hints, events: [] };
  }
  const { events, hints } = await readEvents(provider, request, context);
  const detail = `signed with secret ${verification.secret + 1} of ${secrets.length}`;
  return { valid: true, reason: null, detail, secret: verification.secret + 1, ...known, hints, events };
}

async function readEvents(
  provider: Provider,
  request: SignedRequest,
  context: VerifyContext,
): Promise<Pick<Report, 'events' | 'hints'>> {
  try {
    const events = await provider.read(request, context);
    return {
      events: events.map(({ eventId, eventType, occurredAt, quarantine }) => ({
        eventId,
        eventType,
        occurredAt,
        quarantine,
      })),
      hints: [],
    };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { events: [], hints: [`the signature is right, but the body is not JSON: ${error.message}`] };
  }
}

function textOf({ name }: Provider, { valid, reason, detail, rule, body, hints, events }: Report): string {
  const lines = [
    valid ? `valid: ${detail}` : `not valid: ${reason}: ${detail}`,
    `${name} signs: ${rule}`,
    `the body has ${body.bytes} bytes, SHA-256 ${body.sha256}`,
    ...hints.map((hint) => `hint: ${hint}`),
    ...events.map(
      ({ eventId, eventType, occurredAt, quarantine }) =>
        `event ${eventId}, ${eventType}${occurredAt ? `, ${occurredAt}` : ''}${quarantine ? `, quarantine: ${quarantine}` : ''}`,
    ),
  ];
  return lines.join('\n');
}

function readHeaders(lines: readonly string[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const line of lines) {
    const at = line.indexOf(':');
    if (at <= 0) throw new UsageError(`--header is "${line}"; say 'name: value'`);
    const name = line.slice(0, at).trim().toLowerCase();
    const value = line.slice(at + 1).trim();
    const known = headers[name];
    headers[name] = known === undefined ? value : [known, value].flat();
  }
  return headers;
}

function readBody(path: string): Uint8Array {
  try {
    return readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    throw new UsageError(`--body-file ${path} cannot be read: ${(error as Error).message}`);
  }
}

function readContext(nowSec = Math.floor(Date.now() / 1_000), scheme?: string): VerifyContext {
  if (scheme === undefined) return { port: nodeHmac, nowSec };
  try {
    return { port: nodeHmac, nowSec, scheme: readScheme(JSON.parse(scheme)) };
  } catch (error) {
    if (error instanceof SchemaError || error instanceof SyntaxError)
      throw new UsageError(`--scheme is not one: ${error.message}`);
    throw error;
  }
}

export const verify = action({
  about: 'Say whether a request is signed as its provider signs, and if not why',
  args: '<provider>',
  choices: PROVIDER_NAMES,
  options: OPTIONS,
  exits: ['when it is valid', 'when it is not'],
  examples: [
    "sluice webhooks verify stripe --secret whsec_… --body-file body.json --header 'Stripe-Signature: t=1700000000,v1=…'",
  ],
  run,
});

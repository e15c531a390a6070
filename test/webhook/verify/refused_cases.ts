// Requests that look signed. Each is a valid one with one thing changed; for Node and Deno alike, as cases.ts.

import { utf8 } from '../../../db1/supabase/functions/_shared/webhook/bytes.ts';
import { type HmacPort, webHmac } from '../../../db1/supabase/functions/_shared/webhook/hmac.ts';
import type { Refusal, Scheme } from '../../../db1/supabase/functions/_shared/webhook/provider.ts';
import { providerNamed } from '../../../db1/supabase/functions/_shared/webhook/providers.ts';
import { type Case, NOW, SCHEME, validCases } from './cases.ts';

/** Where each provider puts its signature and its time. */
export const SIGNATURE_HEADERS: Record<string, string> = {
  stripe: 'stripe-signature',
  twilio: 'x-twilio-signature',
  whatsapp: 'x-hub-signature-256',
  daily: 'x-webhook-signature',
  github: 'x-hub-signature-256',
  shopify: 'x-shopify-hmac-sha256',
  slack: 'x-slack-signature',
  standard: 'webhook-signature',
  hmac: SCHEME.header,
};
export const TIMESTAMP_HEADERS: Record<string, string> = {
  daily: 'x-webhook-timestamp',
  slack: 'x-slack-request-timestamp',
  standard: 'webhook-timestamp',
  hmac: 'x-acme-time',
};
const BASE64 = new Set(['twilio', 'daily', 'shopify', 'standard', 'hmac']);

export async function refusedCases(port: HmacPort = webHmac): Promise<Case[]> {
  const valid = await validCases(port);
  return [
    ...valid.flatMap(ofEveryProvider),
    ...valid.flatMap(spelledOtherwise),
    ...valid.flatMap(atAnotherTime),
    ...valid.flatMap(withOddTimestamp),
    ...(await ofStripe(valid, port)),
    ...ofSchemes(valid),
  ];
}

function changed(one: Case, what: string, expected: 'ok' | Refusal, change: Partial<Case>): Case {
  const { eventIds: _, ...rest } = one;
  return { ...rest, name: `${one.name}, ${what}`, expected, ...change };
}

/** The case with some headers replaced; undefined takes one away. */
function withHeaders(one: Case, headers: Record<string, string | string[] | undefined>): Partial<Case> {
  return { request: { ...one.request, headers: { ...one.request.headers, ...headers } } };
}

function headerOf(one: Case, name: string): string {
  return String(one.request.headers[name]);
}

function ofEveryProvider(one: Case): Case[] {
  const name = SIGNATURE_HEADERS[one.provider] ?? '';
  const signature = headerOf(one, name);
  const [secret = ''] = one.secrets;
  const wrong = BASE64.has(one.provider) ? '0000' : `${secret}x`;
  const long = utf8(`${new TextDecoder().decode(one.request.body)} `);
  return [
    changed(one, 'no signature', 'missing_signature', withHeaders(one, { [name]: undefined })),
    changed(one, 'an empty signature', 'missing_signature', withHeaders(one, { [name]: '' })),
    changed(one, 'two headers', 'malformed_signature', withHeaders(one, { [name]: [signature, signature] })),
    changed(
      one,
      'two headers in one',
      'malformed_signature',
      withHeaders(one, { [name]: `${signature}, ${signature}` }),
    ),
    changed(one, 'garbage', 'malformed_signature', withHeaders(one, { [name]: 'garbage' })),
    changed(one, 'no secret', 'no_secret', { secrets: [] }),
    changed(one, 'an empty secret', 'no_secret', { secrets: [''] }),
    changed(one, 'another secret', 'bad_signature', { secrets: [wrong] }),
    changed(one, 'the right secret second', 'ok', { secrets: [wrong, secret] }),
    changed(one, 'a longer body', one.name === 'twilio with JSON' ? 'body_hash_mismatch' : 'bad_signature', {
      request: { ...one.request, body: long },
    }),
  ];
}

/** The same bytes in another spelling. */
function spelledOtherwise(one: Case): Case[] {
  const name = SIGNATURE_HEADERS[one.provider] ?? '';
  const header = headerOf(one, name);
  const [, before = '', text = ''] = /^(.*(?:v1=|v0=|v2=|sha256=|v1,)|)([^,]+)$/.exec(header) ?? [];
  const spellings = BASE64.has(one.provider)
    ? [text.replace(/=+$/, ''), `${text}=`, withStrayBits(text), text.replaceAll('/', '_'), `${text} `]
    : [text.toUpperCase(), `0x${text}`, ` ${text}`, `${text}00`, text.slice(2)];
  return spellings
    .filter((spelling) => spelling !== text)
    .map((spelling) =>
      changed(
        one,
        `the signature spelled ${spelling}`,
        'malformed_signature',
        withHeaders(one, { [name]: before + spelling }),
      ),
    );
}

/** The last letter before the padding holds unused bits; the next letter of the alphabet decodes to the same bytes. */
function withStrayBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  return text.replace(/.(?==+$)/, (letter) => alphabet[alphabet.indexOf(letter) + 1] ?? letter);
}

/** The clock moved to both sides; only those that sign a time care. */
function atAnotherTime(one: Case): Case[] {
  const toleranceSec = one.scheme?.tolerance_sec ?? 300;
  const isTimed = one.provider === 'stripe' || one.provider in TIMESTAMP_HEADERS;
  const late = isTimed ? 'stale' : 'ok';
  return [
    changed(one, 'just in time', 'ok', { nowSec: NOW + toleranceSec }),
    changed(one, 'a second too old', late, { nowSec: NOW + toleranceSec + 1 }),
    changed(one, 'just not in the future', 'ok', { nowSec: NOW - toleranceSec }),
    changed(one, 'a second too far in the future', late, { nowSec: NOW - toleranceSec - 1 }),
  ];
}

function withOddTimestamp(one: Case): Case[] {
  const name = TIMESTAMP_HEADERS[one.provider];
  if (name === undefined) return [];
  const odd = [`${NOW}000`, `${NOW}.0`, `+${NOW}`, ` ${NOW}`, `0${NOW}`, '1.7e9', '-1', '0', 'now'];
  return [
    ...odd.map((text) =>
      changed(one, `the time ${text}`, 'malformed_signature', withHeaders(one, { [name]: text })),
    ),
    changed(one, 'no time', 'missing_signature', withHeaders(one, { [name]: undefined })),
    changed(one, 'two times', 'malformed_signature', withHeaders(one, { [name]: [`${NOW}`, `${NOW}`] })),
    changed(one, 'another time', 'bad_signature', withHeaders(one, { [name]: `${NOW + 1}` })),
  ];
}

/** Its header holds everything in one list. The odd times are signed as they stand, so only their spelling is wrong. */
async function ofStripe(valid: readonly Case[], port: HmacPort): Promise<Case[]> {
  const one = valid.find(({ provider }) => provider === 'stripe');
  if (one === undefined) return [];
  const header = headerOf(one, 'stripe-signature');
  const [time = '', signature = ''] = header.split(',');
  const other = `v1=${'0'.repeat(64)}`;
  const v0 = signature.replace('v1', 'v0');
  const withHeader = (text: string) => withHeaders(one, { 'stripe-signature': text });
  const ms = await providerNamed('stripe')?.sign(one.request, one.secrets[0] ?? '', {
    port,
    nowSec: NOW * 1_000,
  });
  return [
    changed(one, 'the right v1 second', 'ok', withHeader(`${time},${other},${signature}`)),
    changed(one, 'with a v0 besides', 'ok', withHeader(`${header},${v0}`)),
    changed(one, 'with a v0 only', 'missing_signature', withHeader(`${time},${v0}`)),
    changed(one, 'two times', 'malformed_signature', withHeader(`${header},${time}`)),
    changed(one, 'no time', 'malformed_signature', withHeader(signature)),
    changed(one, 'another time', 'bad_signature', withHeader(`t=${NOW + 1},${signature}`)),
    changed(one, 'a signed time in milliseconds', 'malformed_signature', withHeaders(one, { ...ms })),
    changed(one, 'a space after the comma', 'malformed_signature', withHeader(header.replace(',', ', '))),
  ];
}

function ofSchemes(valid: readonly Case[]): Case[] {
  const one = valid.find(({ provider }) => provider === 'hmac');
  if (one === undefined) return [];
  const { scheme: _, ...without } = one;
  const unsafe: Scheme = { ...SCHEME, signed: '{id}:{timestamp}' };
  return [
    changed(without, 'no scheme', 'no_secret', {}),
    changed(one, 'a scheme that signs nothing of the body', 'no_secret', { scheme: unsafe }),
    changed(one, 'another id', 'bad_signature', withHeaders(one, { 'x-acme-id': 'evt_other' })),
  ];
}

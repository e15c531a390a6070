// The vendors' own libraries as judges: they verify what we sign, we verify what they sign, and where a random piece of the
// request is spoiled both give the same verdict.

import assert from 'node:assert/strict';
import { parse, stringify } from 'node:querystring';
import { after, before, mock, test } from 'node:test';
import { sign as githubSign, verify as githubVerify } from '@octokit/webhooks-methods';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import twilio from 'twilio';
import { getExpectedTwilioSignature } from 'twilio/lib/webhooks/webhooks.js';
import type { SignedRequest } from '#core/webhook/provider.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { NOW } from './cases.ts';

const RUNS = { numRuns: 1_000 };
const TOLERANCE_SEC = 300;

// standardwebhooks asks Date itself.
before(() => mock.timers.enable({ apis: ['Date'], now: NOW * 1_000 }));
after(() => mock.timers.reset());

/** Any text; no lone surrogates, which no UTF-8 body can hold. */
const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 80 });
/** Something a person would type, because some libraries trim or refuse blank secrets. */
const secret = fc.stringMatching(/^[\x21-\x7e]{1,40}$/);
/** Where a character is changed, and to what; or nowhere. */
const spoiling = fc.option(
  fc.record({
    part: fc.constantFrom('body', 'signature', 'secret'),
    at: fc.nat(),
    to: fc.stringMatching(/^[0-9a-zA-Z+/]$/),
  }),
);
type Spoiling = { part: string; at: number; to: string } | null;

function spoil(value: string, part: string, spoiled: Spoiling): string {
  if (spoiled?.part !== part) return value;
  const letters = [...value];
  letters[spoiled.at % letters.length] = spoiled.to;
  return letters.join('');
}

function request(body: string, headers: SignedRequest['headers'], url = ''): SignedRequest {
  return { method: 'POST', url, headers, body: Buffer.from(body) };
}

async function weAccept(name: string, asked: SignedRequest, key: string): Promise<boolean> {
  const verification = await providerNamed(name)?.verify(asked, [key], { port: nodeHmac, nowSec: NOW });
  return verification?.ok === true;
}

async function weSign(
  name: string,
  asked: SignedRequest,
  key: string,
  nowSec = NOW,
): Promise<Record<string, string>> {
  return (await providerNamed(name)?.sign(asked, key, { port: nodeHmac, nowSec })) ?? {};
}

async function succeeds(work: () => unknown): Promise<boolean> {
  try {
    return (await work()) !== false;
  } catch {
    return false;
  }
}

test('stripe agrees on 1,000 cases, but for times in the future, which it takes', async () => {
  const { webhooks } = Stripe;
  const takes = (body: string, header: string, key: string) =>
    succeeds(() =>
      webhooks.signature?.verifyHeader(body, header, key, TOLERANCE_SEC, undefined as never, NOW * 1_000),
    );
  const age = fc.oneof(fc.constant(0), fc.integer({ min: -600, max: 600 }));
  let futures = 0;
  await fc.assert(
    fc.asyncProperty(text, secret, spoiling, age, async (body, key, spoiled, ageSec) => {
      const timestamp = NOW - ageSec;
      const theirs = webhooks.generateTestHeaderString({ payload: body, secret: key, timestamp });
      const ours = (await weSign('stripe', request(body, {}), key, timestamp))['stripe-signature'];
      assert.equal(ours, theirs);
      const [time = '', signature = ''] = theirs.split('v1=');
      const header = `${time}v1=${spoil(signature, 'signature', spoiled)}`;
      const [sentBody, usedKey] = [spoil(body, 'body', spoiled), spoil(key, 'secret', spoiled)];
      const their = await takes(sentBody, header, usedKey);
      const our = await weAccept('stripe', request(sentBody, { 'stripe-signature': header }), usedKey);
      if (ageSec >= -TOLERANCE_SEC) return assert.equal(our, their);
      futures++;
      assert.equal(our, false);
    }),
    RUNS,
  );
  assert.ok(futures > 0);
});

test('octokit agrees on 1,000 cases of GitHub', async () => {
  await fc.assert(
    fc.asyncProperty(text, secret, spoiling, async (body, key, spoiled) => {
      const theirs = await githubSign(key, body);
      assert.deepEqual(await weSign('github', request(body, {}), key), { 'x-hub-signature-256': theirs });
      const header = `sha256=${spoil(theirs.slice('sha256='.length), 'signature', spoiled)}`;
      const [sentBody, usedKey] = [spoil(body, 'body', spoiled), spoil(key, 'secret', spoiled)];
      const their = await githubVerify(usedKey, sentBody, header);
      assert.equal(
        await weAccept('github', request(sentBody, { 'x-hub-signature-256': header }), usedKey),
        their,
      );
    }),
    RUNS,
  );
});

test('standardwebhooks agrees on 1,000 cases, on both sides of now', async () => {
  const keys = fc
    .uint8Array({ minLength: 1, maxLength: 48 })
    .map((bytes) => Buffer.from(bytes).toString('base64'));
  const ids = fc.stringMatching(/^[\x21-\x7e]{1,30}$/);
  const age = fc.oneof(fc.constant(0), fc.integer({ min: -600, max: 600 }));
  await fc.assert(
    fc.asyncProperty(text, keys, ids, spoiling, age, async (body, key, id, spoiled, ageSec) => {
      const theirs = new Webhook(key).sign(id, new Date((NOW - ageSec) * 1_000), body);
      const sentBody = spoil(body, 'body', spoiled);
      const signature = spoil(theirs.slice('v1,'.length), 'signature', spoiled);
      const headers = {
        'webhook-id': spoil(id, 'secret', spoiled),
        'webhook-timestamp': String(NOW - ageSec),
        'webhook-signature': `v1,${signature}`,
      };
      const their = await succeeds(() => new Webhook(key).verify(sentBody, headers, { jsonParse: false }));
      assert.equal(await weAccept('standard', request(sentBody, headers), `whsec_${key}`), their);
      const ours = await weSign('standard', request(body, {}), key);
      assert.ok(await succeeds(() => new Webhook(key).verify(body, ours, { jsonParse: false })));
    }),
    RUNS,
  );
});

const scheme = fc.constantFrom('http://', 'https://');
const host = fc.constantFrom('example.com', 'Example.COM', 'user:pw@example.com', '[::1]', '10.0.0.1');
const port = fc.constantFrom('', ':80', ':443', ':1234');
const path = fc.constantFrom('', '/', '/hook', "/it's", '/a%20b', '/ü');
const query = fc.constantFrom(
  '',
  '?',
  '?a=1&b=2',
  "?q=it's",
  '?a=%27x%27&a=2&b',
  '?x=a+b&y=%zz',
  '?=1&&c=ü',
  '?m=(1)*!~',
);
const url = fc.tuple(scheme, host, port, path, query).map((parts) => parts.join(''));
const fields = fc.dictionary(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 10 }).filter((name) => name !== '__proto__'),
  fc.oneof(
    fc.string({ unit: 'binary', maxLength: 10 }),
    fc.array(fc.string({ maxLength: 3 }), { minLength: 1, maxLength: 3 }),
  ),
  { maxKeys: 5 },
);

function formOf(params: Record<string, string | string[]>): string {
  const pairs = Object.entries(params).flatMap(([name, value]) => [value].flat().map((item) => [name, item]));
  return new URLSearchParams(pairs as [string, string][]).toString();
}

/** How else one address is written: by a URL parser, with the query read and written again, with and without a port. */
function spellingsOf(address: string): string[] {
  const { href } = new URL(address);
  const at = href.indexOf('?');
  const rewritten = at < 0 ? href : `${href.slice(0, at)}?${stringify(parse(href.slice(at + 1)))}`;
  const withoutPort = address.replace(/:(80|443|1234)(?=[/?]|$)/, '');
  const withPort = rewritten.replace(/^(https?:\/\/[^/?]*[^/?\d])(?=[/?]|$)/, '$1:443');
  return [address, href, rewritten, withoutPort, withPort];
}

test('twilio agrees on 1,000 forms, in every spelling of the address', async () => {
  let otherwise = 0;
  await fc.assert(
    fc.asyncProperty(
      url,
      fc.nat(4),
      fields,
      secret,
      spoiling,
      async (seen, spelling, params, key, spoiled) => {
        const signed = spellingsOf(seen)[spelling] ?? seen;
        const ours = (await weSign('twilio', request(formOf(params), {}, signed), key))['x-twilio-signature'];
        assert.equal(ours, getExpectedTwilioSignature(key, signed, params));
        const signature = spoil(ours ?? '', 'signature', spoiled);
        const usedKey = spoil(key, 'secret', spoiled);
        const sent = spoiled?.part === 'body' ? { ...params, Digits: spoiled.to } : params;
        const their = await succeeds(() => twilio.validateRequest(usedKey, signature, seen, sent));
        const asked = request(formOf(sent), { 'x-twilio-signature': signature }, seen);
        assert.equal(await weAccept('twilio', asked, usedKey), their, `${seen} signed as ${signed}`);
        if (their && seen !== signed) otherwise++;
      },
    ),
    RUNS,
  );
  assert.ok(otherwise > 50, `${otherwise} were signed in another spelling`);
});

test('twilio agrees on 1,000 JSON bodies', async () => {
  await fc.assert(
    fc.asyncProperty(text, secret, spoiling, async (body, key, spoiled) => {
      const hash = Buffer.from(await nodeHmac.sha256(Buffer.from(body))).toString('hex');
      const address = `https://example.com/hook?foo=1&bodySHA256=${hash}`;
      const ours = (await weSign('twilio', request(body, {}, address), key))['x-twilio-signature'] ?? '';
      const signature = spoil(ours, 'signature', spoiled);
      const [sentBody, usedKey] = [spoil(body, 'body', spoiled), spoil(key, 'secret', spoiled)];
      const their = twilio.validateRequestWithBody(usedKey, signature, address, sentBody);
      const asked = request(sentBody, { 'x-twilio-signature': signature }, address);
      assert.equal(await weAccept('twilio', asked, usedKey), their);
      assert.ok(spoiled !== null || their);
    }),
    RUNS,
  );
});

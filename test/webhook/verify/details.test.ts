// The sentences that an operator reads when a signature was refused: each says which of the many things was wrong.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JsonError } from '#core/json.ts';
import { utf8 } from '#core/webhook/bytes.ts';
import type { SignedRequest, Verification } from '#core/webhook/provider.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { readScheme } from '#core/webhook/scheme.ts';
import { type Claimed, Refused, verifyClaim } from '#core/webhook/signature.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { NOW } from './cases.ts';

const BODY = utf8('{"id":"evt_1"}');
const HEX = '0'.repeat(64);
const BASE64 = `${'A'.repeat(43)}=`;
const CONTEXT = { port: nodeHmac, nowSec: NOW };

async function refusalOf(
  provider: string,
  headers: SignedRequest['headers'],
  secrets: readonly string[] = ['secret'],
  url = 'https://shop.example/',
): Promise<string> {
  const request = { method: 'POST', url, headers, body: BODY };
  return spelled(await providerNamed(provider)?.verify(request, secrets, CONTEXT));
}

function spelled(verification: Verification | undefined): string {
  assert.ok(verification);
  return verification.ok ? 'ok' : `${verification.reason}: ${verification.detail}`;
}

const CASES: [provider: string, headers: SignedRequest['headers'], expected: string][] = [
  ['stripe', {}, 'missing_signature: the header stripe-signature is missing'],
  ['stripe', { 'stripe-signature': '' }, 'missing_signature: the header stripe-signature is missing'],
  [
    'stripe',
    { 'stripe-signature': ['a', 'b'] },
    'malformed_signature: the header stripe-signature came more than once',
  ],
  ['stripe', { 'stripe-signature': 't' }, 'malformed_signature: the header is not a list of name=value'],
  [
    'stripe',
    { 'stripe-signature': `t=${NOW},v1=${HEX}=` },
    'malformed_signature: the header is not a list of name=value',
  ],
  ['stripe', { 'stripe-signature': `t=1,t=2,v1=${HEX}` }, 'malformed_signature: there are two timestamps'],
  ['stripe', { 'stripe-signature': `v1=${HEX}` }, 'malformed_signature: the header has no timestamp t='],
  [
    'stripe',
    { 'stripe-signature': `t=${NOW},v0=${HEX}` },
    'missing_signature: the header has no signature v1=',
  ],
  [
    'stripe',
    { 'stripe-signature': `t=${NOW},v1=00` },
    'malformed_signature: the signature is not in its canonical spelling',
  ],
  [
    'stripe',
    { 'stripe-signature': `t=soon,v1=${HEX}` },
    'malformed_signature: the timestamp is not a plain number of whole seconds',
  ],
  [
    'stripe',
    { 'stripe-signature': `t=${NOW},v1=${HEX},v1=${HEX}` },
    'bad_signature: none of 2 signatures fits any of 1 secrets',
  ],
  [
    'github',
    { 'x-hub-signature-256': HEX },
    'malformed_signature: the signature does not begin with sha256=',
  ],
  [
    'standard',
    { 'webhook-signature': `v1${BASE64}` },
    'malformed_signature: the header is not a list of version,signature',
  ],
  [
    'standard',
    { 'webhook-signature': `x v1,${BASE64}` },
    'malformed_signature: the header is not a list of version,signature',
  ],
  [
    'standard',
    { 'webhook-signature': `my-v1,${BASE64}` },
    'malformed_signature: the header is not a list of version,signature',
  ],
  [
    'standard',
    { 'webhook-signature': `v1,${BASE64}\n` },
    'malformed_signature: the header is not a list of version,signature',
  ],
  ['standard', { 'webhook-signature': 'v1a,x v2,y' }, 'missing_signature: the header has no signature v1'],
  [
    'standard',
    { 'webhook-signature': `v1,${BASE64}` },
    'missing_signature: the header webhook-id is missing',
  ],
  ['standard', { 'svix-signature': `v1,${BASE64}` }, 'missing_signature: the header svix-id is missing'],
  [
    'standard',
    { 'svix-signature': `v1,${BASE64}`, 'webhook-signature': `v1,${BASE64}` },
    'missing_signature: the header webhook-id is missing',
  ],
  ['standard', {}, 'missing_signature: the header webhook-signature is missing'],
];

describe('a refusal says what is wrong', () => {
  for (const [provider, headers, expected] of CASES)
    it(`${provider}: ${expected} (${JSON.stringify(headers).slice(0, 40)})`, async () =>
      assert.equal(await refusalOf(provider, headers), expected));

  it('counts the secrets that can be keys, and says where there is none', async () => {
    const headers = { 'x-webhook-signature': BASE64, 'x-webhook-timestamp': String(NOW) };
    assert.equal(
      await refusalOf('daily', headers, ['not base64!', 'AAAA', '', 'BBBB']),
      'bad_signature: none of 1 signatures fits any of 2 secrets',
    );
    for (const secrets of [[], [''], ['not base64!']])
      assert.equal(await refusalOf('daily', headers, secrets), 'no_secret: no usable secret is configured');
  });

  it('says how old a signature is, or how far ahead, and what is allowed', async () => {
    for (const [atSec, where] of [
      [NOW - 301, '301 s old'],
      [NOW + 301, '301 s in the future'],
    ] as const) {
      const signed = await providerNamed('stripe')?.sign({ method: 'POST', url: '', body: BODY }, 'secret', {
        ...CONTEXT,
        nowSec: atSec,
      });
      assert.equal(
        await refusalOf('stripe', signed ?? {}),
        `stale: the timestamp is ${where}; 300 s are allowed on both sides`,
      );
    }
  });

  it('of Twilio says that the body is another than the signed one, also where its hash cannot be read', async () => {
    for (const hash of ['00', 'not hex', HEX]) {
      const url = `https://shop.example/?bodySHA256=${encodeURIComponent(hash)}`;
      const headers = await providerNamed('twilio')?.sign(
        { method: 'POST', url, body: BODY },
        'secret',
        CONTEXT,
      );
      assert.equal(
        await refusalOf('twilio', headers ?? {}, ['secret'], url),
        'body_hash_mismatch: the address is signed, but its bodySHA256 is not the hash of this body',
      );
    }
  });

  it('of the provider with a scheme of its own says what is wrong with it', async () => {
    assert.equal(
      await refusalOf('hmac', {}),
      'no_secret: no usable signature scheme: the endpoint has none.',
    );
    const hmac = providerNamed('hmac');
    const scheme = { ...readScheme({ header: 'x-sig', id: '/id' }), signed: '' };
    const request = { method: 'POST', url: '', headers: {}, body: BODY };
    assert.match(
      spelled(await hmac?.verify(request, ['s'], { ...CONTEXT, scheme })),
      /^no_secret: no usable signature scheme: .*signed must hold \{body\}/,
    );
  });
});

describe('a claim', () => {
  const claimed: Claimed = { hash: 'SHA-256', signatures: [], messages: [] };
  const verify = (read: () => Claimed) => verifyClaim(read, ['secret'], utf8, CONTEXT);

  it('that cannot be read for another reason is not refused but throws', async () => {
    await assert.rejects(
      verify(() => {
        throw new JsonError('syntax', 0);
      }),
      JsonError,
    );
    assert.equal(new Refused('stale', 'why').name, 'Refused');
    assert.equal(
      spelled(
        await verify(() => {
          throw new Refused('stale', 'why');
        }),
      ),
      'stale: why',
    );
  });

  it('without a signature fits nothing', async () => {
    assert.equal(
      spelled(await verify(() => claimed)),
      'bad_signature: none of 0 signatures fits any of 1 secrets',
    );
  });
});

describe('signing', () => {
  it('refuses a secret that is not a key for the provider', async () => {
    const asked = { method: 'POST', url: '', body: BODY };
    const scheme = readScheme({ header: 'x-sig', id: '/id', secret_encoding: 'hex' });
    for (const [provider, message] of [
      ['daily', 'the secret is not base64'],
      ['standard', 'the secret is not base64'],
      ['hmac', 'the secret is not hex'],
    ] as const)
      await assert.rejects(
        async () => providerNamed(provider)?.sign(asked, 'no key!', { ...CONTEXT, scheme }),
        {
          name: 'TypeError',
          message,
        },
      );
  });
});

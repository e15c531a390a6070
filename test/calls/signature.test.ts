import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  hashOfSignature,
  refusalOfCall,
  SIGNATURE_HEADER,
  SITE_HEADER,
  signCall,
  TIMESTAMP_HEADER,
} from '#core/calls/signature.ts';
import { webHmac } from '#core/webhook/hmac.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';

// Made with openssl: printf '%s' 'site-1.1771927200.{"kind":"ring"}' | openssl dgst -sha256 -hmac 'top-secret'
const VECTOR = {
  call: { site: 'site-1', timestamp: '1771927200', body: new TextEncoder().encode('{"kind":"ring"}') },
  secret: 'top-secret',
  signature: '5197c4f8eda0dac21aa1c8113812fd0518c609eaf1fa95c64b98a7a0e562ce56',
  hash: 'd54dba140986bba167c06f46de48a7418b3c42fd3cc7c05a8b449657d1e244e5',
};
const NOW_SEC = 1_771_927_200;

for (const [runtime, port] of Object.entries({ 'node:crypto': nodeHmac, WebCrypto: webHmac })) {
  describe(`a signature by ${runtime}`, () => {
    const { call, secret, signature, hash } = VECTOR;
    const refusal = (
      change: Partial<typeof call> = {},
      given = signature,
      nowSec = NOW_SEC,
      secrets = [secret],
    ) => refusalOfCall({ ...call, ...change }, given, secrets, port, nowSec);

    it('is what openssl makes of site, timestamp and body', async () => {
      assert.equal(await signCall(call, secret, port), signature);
      assert.equal(await hashOfSignature(signature, port), hash);
      assert.equal(await refusal(), undefined);
    });

    it('is good from 300 s before to 300 s after its timestamp', async () => {
      for (const off of [-300, 300]) assert.equal(await refusal({}, signature, NOW_SEC + off), undefined);
      for (const off of [-301, 301]) assert.equal(await refusal({}, signature, NOW_SEC + off), 'stale');
    });

    it('is good with any of the secrets, and with no other', async () => {
      assert.equal(await refusal({}, signature, NOW_SEC, ['new', secret]), undefined);
      assert.equal(await refusal({}, signature, NOW_SEC, ['new', 'newer']), 'bad_signature');
      assert.equal(await refusal({}, signature, NOW_SEC, []), 'bad_signature');
    });

    it('is refused with any bit of the body, the site or the timestamp flipped', async () => {
      for (let bit = 0; bit < call.body.length * 8; bit++) {
        const body = call.body.slice();
        body[bit >> 3] = (body[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        assert.equal(await refusal({ body }), 'bad_signature');
      }
      assert.equal(await refusal({ site: 'site-2' }), 'bad_signature');
      assert.equal(await refusal({ timestamp: '1771927201' }), 'bad_signature');
    });

    it('is refused with any other digit in it', async () => {
      for (let at = 0; at < signature.length; at++) {
        const other = signature[at] === '0' ? '1' : '0';
        const changed = signature.slice(0, at) + other + signature.slice(at + 1);
        assert.equal(await refusal({}, changed), 'bad_signature');
      }
    });

    it('has one spelling', async () => {
      const spellings = [
        signature.toUpperCase(),
        ` ${signature}`,
        `${signature}\n`,
        `${signature}, ${signature}`,
      ];
      for (const given of [...spellings, signature.slice(1), `0${signature}`, ''])
        assert.equal(await refusal({}, given), 'malformed_signature');
    });

    it('stands over a timestamp in whole seconds', async () => {
      for (const timestamp of ['1771927200000', '1771927200.5', ' 1771927200', '01771927200', '1e9', ''])
        assert.equal(await refusal({ timestamp }), 'malformed_timestamp');
    });
  });
}

it('travels in the headers that docs/ops/call_events.md names', () => {
  assert.deepEqual(
    [SITE_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER],
    ['x-ops-site', 'x-ops-timestamp', 'x-ops-signature'],
  );
});

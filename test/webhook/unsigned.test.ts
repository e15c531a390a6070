import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maySign } from '#core/unsigned.ts';
import type { Scheme } from '#core/webhook/provider.ts';
import { PROVIDER_NAMES, providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';

const SECRET = Buffer.alloc(32, 7).toString('base64');
const ORDINARY = {
  host: 'tickets.example.com',
  'content-type': 'application/json',
  'user-agent': 'curl/8',
  authorization: 'Bearer x',
};
const SCHEME: Scheme = {
  header: 'x-seal',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  timestamp_header: null,
  signed: '{body}',
  id: '/id',
  type: null,
  tolerance_sec: 300,
  secret_encoding: 'utf8',
};

describe('a delivery may be signed', () => {
  for (const name of PROVIDER_NAMES)
    it(`where it has the headers of ${name}`, async () => {
      const scheme = name === 'hmac' ? SCHEME : undefined;
      const request = {
        method: 'POST',
        url: 'https://tickets.example.com/webhooks/x',
        body: Buffer.from('{}'),
      };
      const context = { port: nodeHmac, nowSec: 1, ...(scheme && { scheme }) };
      const headers = await providerNamed(name)?.sign(request, SECRET, context);
      assert.equal(maySign({ ...ORDINARY, ...headers }, scheme?.header), true);
      assert.equal(maySign(ORDINARY, scheme?.header), false);
    });

  it('by the header that the endpoint names, and by no other', () => {
    assert.equal(maySign({ ...ORDINARY, 'stripe-signature': 't=1' }, 'x-seal'), false);
  });
});

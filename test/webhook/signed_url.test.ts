import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Endpoint } from '#core/webhook/ports.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { signedUrl, type WebhookRequest } from '#core/webhook/signed_url.ts';

function urlOf(host: string, query = '', publicUrl: string | null = null, provider = 'twilio'): string {
  const headers = { host, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'forwarded.example' };
  const request = { headers, path: '/webhooks/t', query } as unknown as WebhookRequest;
  const found = providerNamed(provider);
  assert.ok(found);
  return signedUrl(request, { public_url: publicUrl } as Endpoint, found);
}

describe('the address that a provider signed', () => {
  for (const host of ['127.0.0.1', '127.0.0.1:8080', 'localhost', 'localhost:1', '[::1]', '[::1]:8080'])
    it(`is as requested on ${host}, whatever a proxy is said to have done`, () =>
      assert.equal(urlOf(host, 'a=1&&b'), `http://${host}/webhooks/t?a=1&&b`));

  for (const host of [
    'shop.example',
    'localhost.shop.example',
    'not-localhost',
    'shop.localhost:8080',
    '127.0.0.1.nip.io',
    '1127.0.0.1',
    'localhost:1@x',
    '',
    '10.0.0.1',
  ])
    it(`has to be set for ${host || 'no host'}`, () =>
      assert.throws(() => urlOf(host), { name: 'HttpError', hint: /^no_public_url/ }));

  it('has to be set where the host came more than once', () =>
    assert.throws(() => urlOf(['localhost'] as unknown as string), { hint: /^no_public_url/ }));

  it('does not matter to a provider that does not sign it', () =>
    assert.equal(urlOf('shop.example', '', null, 'stripe'), 'http://shop.example/webhooks/t'));

  it('is the public one, with the query of the request', () => {
    const url = 'https://shop.example/hook';
    assert.equal(urlOf('x', '', url), url);
    assert.equal(urlOf('x', 'bodySHA256=ab', url), `${url}?bodySHA256=ab`);
  });

  it('keeps the query of the public one, and adds what Twilio has added', () => {
    const url = 'https://shop.example/hook?shop=1';
    assert.equal(urlOf('x', '', url), url);
    assert.equal(urlOf('x', 'shop=1', url), url);
    assert.equal(urlOf('x', 'shop=1&bodySHA256=ab', url), `${url}&bodySHA256=ab`);
    assert.equal(urlOf('x', 'shop=2', url), `${url}&shop=2`);
  });

  it('knows a pair of its query in every spelling', () => {
    const url = "https://shop.example/hook?name=O'Brien";
    for (const query of ['name=O%27Brien', "name=O'Brien", 'name=%4F%27Brien'])
      assert.equal(urlOf('x', query, url), url, query);
    assert.equal(urlOf('x', 'name=O%27Brien&bodySHA256=ab', url), `${url}&bodySHA256=ab`);
    assert.equal(
      urlOf('x', 'name=a+b', 'https://shop.example/?name=a%20b'),
      'https://shop.example/?name=a%20b',
    );
  });
});

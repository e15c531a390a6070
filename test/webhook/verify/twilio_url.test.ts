import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bodyHashIn, signedUrls } from '#core/webhook/providers/twilio_url.ts';

const SPELLINGS: [what: string, url: string, expected: string[]][] = [
  ['https', 'https://shop.example/hook', ['https://shop.example/hook', 'https://shop.example:443/hook']],
  ['http', 'http://shop.example/hook', ['http://shop.example/hook', 'http://shop.example:80/hook']],
  [
    'a port of its own',
    'https://shop.example:8443/hook',
    ['https://shop.example/hook', 'https://shop.example:8443/hook'],
  ],
  [
    'a user and a password',
    'https://ann:pass@shop.example/hook',
    ['https://ann:pass@shop.example/hook', 'https://ann:pass@shop.example:443/hook'],
  ],
  [
    'an IPv6 address',
    'http://[2001:db8::1]/hook',
    ['http://[2001:db8::1]/hook', 'http://[2001:db8::1]:80/hook'],
  ],
  [
    'an IPv6 address and a port',
    'http://[2001:db8::1]:8080/hook',
    ['http://[2001:db8::1]/hook', 'http://[2001:db8::1]:8080/hook'],
  ],
  [
    'capitals, which a parser makes small',
    'HTTPS://Shop.example/Hook',
    [
      'HTTPS://Shop.example/Hook',
      'HTTPS://Shop.example:443/Hook',
      'https://shop.example/Hook',
      'https://shop.example:443/Hook',
    ],
  ],
  [
    'a query that was escaped in two ways, and a name with two values',
    'https://shop.example/hook?a=b+c&d=(e)&a=f%2Fg',
    [
      'https://shop.example/hook?a=b+c&d=(e)&a=f%2Fg',
      'https://shop.example:443/hook?a=b+c&d=(e)&a=f%2Fg',
      'https://shop.example/hook?a=b%20c&a=f%2Fg&d=(e)',
      'https://shop.example:443/hook?a=b%20c&a=f%2Fg&d=(e)',
    ],
  ],
  [
    'an empty query',
    'http://shop.example/hook?',
    ['http://shop.example/hook?', 'http://shop.example:80/hook?'],
  ],
  ['no address at all', 'see https://shop.example/hook', ['see https://shop.example/hook']],
];

describe('the spellings of an address that Twilio may have signed', () => {
  for (const [what, url, expected] of SPELLINGS)
    it(`with ${what}`, () => assert.deepEqual(signedUrls(url), expected));
});

describe('the hash of a JSON body', () => {
  it('stands in the query, wherever in it', () => {
    assert.equal(bodyHashIn('https://a.example/?bodySHA256=0af'), '0af');
    assert.equal(bodyHashIn('https://a.example/?x=1&bodySHA256=0af&y=2'), '0af');
    assert.equal(bodyHashIn('https://a.example/?bodySHA256=0af#end'), '0af');
    assert.equal(bodyHashIn('https://a.example/?bodySHA256='), '');
  });

  it('is not found in other names, nor outside of the query', () => {
    for (const url of [
      'https://a.example/',
      'https://a.example/?mybodySHA256=0af',
      'https://a.example/bodySHA256=0af',
    ])
      assert.equal(bodyHashIn(url), undefined, url);
  });
});

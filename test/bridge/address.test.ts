// Each block of addresses that a hook may not have, to its very edges.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRefusedAddress, refusalOfUrl } from '#core/bridge/address.ts';

/** The first and the last address of a block, and its public neighbours, where it has any. */
const BLOCKS: [first: string, last: string, before?: string | undefined, after?: string][] = [
  ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['168.63.129.16', '168.63.129.16', '168.63.129.15', '168.63.129.17'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255'],
  // IPv6: all but 2000::/3, and of it documentation, Teredo and its neighbours.
  ['::', '::ffff:ffff'],
  ['1fff:ffff::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined, '2000::'],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', '2000:ffff::1', '2001:200::'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db7::1', '2001:db9::'],
  ['3fff::', '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '3ffe:ffff::1'],
  ['64:ff9b::', '64:ff9b:ffff:ffff:ffff:ffff:ffff:ffff'],
  // IPv4 inside of IPv6, public or not: mapped, and 6to4.
  ['::ffff:1.1.1.1', '::ffff:255.255.255.255'],
  ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:ffff::1', '2003::'],
];

describe('an address that a hook may not have', () => {
  for (const [first, last, ...neighbours] of BLOCKS)
    it(`lies between ${first} and ${last}, and not beside`, () => {
      assert.deepEqual([first, last].map(isRefusedAddress), [true, true]);
      for (const one of neighbours) if (one !== undefined) assert.equal(isRefusedAddress(one), false, one);
    });

  for (const text of [
    '1.1.1',
    '1.1.1.1.1',
    '1.1.1.256',
    '01.1.1.1',
    '1.1.1.1a',
    'x1.1.1.1',
    '1.1.1.',
    '2a00::1::1',
    '2a00:1:1:1:1:1:1',
    '2a00:1:1:1:1:1:1:1:1',
    '2a00:1:1:1:1:1:1:1::',
    '2a00::12345',
    '2a00::g',
    '2a00::1.1.1.256',
    '2a00::1.1.1',
  ])
    it(`is any text that is not an address: ${text}`, () => assert.equal(isRefusedAddress(text), true));

  it('is told from public ones, however these are written', () => {
    for (const text of [
      '1.1.1.1',
      '2a00::1',
      '2A00:1:1:1:1:1:1:1',
      '2a00::',
      '2a00::1.1.1.1',
      '2a00::1%eth0',
    ])
      assert.equal(isRefusedAddress(text), false, text);
  });
});

describe('a URL that cannot be a hook', () => {
  for (const [url, reason] of [
    ['no url', 'not a URL'],
    ['ftp://shop.example/', 'not http or https'],
    ['https://ann@shop.example/', 'has credentials in it'],
    ['https://:pass@shop.example/', 'has credentials in it'],
    ['http://10.0.0.1/', 'a private or special address'],
    ['http://[::1]:8080/', 'a private or special address'],
    ['http://10.0.0.1./', 'a private or special address'],
    ['http://intranet/', 'a local name'],
    ['http://intranet./', 'a local name'],
    ['http://db.internal/', 'a local name'],
    ['http://printer.local/', 'a local name'],
    ['http://x.localhost/', 'a local name'],
    ['http://x.home.arpa/', 'a local name'],
  ] as const)
    it(`${url} is ${reason}`, () => assert.equal(refusalOfUrl(url, new Set()), reason));

  for (const url of [
    'http://shop.example/',
    'https://shop.example:8443/x',
    'http://local.example./',
    'http://1.1.1.1/',
  ])
    it(`is not ${url}`, () => assert.equal(refusalOfUrl(url, new Set()), undefined));

  it('may be allowed by name or by name and port, never with credentials', () => {
    assert.equal(refusalOfUrl('http://intranet:81/', new Set(['intranet'])), undefined);
    assert.equal(refusalOfUrl('http://intranet:81/', new Set(['intranet:81'])), undefined);
    assert.equal(refusalOfUrl('http://intranet:82/', new Set(['intranet:81'])), 'a local name');
    assert.equal(refusalOfUrl('http://a@intranet/', new Set(['intranet'])), 'has credentials in it');
  });
});

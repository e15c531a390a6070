import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addressOf, isLoopback, parseAddress, textOf } from '../../src/server/addresses.ts';

const shown = (text: string): string | undefined => {
  const network = parseAddress(text);
  return network && textOf(network);
};
const from = (peer: string | undefined, forwarded?: string, trustedProxies = 0) =>
  addressOf({ peer, headers: { 'x-forwarded-for': forwarded } }, { trustedProxies });

describe('an address', () => {
  const SPELLINGS: Record<string, readonly string[]> = {
    '203.0.113.7': [
      '203.0.113.7',
      '203.0.113.7:5678',
      '::ffff:203.0.113.7',
      '::FFFF:203.0.113.7',
      '::ffff:cb00:7107',
      '0:0:0:0:0:ffff:203.0.113.7',
      '[::ffff:203.0.113.7]:443',
    ],
    '255.255.255.255': ['255.255.255.255'],
    '2001:db8:1:2::/64': [
      '2001:db8:1:2::1',
      '2001:0DB8:0001:0002:ffff:ffff:ffff:ffff',
      '[2001:db8:1:2::1]',
      '[2001:db8:1:2::1]:443',
      '2001:db8:1:2:3:4:203.0.113.7',
      '2001:db8:1:2::%eth0',
    ],
    '2001:db8::/64': ['2001:db8::1', '2001:db8:0:0:1:2:3:4', '2001:db8::1:2'],
    '2001:0:0:1::/64': ['2001:0:0:1::', '2001::1:0:0:0:1'],
    '::/64': ['::1', '::', '[::1]:80'],
  };
  for (const [network, spellings] of Object.entries(SPELLINGS))
    it(`is ${network}, however it is spelled`, () => {
      for (const text of spellings) assert.equal(shown(text), network, text);
    });

  it('is nothing else', () => {
    const wrong = [
      ...[
        '',
        'unknown',
        '_hidden',
        '203.0.113',
        '203.0.113.7.1',
        '203.0.113.256',
        '203.0.113.07',
        '1.2.3.4:',
      ],
      ...[
        '1.2.3.4:999999',
        '-1.2.3.4',
        '0x7f.0.0.1',
        '1.2.3.4 ',
        ':',
        ':::',
        '1::2::3',
        '2001:db8',
        '[1.2.3.4',
      ],
      ...[
        '1:2:3:4:5:6:7:8:9',
        '1:2:3:4:5:6:7:8::',
        '2001:db8::g',
        '2001:db8::12345',
        '::1.2.3.4.5',
        '::1.2.3.4:1',
      ],
    ];
    for (const text of wrong) assert.equal(parseAddress(text), undefined, text);
  });

  it('is that of loopback for 127.0.0.0/8 and ::1 only', () => {
    const isLocal = (text: string) => isLoopback(parseAddress(text) ?? assert.fail(text));
    for (const text of ['127.0.0.1', '127.9.9.9', '::ffff:127.0.0.1', '::1']) assert.ok(isLocal(text), text);
    for (const text of ['128.0.0.1', '10.0.0.1', '2001:db8::1', '0.0.0.0', 'fe80::1'])
      assert.ok(!isLocal(text), text);
  });
});

describe("a request's address", () => {
  it("is the connection's where no proxy is declared, whatever the header says", () => {
    assert.equal(from('198.51.100.1', '203.0.113.7'), '198.51.100.1');
    assert.equal(from('::ffff:198.51.100.1', '203.0.113.7'), '198.51.100.1');
  });

  it('is what the declared proxies wrote, not what stands left of it', () => {
    const list = '1.1.1.1, 203.0.113.7 , 2001:db8:1:2::9';
    assert.equal(from('10.0.0.1', list, 1), '2001:db8:1:2::/64');
    assert.equal(from('10.0.0.1', list, 2), '203.0.113.7');
    assert.equal(from('10.0.0.1', '203.0.113.7:41234', 1), '203.0.113.7');
    assert.equal(from('10.0.0.1', `${'9.9.9.9,'.repeat(2_000)}203.0.113.7`, 1), '203.0.113.7');
  });

  it("is the proxy's where the proxy wrote no address, or fewer than there are proxies", () => {
    for (const list of [undefined, '', 'unknown', '203.0.113.7,', ','])
      assert.equal(from('10.0.0.1', list, 1), '10.0.0.1', String(list));
    assert.equal(from('10.0.0.1', '203.0.113.7', 2), '10.0.0.1');
  });

  it('is one for all whose address is not known', () => {
    assert.equal(from(undefined), '0.0.0.0');
    assert.equal(from(undefined), from('not an address'));
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { networkOf, WrongKeys } from '../../src/server/wrong_keys.ts';

describe('wrong keys', () => {
  it('bar the address they came from, for a second, and no other', () => {
    let now = 1_000;
    const keys = new WrongKeys(2, () => now);
    keys.add('192.0.2.1');
    assert.equal(keys.isBarred('192.0.2.1'), false);
    now += 999;
    keys.add('192.0.2.1');
    assert.equal(keys.isBarred('192.0.2.1'), true);
    assert.equal(keys.isBarred('192.0.2.2'), false);
    now += 1;
    assert.equal(keys.isBarred('192.0.2.1'), false);
  });

  it('take no more memory however many guess, and the latest are those remembered', () => {
    const keys = new WrongKeys(1, () => 1_000);
    keys.add('192.0.2.1');
    for (let guesser = 0; guesser < 12_000; guesser++) keys.add(`10.0.${guesser >> 8}.${guesser & 255}`);
    assert.equal(keys.size, 10_000);
    assert.equal(keys.isBarred('192.0.2.1'), false);
    assert.equal(keys.isBarred('10.0.46.200'), true);
  });

  it('count for the whole network of an IPv6 address', () => {
    const same = ['2001:db8::1', '2001:0DB8:0:0:ffff::2', '2001:db8:0:0:1:2:3:4', '2001:db8::%eth0'];
    for (const address of same) assert.equal(networkOf(address), '2001:db8:0:0');
    assert.equal(networkOf('2001:db8:0:1::1'), '2001:db8:0:1');
    assert.equal(networkOf('::1'), '0:0:0:0');
    assert.equal(networkOf('::ffff:192.0.2.7'), '192.0.2.7');
    assert.equal(networkOf('unknown'), 'unknown');
  });
});

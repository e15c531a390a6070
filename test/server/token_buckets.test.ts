import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NO_METRICS } from '#core/ports.ts';
import { AddressLimits } from '../../src/server/address_limits.ts';
import type { Network } from '../../src/server/addresses.ts';
import { TokenBuckets } from '../../src/server/token_buckets.ts';
import { memoryLog } from '../core/support.ts';

const MB = 1024 * 1024;
const MILLION = 1_000_000;
const RATE = { burst: 3, perSec: 2 };
const network = (number: number): Network => ({ high: 0xffff_ffff, low: number });
const ANN = network(1);

describe('token buckets', () => {
  it('let a burst through, then one token for each that comes back, and say how long to wait', () => {
    let now = 1_000;
    const buckets = new TokenBuckets(RATE, 8, () => now);
    assert.deepEqual([buckets.take(ANN), buckets.take(ANN), buckets.take(ANN)], [0, 0, 0]);
    assert.equal(buckets.take(ANN), 500);
    now += 499;
    assert.equal(buckets.take(ANN), 1);
    now += 1;
    assert.deepEqual([buckets.wait(ANN), buckets.take(ANN), buckets.wait(ANN)], [0, 0, 500]);
    now += 1_500;
    assert.deepEqual([buckets.take(ANN), buckets.take(ANN), buckets.take(ANN)], [0, 0, 0], 'full again');
    assert.ok(buckets.take(ANN) > 0, 'and no fuller, however long it was left alone');
  });

  it('are one for each network, by all 64 bits', () => {
    const buckets = new TokenBuckets({ burst: 1, perSec: 1 }, 2 ** 10, () => 1);
    for (const high of [0, 1, 0x2001_0db8, 0xffff_ffff])
      for (const low of [0, 1, 0x8000_0000, 0xffff_ffff]) {
        assert.equal(buckets.take({ high, low }), 0, `${high} ${low}`);
        assert.ok(buckets.take({ high, low }) > 0, `${high} ${low}`);
      }
  });

  it('forget the fullest of a set first, so that a flood of new networks frees no network that has used up its own', () => {
    const buckets = new TokenBuckets(RATE, 8, () => 1_000);
    while (buckets.take(ANN) === 0);
    for (let low = 2; low < 1_000; low++) assert.equal(buckets.take(network(low)), 0);
    assert.ok(buckets.take(ANN) > 0);
  });

  it('tell a million networks apart, in as many bytes as they were made with', () => {
    const { bytes } = new AddressLimits(
      {},
      { proxy: { trustedProxies: 0 }, metrics: NO_METRICS, log: memoryLog() },
    );
    assert.ok(bytes < 64 * MB, `${bytes} bytes for all limits of a server`);
    const buckets = new TokenBuckets({ burst: 1, perSec: 1 }, 2 ** 21, () => 1);
    const before = process.memoryUsage().arrayBuffers;
    for (let low = 0; low < MILLION; low++) buckets.take(network(low * 4_093));
    let known = 0;
    for (let low = 0; low < MILLION; low++) if (buckets.wait(network(low * 4_093)) > 0) known++;
    // A set of eight rarely gets a ninth when half of all places are taken.
    assert.ok(known > 0.99 * MILLION, `${known} of a million are known`);
    for (let low = 0; low < MILLION; low++) buckets.take({ high: low, low: 7 });
    assert.ok(process.memoryUsage().arrayBuffers - before < MB, 'two million take no more');
    assert.equal(buckets.bytes, 2 ** 21 * 16);
  });

  it('of a table that is too small forget some, which is what the one above would show', () => {
    const buckets = new TokenBuckets({ burst: 1, perSec: 1 }, 2 ** 10, () => 1);
    for (let low = 0; low < 10_000; low++) buckets.take(network(low));
    let known = 0;
    for (let low = 0; low < 10_000; low++) if (buckets.wait(network(low)) > 0) known++;
    assert.ok(known <= 2 ** 10, String(known));
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Metrics } from '#core/ports.ts';
import { AddressLimits } from '../../src/server/address_limits.ts';
import { OneAddressWatch } from '../../src/server/one_address.ts';
import { memoryLog } from '../core/support.ts';

const MINUTE_MS = 60_000;
const network = (low: number) => ({ high: 0xffff_ffff, low });

describe('one address that makes most claims', () => {
  /** How often it is told of, when claim number n comes from addressOf(n). */
  const toldOf = (claims: number, addressOf: (claim: number) => number): number => {
    const watch = new OneAddressWatch(() => 0);
    let told = 0;
    for (let claim = 0; claim < claims; claim++) if (watch.see(network(addressOf(claim)))) told++;
    return told;
  };

  it('is told of once, as soon as a hundred claims were made', () => {
    assert.equal(
      toldOf(99, () => 7),
      0,
    );
    assert.equal(
      toldOf(100, () => 7),
      1,
    );
    assert.equal(
      toldOf(5_000, () => 7),
      1,
    );
  });

  it('is told of where others come between, and not where it has half or less', () => {
    assert.equal(
      toldOf(1_000, (claim) => (claim % 5 < 3 ? 7 : 1_000 + claim)),
      1,
    );
    assert.equal(
      toldOf(1_000, (claim) => (claim % 2 === 1 ? 7 : 1_000 + claim)),
      0,
    );
    assert.equal(
      toldOf(1_000, (claim) => claim),
      0,
    );
  });

  it('is told of again in the next minute, and not for claims of two minutes together', () => {
    let now = 0;
    const watch = new OneAddressWatch(() => now);
    const send = (claims: number) => Array.from({ length: claims }, () => watch.see(network(7)));
    assert.equal(send(99).includes(true), false);
    now += MINUTE_MS;
    assert.equal(send(99).includes(true), false);
    now += MINUTE_MS;
    assert.equal(send(200).filter(Boolean).length, 1);
    now += MINUTE_MS;
    assert.equal(send(200).filter(Boolean).length, 1);
  });

  const claimFrom = (peer: string, headers: Record<string, string>, trustedProxies: number) => {
    const log = memoryLog();
    const counted: string[] = [];
    const metrics: Metrics = { count: (name) => void counted.push(name), observe: () => undefined };
    const limits = new AddressLimits({ claims: false }, { proxy: { trustedProxies }, metrics, log });
    for (let claim = 0; claim < 150; claim++) limits.admitClaim({ peer, headers });
    const warnings = log.lines.filter(({ level }) => level === 'warn');
    assert.equal(counted.length, warnings.length);
    for (const name of counted) assert.equal(name, 'sluice_claims_one_address_minutes_total');
    return warnings.map(({ fields }) => fields?.address);
  };

  it('is warned of in the log and counted, with its address', () => {
    assert.deepEqual(claimFrom('203.0.113.7', {}, 0), ['203.0.113.7']);
    assert.deepEqual(claimFrom('2001:db8::1', {}, 0), ['2001:db8::/64']);
  });

  it('is not warned of where a proxy is declared, nor where a program on this machine claims for itself', () => {
    assert.deepEqual(claimFrom('10.0.0.1', { 'x-forwarded-for': '203.0.113.7' }, 1), []);
    assert.deepEqual(claimFrom('127.0.0.1', {}, 0), []);
  });

  it('is warned of where it is a proxy on this machine that says for whom it asks', () => {
    assert.deepEqual(claimFrom('127.0.0.1', { 'x-forwarded-for': '203.0.113.7' }, 0), ['127.0.0.1']);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LedgerLook } from '#core/console/sample.ts';
import { judgeHolds, judgeMoney, judgePaidPools, type PayingEndpoint } from '../../src/doctor/orders.ts';

const pool = { pool_id: 'opera', payment_tenant: 'stripe', payment_livemode: true };
const endpoint: PayingEndpoint = { name: 'stripe', tenant: 'stripe', livemode: 'live', isKeyed: true };
const shortly = ({ status, found }: { status: string; found: string }): string => `${status} ${found}`;

describe('the doctor and paid pools', () => {
  it('is content with an endpoint of the tenant and mode, and a key', () => {
    assert.equal(shortly(judgePaidPools([], [])), 'skip no pool is paid for');
    assert.equal(judgePaidPools([pool], [endpoint]).status, 'ok');
    assert.equal(judgePaidPools([pool], [{ ...endpoint, livemode: 'both' }]).status, 'ok');
  });

  it('fails where payments are not heard, and warns where nothing can be asked of Stripe', () => {
    const other = { ...endpoint, tenant: 'stripe:eu' };
    assert.match(shortly(judgePaidPools([pool], [other])), /^fail no active endpoint .* opera \(stripe\)/);
    assert.match(
      shortly(judgePaidPools([pool], [{ ...endpoint, livemode: 'test' }])),
      /^fail .*the other mode/,
    );
    const test = { ...pool, payment_livemode: false };
    assert.match(shortly(judgePaidPools([test], [endpoint])), /^fail .*the other mode/);
    assert.match(
      shortly(judgePaidPools([pool], [{ ...endpoint, isKeyed: false }])),
      /^warn no key of Stripe/,
    );
    // One of two endpoints with a key is enough.
    assert.equal(judgePaidPools([pool], [{ ...endpoint, isKeyed: false }, endpoint]).status, 'ok');
  });

  it('fails while seats are held for longer than they may be', () => {
    const orders = { held: 2, paying: 0, past_bound: 0, past_bound_sec: null, to_close: 1 };
    assert.equal(judgeHolds({ orders }).status, 'ok');
    assert.match(
      shortly(judgeHolds({ orders: { ...orders, past_bound: 1, past_bound_sec: 9 } })),
      /^fail 1 hold seats .* by 9 s/,
    );
  });

  it('tells of payments and refunds that wait, of the brake, and of what was ignored', () => {
    const orders: LedgerLook['orders'] = {
      outbox: {
        settle: { due: 0, oldest_sec: 0, dead_letters: 0 },
        void: { due: 0, oldest_sec: 0, dead_letters: 0 },
      },
      refunds: { due: 1, review: 0, failed: 0 },
      refunds_oldest_sec: 0,
      braked: 0,
      decisions: { funds: 0, refund: 0, void: 0, ignored: 0 },
    };
    const statuses = (change: Partial<LedgerLook['orders']>) =>
      judgeMoney({ orders: { ...orders, ...change } }).map(({ status }) => status);
    assert.deepEqual(statuses({}), ['ok', 'ok']);
    assert.deepEqual(
      statuses({ outbox: { ...orders.outbox, void: { due: 1, oldest_sec: 60, dead_letters: 0 } } }),
      ['warn', 'ok'],
    );
    const dead = { due: 0, oldest_sec: 0, dead_letters: 1 };
    assert.deepEqual(statuses({ outbox: { ...orders.outbox, settle: dead } }), ['fail', 'ok', 'ok']);
    assert.deepEqual(statuses({ refunds: { ...orders.refunds, failed: 1 } }), ['ok', 'warn']);
    assert.deepEqual(statuses({ braked: 1 }), ['ok', 'fail']);
    assert.deepEqual(statuses({ decisions: { ...orders.decisions, ignored: 3 } }), ['ok', 'ok', 'warn']);
  });
});

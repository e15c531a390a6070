// The courier with many payments at once: one call decides them and one finishes them, and one that is wrong spoils no other.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CallFunction } from '#core/call_function.ts';
import { Courier } from '#core/orders/courier.ts';
import { oneCell } from '#core/orders/ports.ts';
import { NO_METRICS } from '#core/ports.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { sluice } from '../work/support.ts';
import { HandWorld, type Order } from './hand_world.ts';

const LOG = createLog('silent');
const MANY = 60;

describe('the courier with many payments', () => {
  let world: HandWorld;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 300);
  });
  after(() => world?.stop());

  /** Until nothing is due; how often each function was called. */
  async function carry(): Promise<Record<string, number>> {
    const calls: Record<string, number> = {};
    const open = (url: string) => {
      const database = createDatabase({ url, max: 4, applicationName: 'courier test', log: LOG });
      const call: CallFunction = (name, args) => {
        calls[name] = (calls[name] ?? 0) + 1;
        return database.call(`public.${name}`, args);
      };
      return { call, end: () => database.end() };
    };
    const [db1, db2] = [open(world.databases.db1.url), open(world.databases.db2.url)];
    try {
      const ports = { metrics: NO_METRICS, log: LOG, now: Date.now };
      const courier = new Courier({ ...ports, db2: db2.call, cells: oneCell(db1.call) });
      await courier.drain(new AbortController().signal);
    } finally {
      await Promise.all([db1.end(), db2.end()]);
    }
    const { outbox_take: _, ...others } = calls;
    return others;
  }

  let payments = 0;
  async function paid(user: string, quantity = 1): Promise<{ order: Order; payment: string }> {
    const order = await world.order('opera', user, quantity);
    const payment = `pi_${++payments}`;
    await world.pay(order, await world.checkout(order), payment);
    return { order, payment };
  }

  const outboxOf = async (payment: string) => {
    const { rows } = await world.db2.query(
      `select state, attempts, left(error, 5) as error, result ->> 'decision' as decision from public.claim_outbox where id = $1`,
      [`settle:stripe/${payment}`],
    );
    return rows[0];
  };
  const change = (payment: string, set: string) =>
    world.db2.query(`update public.claim_outbox set ${set}, next_attempt_at = now() where id = $1`, [
      `settle:stripe/${payment}`,
    ]);
  const DONE = { state: 'done', attempts: 0, error: null, decision: 'funds' };

  it('decides all by one call, and finishes them by one', async () => {
    const all = await Promise.all(Array.from({ length: MANY }, (_, at) => paid(`user ${at}`, 1 + (at % 2))));
    assert.deepEqual(await carry(), { settle_payments: 1, outbox_finish_all: 1 });
    for (const { order, payment } of all) {
      assert.deepEqual(await outboxOf(payment), DONE);
      assert.equal(await world.stateOf(order.order_id), 'queued');
    }
    const { rows } = await world.db2.query(
      `select count(*)::int as rows, sum(amount)::int as total from public.credit_ledger where kind = 'purchase'`,
    );
    assert.deepEqual(rows, [{ rows: MANY, total: -all.reduce((sum, { order }) => sum + order.amount, 0) }]);
  });

  it('asks by itself about what that leaves open', async () => {
    const [short, late, right] = [await paid('short'), await paid('late'), await paid('right')];
    await change(short.payment, `fact = fact || '{"amount": 1}'`);
    await world.db1.query(
      `update public.orders set hold_until = now(), grace_until = now() where order_id = $1`,
      [late.order.order_id],
    );
    await world.db1.query('select public.expire_holds()');
    const { outbox_finish_all: _, ...asked } = await carry();
    assert.deepEqual(asked, { settle_payments: 1, settle_payment: 2 });
    assert.equal((await outboxOf(short.payment)).decision, 'refund');
    assert.deepEqual(await outboxOf(late.payment), DONE);
    assert.deepEqual(await outboxOf(right.payment), DONE);
    assert.equal(await world.stateOf(late.order.order_id), 'expired', 'it has other seats');
  });

  it('gives up on what DB1 refuses, and an operator sees it and lets it be tried again', async () => {
    const [wrong, right] = [await paid('wrong'), await paid('healthy')];
    await change(wrong.payment, `fact = fact - 'livemode'`);
    await carry();
    assert.deepEqual(await outboxOf(right.payment), DONE);
    const dead = { state: 'dead_letter', attempts: 1, error: 'SL001', decision: null };
    assert.deepEqual(await outboxOf(wrong.payment), dead);
    assert.deepEqual(await carry(), {}, 'it is not taken any more');
    const { json } = await world.get(`/admin/orders/${wrong.payment}`);
    const step = json.timeline.find(({ what }: { what: string }) => what === 'settle_dead_letter');
    assert.match(step.detail.error, /^SL001 a payment has a key/);

    const reconcile = async (...args: string[]) => {
      const { stdout } = await sluice(['reconcile', '--json', ...args], world.env).ended;
      const { differences } = JSON.parse(stdout) as {
        differences: { payment_key?: string; detail: string }[];
      };
      return differences.filter(({ payment_key }) => payment_key === `stripe/${wrong.payment}`);
    };
    const [found] = await reconcile();
    assert.match(found?.detail ?? '', /^the intake could not be told: SL001/);
    await change(wrong.payment, `fact = fact || '{"livemode": false}'`);
    assert.equal((await reconcile('--fix')).length, 1);
    assert.deepEqual(await outboxOf(wrong.payment), DONE, 'the command carried it');
    assert.deepEqual(await carry(), {});
    assert.deepEqual(await reconcile(), []);
  });

  it('finishes the others where DB2 refuses one, and gives that up after ten attempts', async () => {
    const all = [await paid('one'), await paid('two'), await paid('three'), await paid('four')];
    const poison = all[2]?.payment ?? '';
    // DB1 reads a currency in capitals, and the ledger does not.
    await change(poison, `fact = fact || '{"currency": "EUR"}'`);
    await carry();
    for (const { payment } of all) if (payment !== poison) assert.deepEqual(await outboxOf(payment), DONE);
    assert.deepEqual(await outboxOf(poison), { state: 'due', attempts: 1, error: '23514', decision: null });
    for (let attempt = 2; attempt <= 10; attempt++) {
      await change(poison, 'token = null');
      await carry();
    }
    assert.deepEqual(await outboxOf(poison), {
      ...{ state: 'dead_letter', attempts: 10, error: '23514', decision: null },
    });
  });
});

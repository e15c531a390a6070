// What operators alarm on: holds past their bound, the age of the outbox, refunds that are due, and decisions by kind, as /metrics has
// them beside what stands in the databases.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ask } from '../server/support.ts';
import { HandWorld } from './hand_world.ts';
import { until } from './world.ts';

describe('the metrics of paid orders', () => {
  let world: HandWorld;
  before(async () => {
    world = await HandWorld.start();
    await world.putOnSale('opera', 10);
  });
  after(() => world?.stop());

  async function read(): Promise<(name: string) => number | undefined> {
    const { text } = await ask(`${world.server.url}/metrics`);
    return (name) => {
      const line = text.split('\n').find((one) => one.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    };
  }

  /** The page is a few seconds old at most. */
  async function untilShown(wanted: Record<string, number>): Promise<void> {
    let seen: Record<string, number | undefined> = {};
    await until(async () => {
      const number = await read();
      seen = Object.fromEntries(Object.keys(wanted).map((name) => [name, number(name)]));
      return Object.entries(wanted).every(([name, value]) => seen[name] === value);
    }).catch(() => assert.deepEqual(seen, wanted));
  }

  it('are 0 where nothing waits', () =>
    untilShown({
      sluice_orders_held: 0,
      sluice_orders_past_bound: 0,
      'sluice_outbox_depth{kind="settle"}': 0,
      'sluice_outbox_oldest_seconds{kind="settle"}': 0,
      'sluice_refunds{state="due"}': 0,
      sluice_refunds_oldest_seconds: 0,
      sluice_refunds_braked: 0,
      'sluice_decisions{decision="funds"}': 0,
      'sluice_decisions{decision="ignored"}': 0,
    }));

  it('count what holds seats, what waits, what is owed, and what was decided', async () => {
    await world.order('opera', 'held');
    const bought = await world.bought('opera', 'bought', 'pi_bought');
    // A second payment through a session of ours: it goes back by itself.
    await world.pay(bought, 'cs_again', 'pi_again');
    await world.carry();
    await world.db2.query(`update public.refunds_due set created_at = now() - interval '20 minutes'`);
    const waiting = await world.order('opera', 'waiting');
    await world.pay(waiting, await world.checkout(waiting), 'pi_waiting');
    await world.db2.query(
      `update public.claim_outbox set created_at = now() - interval '5 minutes' where payment_key = 'stripe/pi_waiting'`,
    );
    // Last of all: a worker would free its seat.
    const stuck = await world.order('opera', 'stuck');
    await world.db1.query(
      `update public.orders set hold_until = now() - interval '1 hour', grace_until = now() - interval '1 hour' where order_id = $1`,
      [stuck.order_id],
    );
    await untilShown({
      sluice_orders_held: 3,
      sluice_orders_past_bound: 1,
      'sluice_outbox_depth{kind="settle"}': 1,
      'sluice_refunds{state="due"}': 1,
      'sluice_decisions{decision="funds"}': 1,
      'sluice_decisions{decision="refund"}': 1,
    });
    const number = await read();
    const age = (name: string) => number(name) ?? 0;
    assert.ok(age('sluice_orders_past_bound_seconds') >= 3_000);
    assert.ok(age('sluice_outbox_oldest_seconds{kind="settle"}') >= 300);
    assert.ok(age('sluice_refunds_oldest_seconds') >= 1_200);
  });
});

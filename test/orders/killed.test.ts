// A worker of paid orders is killed before and after every call that it makes; a fresh one goes on; each thing has happened once.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Stripe from 'stripe';
import { Bridge } from '#core/bridge/bridge.ts';
import { createIntake, createLedger } from '#core/bridge/store.ts';
import type { CallFunction } from '#core/call_function.ts';
import type { Report } from '#core/lease_worker.ts';
import { Closer } from '#core/orders/closer.ts';
import { Courier } from '#core/orders/courier.ts';
import { oneCell, type Payments } from '#core/orders/ports.ts';
import { Refunder } from '#core/orders/refunder.ts';
import { createPayments } from '#core/orders/stripe.ts';
import { NO_METRICS } from '#core/ports.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { openStripe } from '../../src/orders/stripe.ts';
import { openProcessor } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import type { Wrap } from '../bridge/fault_support.ts';
import { Mortal } from '../bridge/mortal.ts';
import { STAND_IN_KEY } from './stand_in_process.ts';
import { type Buyer, OrderWorld, PRICE } from './world.ts';

const MOST_CALLS = 30;
const asIs: Wrap = (_, call) => call;

type LaneName = 'courier' | 'closer' | 'refunder';

interface Scenario {
  lane: LaneName;
  /** Brings an order to where the lane has work with it. */
  begin(pool: string): Promise<Buyer>;
  /** What must be so once a fresh worker, and all the others, have worked. */
  end(pool: string, buyer: Buyer, where: string): Promise<void>;
  slots?: number;
}

describe('a worker of paid orders that is killed', () => {
  let world: OrderWorld;
  let payments: Payments;
  let databases: { db1: Database; db2: Database };
  let processor: ReturnType<typeof openProcessor>;
  before(async () => {
    world = await OrderWorld.start();
    payments = createPayments(await openStripe(STAND_IN_KEY, { STRIPE_API_URL: world.standIn.url }));
    const open = (url: string) =>
      createDatabase({ url, max: 4, applicationName: 'orders test', log: createLog('silent') });
    databases = { db1: open(world.databases.db1.url), db2: open(world.databases.db2.url) };
    processor = openProcessor({
      db2Url: world.databases.db2.url,
      workers: 1,
      batchSize: 100,
      handlers: NO_HANDLERS,
      metrics: NO_METRICS,
      log: createLog('silent'),
    });
  });
  after(async () => {
    await Promise.all([databases?.db1.end(), databases?.db2.end(), processor?.end()]);
    await world?.stop();
  });

  /** A lane whose calls all pass `wrap`. */
  const laneOf = (name: LaneName, wrap: Wrap): { drain(signal: AbortSignal): Promise<Report> } => {
    const callOf =
      (side: 'db1' | 'db2'): CallFunction =>
      (functionName, args) =>
        wrap(`${side} ${functionName}`, () =>
          databases[side].call(`public.${functionName}`, args),
        )() as never;
    const wrapped = Object.fromEntries(
      Object.entries(payments).map(([method, call]) => [method, wrap(`stripe ${method}`, call)]),
    ) as unknown as Payments;
    const ports = {
      db1: callOf('db1'),
      db2: callOf('db2'),
      paymentsOf: async () => wrapped,
      metrics: NO_METRICS,
      log: createLog('silent'),
      now: Date.now,
    };
    if (name === 'courier') return new Courier({ ...ports, cells: oneCell(ports.db1) });
    return name === 'closer' ? new Closer(ports) : new Refunder(ports);
  };
  /** As if every lease and every pause had run out. */
  const passTime = async (): Promise<void> => {
    await world.db1.query(
      `update public.checkouts set next_attempt_at = now() where next_attempt_at < 'infinity'`,
    );
    await world.db2.query(`update public.claim_outbox set next_attempt_at = now() where state = 'due'`);
    await world.db2.query(`update public.refunds_due set next_attempt_at = now() where state = 'due'`);
  };
  const expireHolds = () => world.db1.query('select public.expire_holds(1000)');
  const sessionsOf = async ({ claim_id }: Buyer) =>
    (await world.standIn.control.books<{ session: Stripe.Checkout.Session }>('session'))
      .map(({ session }) => session)
      .filter((session) => session.client_reference_id === claim_id);
  const refundedOf = async ({ claim_id }: Buyer) => {
    const intents = await world.standIn.control.books<Stripe.PaymentIntent>('payment_intent');
    const own = intents.filter(({ metadata }) => metadata.claim_id === claim_id).map(({ id }) => id);
    const refunds = await world.standIn.control.books<Stripe.Refund>('refund');
    return refunds.filter(({ payment_intent }) => own.includes(String(payment_intent)));
  };
  const bought = async (pool: string, webhooks: 'on' | 'dropped' = 'on'): Promise<Buyer> => {
    const buyer = await world.claim(pool);
    const session = await world.session(buyer);
    await world.standIn.control.set({ webhooks });
    await world.standIn.control.pay(session);
    await world.standIn.control.set({ webhooks: 'on' });
    await world.delivered();
    return buyer;
  };
  const { signal } = new AbortController();
  const events = () => processor.processor.drain(signal, () => undefined);
  /** What the workers do until nothing is due, on connections that stay: a test has many rounds. */
  const work = async (): Promise<void> => {
    await events();
    for (const name of ['closer', 'courier', 'refunder'] as const) await laneOf(name, asIs).drain(signal);
    await new Bridge(
      {
        intake: createIntake((name, args) => databases.db1.call(`public.${name}`, args)),
        ledger: () => createLedger((name, args) => databases.db2.call(`public.${name}`, args)),
        hook: { post: () => Promise.reject(new Error('no pool here has a hook')) },
        log: createLog('silent'),
        metrics: NO_METRICS,
        now: Date.now,
        random: Math.random,
      },
      { batchSize: 100, leaseSec: 60 },
    ).drain(signal);
  };

  const SCENARIOS: Record<string, Scenario> = {
    'a payment that buys': {
      lane: 'courier',
      async begin(pool) {
        const buyer = await bought(pool);
        await events();
        return buyer;
      },
      async end(pool, buyer, where) {
        assert.deepEqual(await world.tickets(pool), [buyer.claim_id], where);
        assert.equal(await world.statusOf(buyer), 'paid', where);
        assert.deepEqual(await world.refunds(pool), [], where);
      },
    },
    'a refund that voids': {
      lane: 'courier',
      async begin(pool) {
        const buyer = await bought(pool);
        await work();
        assert.equal((await world.tickets(pool)).length, 1);
        const [session] = await sessionsOf(buyer);
        await world.standIn.stripe.refunds.create({ payment_intent: String(session?.payment_intent) });
        await world.delivered();
        await events();
        return buyer;
      },
      async end(pool, buyer, where) {
        assert.deepEqual(await world.tickets(pool), [], where);
        assert.equal((await world.show(buyer)).status, 'voided', where);
        assert.equal(await world.free(pool), 1, where);
      },
    },
    'a session that is not paid': {
      lane: 'closer',
      async begin(pool) {
        const buyer = await world.claim(pool);
        await world.session(buyer);
        await world.endHold(buyer);
        return buyer;
      },
      async end(pool, buyer, where) {
        const sessions = await sessionsOf(buyer);
        assert.deepEqual(
          sessions.map(({ status }) => status),
          ['expired'],
          where,
        );
        assert.equal(await world.free(pool), 1, where);
      },
    },
    'a session whose answer was lost': {
      lane: 'closer',
      async begin(pool) {
        const buyer = await world.claim(pool);
        await world.standIn.control.set({ cut: true });
        assert.equal((await world.checkout(buyer)).status, 503);
        await world.standIn.control.set({ cut: false });
        await world.endHold(buyer);
        return buyer;
      },
      async end(pool, buyer, where) {
        assert.deepEqual(
          (await sessionsOf(buyer)).map(({ status }) => status),
          ['expired'],
          where,
        );
        assert.equal(await world.free(pool), 1, where);
      },
    },
    'a session that Stripe was never asked for': {
      lane: 'closer',
      async begin(pool) {
        const buyer = await world.claim(pool);
        await world.standIn.control.set({ down: true });
        assert.equal((await world.checkout(buyer)).status, 503);
        await world.standIn.control.set({ down: false });
        await world.endHold(buyer);
        return buyer;
      },
      async end(pool, buyer, where) {
        const sessions = await sessionsOf(buyer);
        assert.ok(sessions.length <= 1 && sessions.every(({ status }) => status === 'expired'), where);
        assert.equal(await world.free(pool), 1, where);
      },
    },
    'a session that was paid and never told': {
      lane: 'closer',
      async begin(pool) {
        const buyer = await bought(pool, 'dropped');
        await world.endHold(buyer);
        return buyer;
      },
      async end(pool, buyer, where) {
        assert.deepEqual(await world.tickets(pool), [buyer.claim_id], where);
        assert.equal(await world.free(pool), 0, where);
      },
    },
    'a refund of a seat': {
      lane: 'refunder',
      async begin(pool) {
        const buyer = await world.claimGroup(pool, 2);
        const session = await world.session(buyer);
        await world.standIn.control.pay(session);
        await world.delivered();
        await work();
        assert.equal((await world.tickets(pool)).length, 2);
        const void_ = `select public.request_void(array[$1::uuid], true, 'test', 'a seat broke')`;
        await world.db2.query(void_, [buyer.claim_id]);
        await laneOf('courier', asIs).drain(signal);
        return buyer;
      },
      async end(pool, buyer, where) {
        const refunds = await refundedOf(buyer);
        assert.deepEqual(
          refunds.map(({ amount }) => amount),
          [PRICE],
          where,
        );
        assert.deepEqual(
          (await world.refunds(pool)).map(({ state }) => state),
          ['done'],
          where,
        );
        assert.equal((await world.tickets(pool)).length, 1, where);
      },
      slots: 2,
    },
  };

  async function run(
    scenario: Scenario,
    dieAt: number,
    moment: 'before' | 'after',
  ): Promise<string | undefined> {
    const pool = await world.pool(scenario.slots ?? 1);
    const buyer = await scenario.begin(pool);
    const mortal = new Mortal(dieAt, moment);
    const first = laneOf(scenario.lane, mortal.wrap).drain(signal);
    await Promise.race([first, mortal.died]);
    const goOn = async (): Promise<void> => {
      await passTime();
      await laneOf(scenario.lane, asIs).drain(signal);
      await expireHolds();
      await world.delivered();
      await work();
    };
    await goOn();
    await mortal.bury(first);
    // What met a call of the dead worker that was still under way has waited a while.
    await goOn();
    await scenario.end(pool, buyer, `killed ${mortal.diedAt}`);
    return mortal.isDead ? mortal.diedAt : undefined;
  }

  for (const [name, scenario] of Object.entries(SCENARIOS))
    for (const moment of ['before', 'after'] as const)
      it(`${moment} any of the ${scenario.lane}'s calls: ${name} happens once`, async () => {
        let dieAt = 1;
        while ((await run(scenario, dieAt, moment)) !== undefined) assert.ok(++dieAt < MOST_CALLS);
        assert.ok(dieAt > 3, `only ${dieAt - 1} calls were seen`);
      });

  it('negative control: a refunder without keys and without a look sends it twice', async () => {
    const scenario = SCENARIOS['a refund of a seat'] as Scenario;
    const pool = await world.pool(2);
    const buyer = await scenario.begin(pool);
    let calls = 0;
    const careless =
      (mortal: Mortal | undefined): Wrap =>
      (name, call) =>
        (async (...args: unknown[]) => {
          if (name === 'stripe refundsOf') return [];
          const order = args[0] as { idempotencyKey: string };
          const changed =
            name === 'stripe refund' ? [{ ...order, idempotencyKey: `other ${++calls}` }] : args;
          return (mortal?.wrap(name, call as never) ?? call)(...(changed as never));
        }) as never;
    const mortal = new Mortal(2, 'after');
    const first = laneOf('refunder', careless(mortal)).drain(signal);
    await Promise.race([first, mortal.died]);
    await passTime();
    await laneOf('refunder', careless(undefined)).drain(signal);
    await mortal.bury(first);
    assert.equal(mortal.diedAt, 'after call 2 (stripe refund)');
    await assert.rejects(scenario.end(pool, buyer, 'careless'));
    assert.equal((await refundedOf(buyer)).length, 2);
  });

  it('negative control: a closer that does not end the session frees a seat that can still be paid for', async () => {
    const scenario = SCENARIOS['a session that is not paid'] as Scenario;
    const pool = await world.pool(1);
    const buyer = await scenario.begin(pool);
    const careless: Wrap = (name, call) =>
      name === 'stripe expireSession'
        ? ((async (id: string) => ({ ...(await payments.showSession(id)), status: 'expired' })) as never)
        : call;
    await laneOf('closer', careless).drain(new AbortController().signal);
    await expireHolds();
    await assert.rejects(scenario.end(pool, buyer, 'careless'));
  });
});

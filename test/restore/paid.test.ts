// docs/restore.md with paid orders in flight: each database goes back to an earlier moment, and an operator follows the page.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type Stripe from 'stripe';
import { Seller } from '../../src/demo/paid/seller.ts';
import { startServer } from '../../src/server/server.ts';
import { STAND_IN_KEY, type StandInProcess, startStandInProcess } from '../orders/stand_in_process.ts';
import { type Buyer, OrderWorld, secretOf } from '../orders/world.ts';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';
import { ADMIN_KEY, JWT_SECRET, openClient } from '../server/support.ts';
import type { TestDatabases } from '../support/databases.ts';
import { addEndpoint, SECRETS } from '../webhook/world.ts';
import { block, moment, number, TwoServers } from './support.ts';

const SLOTS = 30;
const AGREED = /No differences: both databases tell the same story\.\n$/;

interface Bought extends Buyer {
  session: string;
  payment: string;
}

interface Found {
  kind: string;
  outcome: string;
  ticket: { claim_id: string } | null;
}

/** Why Postgres 15 is missing: this is not Debian, or the tests may not install packages. */
const reason = await ensureDebianPackages(['postgresql-15']);

describe('the restore page, with paid orders', { skip: reason ?? false }, () => {
  let servers: TwoServers;
  let standIn: StandInProcess;
  let world: OrderWorld;
  let pool: string;
  let isOpen = false;

  before(async () => {
    process.env.SLUICE_LOG ??= 'silent';
    servers = await TwoServers.start();
    standIn = await startStandInProcess({});
    await servers.withDb2((client) =>
      addEndpoint(client, 'stripe', 'stripe', 'queued', { livemode: 'both' }),
    );
    world = await open();
    pool = await world.pool(SLOTS);
  });
  after(async () => {
    try {
      if (isOpen) await close();
      await standIn?.stop();
    } finally {
      servers?.stop();
    }
  });

  /** A server on both databases, to which Stripe's stand-in delivers. */
  async function open(): Promise<OrderWorld> {
    const { db1Url, db2Url } = servers;
    const server = await startServer({
      port: 0,
      host: '127.0.0.1',
      db1Url,
      db2Url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf,
      apiUrls: { STRIPE_API_URL: standIn.url },
    });
    await standIn.control.deliverTo({
      url: `${server.url}/webhooks/stripe`,
      secret: SECRETS.STRIPE_WEBHOOK_SECRET ?? '',
    });
    const databases = { db1: { url: db1Url }, db2: { url: db2Url } } as TestDatabases;
    isOpen = true;
    return new OrderWorld(databases, server, standIn, await openClient(db1Url), await openClient(db2Url));
  }

  async function close(): Promise<void> {
    isOpen = false;
    await world.server.stop();
    await Promise.all([world.db1.end(), world.db2.end()]);
  }

  const operator = (script: string, more: Record<string, string> = {}) =>
    servers.asOperator(script, {
      SLUICE_URL: world.server.url,
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      STRIPE_API_URL: standIn.url,
      STRIPE_API_KEY: STAND_IN_KEY,
      STRIPE_WEBHOOK_SECRET: SECRETS.STRIPE_WEBHOOK_SECRET ?? '',
      ...more,
    });
  /** What a worker of the page does first, and then all that follows from it. */
  const workers = async (): Promise<void> => {
    await operator('npx sluice work --once');
    await settle();
  };
  const stripeDifferences = async (): Promise<string[]> => {
    const said = JSON.parse(await operator('npx sluice reconcile --stripe --json || true'));
    return said.differences.map(
      ({ kind, payment }: { kind: string; payment: string }) => `${kind} ${payment}`,
    );
  };

  async function begin(user: string, seats = 1): Promise<Bought> {
    const buyer = seats === 1 ? await world.claim(pool, user) : await world.claimGroup(pool, seats, user);
    return { ...buyer, session: await world.session(buyer), payment: '' };
  }
  /** Until the event of the payment is recorded. */
  async function pay(order: Bought, session = order.session): Promise<Bought> {
    const { payment_intent } = await standIn.control.pay(session);
    await world.delivered();
    return { ...order, payment: String(payment_intent) };
  }
  /** By a link that the seller made for the same order. */
  const payByLink = async (order: Bought): Promise<Bought> =>
    pay(order, await new Seller(standIn.url, STAND_IN_KEY, standIn.control).linkLike(order.session));
  async function buy(user: string, seats = 1): Promise<Bought> {
    const order = await pay(await begin(user, seats));
    await settle();
    assert.equal(await world.statusOf(order), 'paid');
    return order;
  }
  /** What Stripe tells of an effect is an event again. */
  async function settle(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      await world.work();
      await world.delivered();
    }
    await world.work();
  }
  const voidOne = async ({ claim_id }: Bought): Promise<void> => {
    await world.db2.query(`select public.request_void(array[$1::uuid], true, 'ann', 'rain')`, [claim_id]);
    await settle();
  };
  const setActive = (isActive: boolean) =>
    world.db1.query('update public.engine_config set is_active = $2 where pool_id = $1', [pool, isActive]);
  /** How much went back of each payment, in the order in which it was sent. */
  const refundsAtStripe = async (): Promise<string[]> => {
    const refunds = await standIn.control.books<Stripe.Refund>('refund');
    return refunds.map(({ payment_intent, amount }) => `${payment_intent} ${amount}`).sort();
  };
  const balancesOf = async (): Promise<{ user_id: string; sum: number }[]> =>
    (
      await world.db2.query(
        'select user_id, sum(amount)::int from public.credit_ledger group by 1 order by 1',
      )
    ).rows;
  const free = () =>
    servers.withDb1((client) => number(client, `select available from public.pool_status('${pool}')`));
  const openRefunds = () =>
    servers.withDb2((client) =>
      number(client, `select count(*) from public.refunds_due where state in ('due', 'review', 'failed')`),
    );

  test('brings DB1 back: who paid has the tickets or the money, once', async () => {
    const bob = await buy('bob');
    const pat = await begin('pat');
    await world.endHold(pat);
    await settle();
    assert.equal(await world.statusOf(pat), 'expired');
    const gil = await begin('gil');
    const ann = await begin('ann');
    await world.db1.query(
      `update public.orders set hold_until = now() + interval '2 seconds', grace_until = now() + interval '2 seconds'
       where order_id = $1`,
      [ann.claim_id],
    );
    const target = await servers.withDb1(moment);

    await pay(ann);
    await settle();
    assert.equal(await world.statusOf(ann), 'paid');
    await voidOne(bob);
    // It goes back: its hold is over, and the pool is closed when the payment comes.
    await world.endHold(gil);
    await settle();
    await setActive(false);
    const gilPaid = await payByLink(gil);
    await settle();
    await setActive(true);
    assert.equal(await world.statusOf(gil), 'refunded');
    await payByLink(pat);
    await settle();
    assert.equal(await world.statusOf(pat), 'paid', 'a late payment buys other seats');
    // hal gets the seat that bob had, kit one that was free at the moment: DB1 knows the claims again at different steps.
    await buy('hal');
    const kit = await buy('kit');
    const ida = await begin('ida');
    // Paid and decided, and not a ticket yet.
    const jon = await pay(await begin('jon'));
    await world.events();
    await world.orders();
    const sold = (await world.tickets(pool)).sort();
    const sentBack = await refundsAtStripe();
    assert.deepEqual(sentBack, [`${bob.payment} 1250`, `${gilPaid.payment} 1250`].sort());
    assert.equal(sold.length, 4, 'ann, pat, hal and kit have tickets');
    await close();

    await servers.restore('db1', target);
    // The control: without the page's block a worker frees the seat of a ticket, once the pool's slots are there again.
    await servers.withDb1(async (client) => {
      await client.query('begin');
      await client.query('select public.reconcile_claims()');
      await client.query('select public.expire_holds(1000)');
      const { rows } = await client.query('select state from public.claims where claim_id = $1', [
        ann.claim_id,
      ]);
      await client.query('rollback');
      assert.deepEqual(rows, [{ state: 'expired' }]);
    });
    await servers.asOperator(block('holds'));
    // Seats that were held at the moment, and sold to others since, are left for later.
    const said = await servers.asOperator(`{\n${block('agree')}\n} || true`);
    assert.match(said, new RegExp(`payment_unsettled +stripe/${gilPaid.payment} .*decided as refund`));
    assert.match(said, /^void_unfinished .* fixed$/m);

    world = await open();
    await workers();
    assert.equal(await world.statusOf(ann), 'paid');
    // A quarter of an hour passes for the payments whose orders are lost.
    await world.db2.query(
      `update public.claim_outbox set created_at = now() - interval '20 minutes', next_attempt_at = now() where state = 'due'`,
    );
    await workers();
    assert.deepEqual(await refundsAtStripe(), sentBack, 'nothing is sent before an operator has looked');
    const books = await operator(block('books'), { TARGET: target });
    assert.deepEqual(books.match(/^settle:\S+/gm), [`settle:stripe/${jon.payment}`]);
    assert.match(books, new RegExp(`session_unknown +${ida.session} `));

    assert.equal(await world.statusOf(gil), 'held', 'no seat is given for money that went back');
    await world.endHold(gil);
    await operator(`npx sluice refunds send settle:stripe/${jon.payment} --reason 'the order is lost' --yes`);
    await standIn.stripe.checkout.sessions.expire(ida.session);
    await workers();
    await operator('npx sluice reconcile --fix');

    assert.deepEqual((await world.tickets(pool)).sort(), sold);
    assert.deepEqual(await refundsAtStripe(), [...sentBack, `${jon.payment} 1250`].sort());
    assert.deepEqual([await openRefunds(), await free()], [0, SLOTS - sold.length]);
    assert.match(await operator('npx sluice reconcile'), AGREED);
    assert.deepEqual(await stripeDifferences(), []);
    await operator(`npx sluice pools set ${pool} --refund-by sluice && npx sluice pools open ${pool}`);

    const balances = new Map((await balancesOf()).map(({ user_id, sum }) => [user_id, sum]));
    assert.deepEqual(Object.fromEntries(balances), {
      ann: 0,
      bob: 0,
      gil: 0,
      hal: 0,
      jon: 0,
      kit: 0,
      pat: 0,
    });
    // A ticket whose order was lost has it again: a refund at Stripe voids it.
    await standIn.stripe.refunds.create({ payment_intent: kit.payment });
    await world.delivered();
    await workers();
    assert.deepEqual(
      (await world.tickets(pool)).sort(),
      sold.filter((id) => id !== kit.claim_id),
    );
    assert.match(await operator('npx sluice reconcile'), AGREED);
  });

  test('brings DB2 back: tickets, payments, credits and refunds are what they were, and uses are lost', async () => {
    const bob = await buy('bob two');
    const lea = await buy('lea', 2);
    const ned = await buy('ned');
    const target = await servers.withDb2(moment);

    await buy('ann two');
    await standIn.stripe.refunds.create({ payment_intent: bob.payment });
    await world.delivered();
    await settle();
    await voidOne(lea);
    const oli = await payByLink(await buy('oli'));
    await settle();
    const use = async () =>
      (await world.db2.query(`select outcome from public.check_ticket($1, 'gate')`, [ned.claim_id])).rows[0]
        .outcome;
    assert.equal(await use(), 'valid');
    const was = {
      tickets: await world.tickets(pool),
      refunds: await refundsAtStripe(),
      balances: await balancesOf(),
      free: await free(),
      stripe: await stripeDifferences(),
    };
    assert.ok(was.refunds.includes(`${oli.payment} 1250`) && was.refunds.includes(`${lea.payment} 1250`));
    await close();

    await servers.restore('db2', target);
    // Voids by operators are left for a person.
    await servers.asOperator(`{\n${block('agree')}\n} || true`);
    world = await open();
    await operator(block('money'), { TARGET: target });
    await workers();
    const found: Found[] = JSON.parse(
      await operator('npx sluice reconcile --fix --json || true'),
    ).differences;
    const left = found.filter(({ outcome }) => outcome === 'for a person');
    assert.deepEqual(
      left.map(({ kind, ticket }) => [kind, ticket?.claim_id]),
      [['ticket_on_sale', lea.claim_id]],
      JSON.stringify(found),
    );
    await operator(block('void'), { CLAIM: lea.claim_id, REFUND: '--refund' });
    // A day has passed, and Stripe has forgotten the keys of the refunds that it has.
    await standIn.control.set({ clockOffsetSec: 25 * 60 * 60 });
    await workers();
    await operator(block('resend'), { CLAIM: lea.claim_id });
    await workers();
    await standIn.control.set({ clockOffsetSec: 0 });

    assert.match(await operator('npx sluice reconcile'), AGREED);
    const is = {
      tickets: await world.tickets(pool),
      refunds: await refundsAtStripe(),
      balances: await balancesOf(),
      free: await free(),
      stripe: await stripeDifferences(),
    };
    assert.deepEqual(is, was);
    assert.equal(await openRefunds(), 0);
    assert.equal(await use(), 'valid', 'the page says that uses after the moment are lost');
  });
});

// Two databases, a server, and Stripe's stand-in in a process of its own that delivers to it. Workers run when a test says so: once,
// until nothing is due, or two of each beside each other.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { drainCells, startCellCrews } from '../../src/fleet/crews.ts';
import { createLog } from '../../src/log.ts';
import { carryOrdersOnce, type OrderCrewOptions, startOrderCrew } from '../../src/orders/crew.ts';
import { type RunningServer, type ServerOptions, startServer } from '../../src/server/server.ts';
import { processOnce, startWebhookCrew } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { ADMIN_KEY, ask, claim as claimSlot, JWT_SECRET, openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addEndpoint, SECRETS } from '../webhook/world.ts';
import { STAND_IN_KEY, type StandInProcess, startStandInProcess } from './stand_in_process.ts';

export const PRICE = 1_250;
export const CURRENCY = 'eur';
const LOG = createLog('silent');
const PATIENCE_MS = 30_000;

/** What the server and the workers know by name. */
export const secretOf = (name: string): string | undefined =>
  ({ ...SECRETS, STRIPE_API_KEY: STAND_IN_KEY })[name];

export interface Buyer {
  claim_id: string;
  secret: string;
  pool: string;
}

export class OrderWorld {
  readonly databases: TestDatabases;
  readonly server: RunningServer;
  readonly standIn: StandInProcess;
  readonly db1: pg.Client;
  readonly db2: pg.Client;
  #pools = 0;

  constructor(
    databases: TestDatabases,
    server: RunningServer,
    standIn: StandInProcess,
    db1: pg.Client,
    db2: pg.Client,
  ) {
    this.databases = databases;
    this.server = server;
    this.standIn = standIn;
    this.db1 = db1;
    this.db2 = db2;
  }

  static async start(more: Partial<ServerOptions> = {}): Promise<OrderWorld> {
    process.env.SLUICE_LOG ??= 'silent';
    const databases = await startDatabases();
    const standIn = await startStandInProcess({});
    const server = await startServer({
      port: 0,
      host: '127.0.0.1',
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf,
      apiUrls: { STRIPE_API_URL: standIn.url },
      ...more,
    });
    const db2 = await openClient(databases.db2.url);
    await addEndpoint(db2, 'stripe', 'stripe', 'queued', { livemode: 'both' });
    await standIn.control.deliverTo({
      url: `${server.url}/webhooks/stripe`,
      secret: SECRETS.STRIPE_WEBHOOK_SECRET ?? '',
    });
    return new OrderWorld(databases, server, standIn, await openClient(databases.db1.url), db2);
  }

  async stop(): Promise<void> {
    await this.standIn.stop();
    await this.server.stop();
    await this.db1.end();
    await this.db2.end();
    await this.databases.stop();
  }

  /** A pool that is paid for. */
  async pool(slots: number, rules: Record<string, unknown> = {}): Promise<string> {
    const pool = `paid_${++this.#pools}`;
    await putOnSale(this.db1, pool, slots, {
      confirm_by: 'payment',
      price: PRICE,
      currency: CURRENCY,
      payment_tenant: 'stripe',
      hold_sec: 600,
      expire_grace_sec: 5,
      max_quantity: 4,
      ...rules,
    });
    return pool;
  }

  async claim(pool: string, user = 'ann'): Promise<Buyer> {
    const secret = `secret-${randomUUID()}`;
    const answer = await claimSlot(this.server.url, pool, {
      user_id: user,
      request_id: randomUUID(),
      secret,
    });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.json.status, 'held');
    return { claim_id: answer.json.claim_id, secret, pool };
  }

  /** Several seats of one request; the buyer has the first claim. */
  async claimGroup(pool: string, quantity: number, user = 'ann'): Promise<Buyer> {
    const secret = `secret-${randomUUID()}`;
    const hash = createHash('sha256').update(secret).digest('hex');
    const { rows } = await this.db1.query(
      `select outcome, claim_id from public.claim_batch(p_pool_ids => array[$1], p_user_ids => array[$2],
         p_request_ids => array[$3], p_verified => array[false], p_proofs => $4, p_quantities => array[$5::int])`,
      [pool, user, randomUUID(), JSON.stringify([{ secret_hash: hash, address: '127.0.0.1' }]), quantity],
    );
    assert.equal(rows[0].outcome, 'claimed');
    return { claim_id: rows[0].claim_id, secret, pool };
  }

  checkout({ claim_id, secret }: Buyer) {
    const headers = { 'x-claim-secret': secret };
    return ask(`${this.server.url}/v1/claims/${claim_id}/checkout`, { method: 'POST', headers });
  }

  /** The session's id. */
  async session(buyer: Buyer): Promise<string> {
    const answer = await this.checkout(buyer);
    assert.ok(answer.status === 201 || answer.status === 200, answer.text);
    return new URL(answer.json.url).pathname.split('/').at(-1) ?? '';
  }

  async show({ claim_id, secret }: Buyer) {
    const headers = { 'x-claim-secret': secret };
    return (await ask(`${this.server.url}/v1/claims/${claim_id}`, { headers })).json;
  }

  async statusOf(buyer: Buyer): Promise<string> {
    return (await this.show(buyer)).order.status;
  }

  async free(pool: string): Promise<number> {
    const sql = `select count(*)::int as free from public.inventory_slots where pool_id = $1 and status = 'AVAILABLE'`;
    return (await this.db1.query(sql, [pool])).rows[0].free;
  }

  /** Claims that are tickets now. */
  async tickets(pool: string): Promise<string[]> {
    const sql = 'select claim_id from public.confirmed_tickets where pool_id = $1 order by claim_id';
    return (await this.db2.query(sql, [pool])).rows.map(({ claim_id }) => claim_id);
  }

  async refunds(pool: string): Promise<{ state: string; amount: number; reason: string }[]> {
    const orders = await this.db1.query('select order_id from public.orders where pool_id = $1', [pool]);
    const sql = `select state, amount::int, reason from public.refunds_due where order_id = any ($1) order by created_at, id`;
    return (await this.db2.query(sql, [orders.rows.map(({ order_id }) => order_id)])).rows;
  }

  /** The order's time is over, as if it had passed: its hold, and its grace where that is said. */
  async endHold({ claim_id }: Buyer, { withGrace = false } = {}): Promise<void> {
    await this.db1.query(
      `update public.orders set hold_until = now(), grace_until = now() + case when $2 then '0' else interval '1 hour' end
       where order_id = $1`,
      [claim_id, withGrace],
    );
    await this.db1.query(
      `update public.checkouts set next_attempt_at = now() where order_id = $1 and next_attempt_at < 'infinity'`,
      [claim_id],
    );
  }

  get orderOptions(): OrderCrewOptions {
    return {
      db1Url: this.databases.db1.url,
      db2Url: this.databases.db2.url,
      secretOf,
      urls: { STRIPE_API_URL: this.standIn.url },
      metrics: NO_METRICS,
      log: LOG,
    };
  }

  /** Events that are recorded take effect. */
  async events(): Promise<void> {
    const { signal } = new AbortController();
    const { db2Url } = this.orderOptions;
    const shared = { db2Url, metrics: NO_METRICS, log: LOG };
    await processOnce({ ...shared, workers: 1, batchSize: 100, handlers: NO_HANDLERS }, signal);
  }

  /** Sessions, payments, voids and refunds, each until nothing is due. */
  async orders(): Promise<void> {
    await carryOrdersOnce(this.orderOptions, new AbortController().signal);
  }

  /** Events, orders and claims, each until nothing is due. */
  async work(): Promise<void> {
    const { signal } = new AbortController();
    const { db1Url, db2Url } = this.orderOptions;
    const shared = { db1Url, db2Url, metrics: NO_METRICS, log: LOG };
    await this.events();
    await this.orders();
    await drainCells({ ...shared, workers: 1, batchSize: 100 }, signal);
  }

  /** Two workers of each kind, until the returned function is called. */
  workers(more: Partial<OrderCrewOptions> = {}): () => Promise<void> {
    const { db1Url, db2Url } = this.orderOptions;
    const shared = { db1Url, db2Url, metrics: NO_METRICS, log: LOG };
    const started = [1, 2].flatMap(() => [
      startCellCrews({ ...shared, workers: 1, batchSize: 100 }),
      startWebhookCrew({ ...shared, workers: 1, batchSize: 100, handlers: NO_HANDLERS }),
      startOrderCrew({ ...this.orderOptions, ...more }),
    ]);
    return async () => {
      await Promise.all(started.map((worker) => worker.stop()));
    };
  }

  /** All that Stripe has delivered is recorded. */
  async delivered(): Promise<void> {
    await until(async () => {
      const deliveries = await this.standIn.control.books<{ state: string }>('delivery');
      return deliveries.every(({ state }) => state !== 'waiting');
    });
  }
}

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    assert.ok(Date.now() < deadline, 'it did not happen');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Orders in two real databases behind a server, moved by the SQL functions that courier, closer and refunder call.

import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { RunningServer, ServerOptions } from '../../src/server/server.ts';
import { ADMIN_KEY, ask, bearer, claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addEndpoint, SECRETS } from '../webhook/world.ts';
import { sluice } from '../work/support.ts';

export const PRICE = 2_500;
const SECRET = 'a-secret-of-the-buyer';
const LEASE_SEC = 60;

export interface Order {
  readonly order_id: string;
  readonly user: string;
  readonly claims: readonly string[];
  readonly amount: number;
  readonly pool: string;
}

export class HandWorld {
  readonly databases: TestDatabases;
  readonly server: RunningServer;
  readonly db1: pg.Client;
  readonly db2: pg.Client;
  /** For commands. */
  readonly env: Record<string, string>;
  #sessions = 0;

  private constructor(databases: TestDatabases, server: RunningServer, db1: pg.Client, db2: pg.Client) {
    this.databases = databases;
    this.server = server;
    this.db1 = db1;
    this.db2 = db2;
    this.env = {
      SLUICE_URL: server.url,
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
    };
  }

  static async start(more: Partial<ServerOptions> = {}): Promise<HandWorld> {
    const databases = await startDatabases();
    const server = await startTestServer(databases, { secretOf: (name) => SECRETS[name], ...more });
    const [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
    await addEndpoint(db2, 'stripe', 'stripe', 'queued', { livemode: 'both' });
    return new HandWorld(databases, server, db1, db2);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await Promise.all([this.db1.end(), this.db2.end()]);
    await this.databases.stop();
  }

  putOnSale(pool: string, slots: number, rules: Record<string, unknown> = {}): Promise<void> {
    return putOnSale(this.db1, pool, slots, {
      confirm_by: 'payment',
      price: PRICE,
      currency: 'eur',
      payment_tenant: 'stripe',
      payment_livemode: false,
      hold_sec: 600,
      max_quantity: 4,
      ...rules,
    });
  }

  async order(pool: string, user: string, quantity = 1): Promise<Order> {
    const body = { user_id: user, quantity, secret: SECRET, request_id: randomUUID() };
    const { status, json, text } = await claim(this.server.url, pool, body);
    if (status !== 201) throw new Error(text);
    const claims = (json.claims ?? [json]).map((one: { claim_id: string }) => one.claim_id);
    return { order_id: json.claim_id, user, claims, amount: quantity * PRICE, pool };
  }

  /** The id of its session. */
  async checkout({ order_id, user }: Order): Promise<string> {
    const { rows } = await this.db1.query(
      `select k.n from public.begin_checkout($1, $2, 'http://127.0.0.1', sha256($3::bytea)) k`,
      [order_id, user, SECRET],
    );
    const session = `cs_test_${++this.#sessions}`;
    await this.db1.query('select public.checkout_created($1, $2, $3, $4)', [
      order_id,
      rows[0].n,
      session,
      'http://127.0.0.1/pay',
    ]);
    return session;
  }

  /** Stripe tells that the session is paid, by this payment. */
  async pay(
    order: Order,
    session: string,
    payment: string,
    change: Record<string, unknown> = {},
  ): Promise<void> {
    const { order_id, user, pool, amount } = order;
    const object = {
      id: session,
      object: 'checkout.session',
      livemode: false,
      status: 'complete',
      payment_status: 'paid',
      payment_intent: payment,
      amount_total: amount,
      currency: 'eur',
      metadata: {
        claim_id: order_id,
        user_id: user,
        verified: 'false',
        pool_id: pool,
        checkout: `${order_id}:1`,
      },
      ...change,
    };
    await this.db2.query(`select public.record_pulled('stripe', $1)`, [object]);
  }

  /** Claims, pays and gets the tickets. */
  async bought(pool: string, user: string, payment: string, quantity = 1): Promise<Order> {
    const order = await this.order(pool, user, quantity);
    await this.pay(order, await this.checkout(order), payment);
    await this.carry();
    await this.bridge();
    return order;
  }

  /** What the courier does until nothing is due. */
  async carry(): Promise<void> {
    for (;;) {
      const { rows } = await this.db2.query('select * from public.outbox_take(10, $1)', [LEASE_SEC]);
      if (rows.length === 0) return;
      for (const row of rows) {
        const result = row.kind === 'settle' ? await this.#settle(row.fact) : await this.#void(row);
        await this.db2.query('select public.outbox_finish($1, $2, $3)', [row.id, row.token, result]);
      }
    }
  }

  /** Carries until `look` says this. */
  async carryUntil(look: () => Promise<string>, wanted: string): Promise<void> {
    while ((await look()) !== wanted) await this.carry();
  }

  async stateOf(claimId: string): Promise<string> {
    const { rows } = await this.db1.query('select state from public.claims where claim_id = $1', [claimId]);
    return rows[0].state;
  }

  async #settle(fact: unknown): Promise<unknown> {
    const { rows } = await this.db1.query(
      'select to_jsonb(s) as answer from public.settle_payment($1, true) s',
      [fact],
    );
    return rows[0].answer;
  }

  async #void({ id, fact }: { id: string; fact: { claim_ids?: string[]; cause: string } }): Promise<unknown> {
    const targets = await this.#targets(fact);
    await this.db2.query('select public.void_order_tickets($1, $2)', [id, JSON.stringify(targets)]);
    const ids = targets.map(({ claim_id }) => claim_id);
    await this.db1.query('select public.finish_void($1, $2)', [ids, fact.cause]);
    return {};
  }

  async #targets(fact: { claim_ids?: string[] }): Promise<{ claim_id: string }[]> {
    const { rows } = await this.db1.query(
      `select coalesce(jsonb_agg(to_jsonb(t)), '[]') as targets from public.void_targets($1, $2) t`,
      [fact, fact.claim_ids ?? null],
    );
    return rows[0].targets;
  }

  /** The ledger's part of a void, as if the intake had been set back to before it; its row ends in this state. */
  async carryWithoutIntake(outboxId: string, state: 'done' | 'due' = 'done'): Promise<void> {
    const { rows } = await this.db2.query('select * from public.outbox_take(10, 0)');
    const row = rows.find(({ id }) => id === outboxId);
    const targets = await this.#targets(row.fact);
    await this.db2.query('select public.void_order_tickets($1, $2)', [row.id, JSON.stringify(targets)]);
    if (state === 'done')
      await this.db2.query(`select public.outbox_finish($1, $2, '{}')`, [row.id, row.token]);
  }

  /** What is on the queue becomes tickets. */
  async bridge(): Promise<void> {
    const { code, stderr } = await sluice(['work', '--once'], this.env).ended;
    if (code !== 0) throw new Error(stderr);
  }

  get(path: string) {
    return ask(`${this.server.url}${path}`, { headers: bearer(ADMIN_KEY) });
  }

  post(path: string, body: unknown) {
    return ask(`${this.server.url}${path}`, { method: 'POST', headers: bearer(ADMIN_KEY), body });
  }
}

// A bridge between two real databases, with the means to break it, and the promises as queries.

import assert from 'node:assert/strict';
import type pg from 'pg';
import { Bridge } from '#core/bridge/bridge.ts';
import { createEndPorts, Ender } from '#core/bridge/ends.ts';
import type { BridgePorts, Hook } from '#core/bridge/ports.ts';
import { createIntake, createLedger } from '#core/bridge/store.ts';
import type { CallFunction } from '#core/call_function.ts';
import { NO_METRICS } from '#core/ports.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { quoteName } from '../../src/db/statement.ts';
import { createLog } from '../../src/log.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { hookAllowing } from './hooks.ts';

/** What claim_batch takes at once. */
const MAX_BATCH = 1_000;

export type Wrap = <Args extends unknown[], Result>(
  name: string,
  call: (...args: Args) => Promise<Result>,
) => (...args: Args) => Promise<Result>;

export interface BridgeSettings {
  /** Stands between the bridge and every call it makes. */
  wrap?: Wrap;
  db2?: Database;
  batchSize?: number;
  leaseSec?: number;
  now?: () => number;
}

const log = createLog('silent');
const asIs: Wrap = (_, call) => call;
/** Far longer than a test; what has to expire is made to expire. */
const LEASE_SEC = 600;

export const openDatabase = (url: string, max = 4): Database =>
  createDatabase({ url, max, applicationName: 'bridge test', log });

export class FaultWorld {
  readonly databases: TestDatabases;
  readonly db1: pg.Client;
  readonly db2: pg.Client;
  readonly #calls1: Database;
  readonly #calls2: Database;

  private constructor(databases: TestDatabases, db1: pg.Client, db2: pg.Client) {
    this.databases = databases;
    this.db1 = db1;
    this.db2 = db2;
    this.#calls1 = openDatabase(databases.db1.url);
    this.#calls2 = openDatabase(databases.db2.url);
  }

  static async start(): Promise<FaultWorld> {
    const databases = await startDatabases();
    const [db1, db2] = await Promise.all([openClient(databases.db1.url), openClient(databases.db2.url)]);
    // A test that stops a database closes these behind their backs.
    for (const client of [db1, db2]) client.on('error', () => undefined);
    await db1.query(`select public.allow_hook_host('127.0.0.1', 'test')`);
    return new FaultWorld(databases, db1, db2);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#calls1.end(), this.#calls2.end(), this.db1.end(), this.db2.end()]);
    await this.databases.stop();
  }

  bridge({
    wrap = asIs,
    db2 = this.#calls2,
    batchSize = 1_000,
    leaseSec = LEASE_SEC,
    now = Date.now,
  }: BridgeSettings = {}): Bridge {
    const calling =
      (side: string, database: Database): CallFunction =>
      (name, args) =>
        wrap(`${side} ${name}`, () => database.call<never>(`public.${quoteName(name)}`, args))();
    const sender = hookAllowing(['127.0.0.1']);
    const hook: Hook = { post: wrap('post', sender.post) };
    const ports: BridgePorts = {
      intake: createIntake(calling('db1', this.#calls1)),
      ledger: () => createLedger(calling('db2', db2)),
      hook,
      log,
      metrics: NO_METRICS,
      now,
      random: Math.random,
    };
    return new Bridge(ports, { batchSize, leaseSec });
  }

  /** Ends what is to end, as a worker does. Returns how many. */
  end(): Promise<number> {
    const calling =
      (database: Database): CallFunction =>
      (name, args) =>
        database.call<never>(`public.${name}`, args);
    return new Ender(createEndPorts(calling(this.#calls1), () => calling(this.#calls2), log)).end(
      new AbortController().signal,
    );
  }

  /** A pool in which each of these users has a claim on the queue. */
  async sell(pool: string, users: readonly string[], rules: Record<string, unknown> = {}): Promise<void> {
    await putOnSale(this.db1, pool, users.length, rules);
    for (let at = 0; at < users.length; at += MAX_BATCH) {
      await this.db1.query(
        `select * from public.claim_batch(array_fill($1::text, array[cardinality($2::text[])]), $2, $2)`,
        [pool, users.slice(at, at + MAX_BATCH)],
      );
    }
  }

  /** All leases and delays run out now. */
  async expireLeases(): Promise<void> {
    await this.db1.query(
      'update pgmq.q_intake_queue set vt = clock_timestamp() where vt > clock_timestamp()',
    );
  }

  async queueDepth(): Promise<number> {
    return (await this.count1('select count(*) from pgmq.q_intake_queue')) ?? 0;
  }

  async count1(sql: string, values: unknown[] = []): Promise<number> {
    return Number((await this.db1.query(sql, values)).rows[0]?.count);
  }

  async count2(sql: string, values: unknown[] = []): Promise<number> {
    return Number((await this.db2.query(sql, values)).rows[0]?.count);
  }

  /** Steps of a fresh worker until the queue is empty. */
  async drain(bridge: Bridge = this.bridge()): Promise<void> {
    const MOST_STEPS = 20;
    for (let step = 0; step < MOST_STEPS; step++) {
      if ((await this.queueDepth()) === 0) return;
      await this.expireLeases();
      await bridge.step(new AbortController().signal);
    }
    assert.equal(await this.queueDepth(), 0, `the queue is not empty after ${MOST_STEPS} steps`);
  }

  /** Everything in both databases that a finish could change, as one value to compare. */
  async state(): Promise<unknown> {
    const { rows } = await this.db1.query(
      `select (select jsonb_agg(c order by c.claim_id) from public.claims c) as claims,
         (select jsonb_agg(s order by s.id) from public.inventory_slots s) as slots,
         (select jsonb_agg(q order by q.msg_id) from pgmq.q_intake_queue q) as queue,
         (select jsonb_agg(d order by d.msg_id) from pgmq.q_intake_dlq d) as letters`,
    );
    const tickets = await this.db2.query('select * from public.confirmed_tickets order by resource_id');
    return [rows[0], tickets.rows];
  }

  /** How each user's claim in a pool stands, in both databases, in one line. */
  async ends(pool: string): Promise<Record<string, string>> {
    const claims = await this.db1.query(
      `select c.claim_id, c.user_id, c.slot_id, c.state, s.status,
         (select count(*)::int from pgmq.q_intake_queue q where q.message ->> 'claim_id' = c.claim_id::text) as messages,
         (select count(*)::int from pgmq.q_intake_dlq d where d.message ->> 'claim_id' = c.claim_id::text) as letters
       from public.claims c join public.inventory_slots s on s.id = c.slot_id where c.pool_id = $1 order by c.user_id`,
      [pool],
    );
    const tickets = await this.db2.query(
      'select resource_id, user_id, claim_id from public.confirmed_tickets where pool_id = $1',
      [pool],
    );
    const ends: Record<string, string> = {};
    for (const claim of claims.rows) {
      const own = tickets.rows.filter(
        (ticket) =>
          ticket.claim_id === claim.claim_id &&
          ticket.resource_id === claim.slot_id &&
          ticket.user_id === claim.user_id,
      );
      ends[claim.user_id] =
        `${claim.state} ${claim.status}, tickets ${own.length}, messages ${claim.messages}, letters ${claim.letters}`;
    }
    const strangers = tickets.rows.length - tickets.rows.filter((ticket) => ticket.user_id in ends).length;
    assert.equal(strangers, 0, 'every ticket belongs to a claim');
    return ends;
  }
}

/** The only ways a claim may end, as `ends` writes them. */
export const TICKET = 'committed CONSUMED, tickets 1, messages 0, letters 0';
export const SOLD_ELSEWHERE = 'committed CONSUMED, tickets 0, messages 0, letters 0';
export const REFUSED = 'refused AVAILABLE, tickets 0, messages 0, letters 0';
export const DEAD = 'dead_letter RESERVED, tickets 0, messages 0, letters 1';

export interface Gate {
  reached: Promise<void>;
  open(): void;
  wrap: Wrap;
}

/** Stalls a worker before its n-th call of this name, as SIGSTOP would: no heartbeat gets out meanwhile. */
export function gateAt(callName: string, nth = 1): Gate {
  let arrive: () => void = () => undefined;
  let open: () => void = () => undefined;
  let calls = 0;
  const reached = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const wrap: Wrap =
    (name, call) =>
    async (...args) => {
      if (name === 'db1 bridge_extend') return [] as never;
      if (name === callName && ++calls === nth) {
        arrive();
        await opened;
      }
      return call(...args);
    };
  return { reached, open, wrap };
}

// Server, worker and DB2 are killed with -9 at random while providers deliver, retry and deliver again. A seed repeats
// what is killed in which order, not the microsecond; SLUICE_WEBHOOK_EVENTS=10000 is the long run.

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { startProxy, type Proxy as WireProxy } from '../bridge/proxy.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../support/databases.ts';
import { type Random, seededRandom } from '../support/load.ts';
import { type Running, startServe, startWork, type Urls } from './processes.ts';
import { addEndpoint, paymentEvent, send } from './world.ts';

const EVENTS = Number(process.env.SLUICE_WEBHOOK_EVENTS ?? 1_500);
const SEED = Number(process.env.SLUICE_WEBHOOK_SEED ?? Date.now() % 1_000_000);
const SENDERS = 24;
const VICTIMS = ['server', 'worker', 'db2'] as const;
/** Deliveries between two kills. */
const CALM_EVENTS = 200;
const AGAIN_MS = 100;
const DRAIN_MS = 60_000;
const SEND_MS = 10_000;

const amountOf = (index: number) => 1 + (index % 97);
const eventIdOf = (index: number) => `evt_k${index}`;
const bodyOf = (index: number) =>
  paymentEvent(eventIdOf(index), {
    amount: amountOf(index),
    amount_received: amountOf(index),
    metadata: { user_id: `user ${index % 50}` },
  });

/** Every promise that does not hold, in words. `count` events with the ids and amounts above were acknowledged. */
async function brokenPromises(db2: pg.Client, count: number): Promise<string[]> {
  const { rows } = await db2.query<{ broken: string }>(
    `with sent as (
       select 'evt_k' || i as event_id, 1 + (i % 97) as amount from generate_series(0, $1::int - 1) i
     )
     select 'lost: ' || s.event_id as broken from sent s
     where not exists (select from public.webhook_events e where e.event_id = s.event_id)
     union all
     select e.status || ': ' || e.event_id || coalesce(' ' || e.error, '') from public.webhook_events e
     where e.status <> 'success'
     union all
     select count(l.id) || ' effects: ' || s.event_id from sent s
     left join public.credit_ledger l on l.event_id = s.event_id and l.amount = s.amount
     group by s.event_id having count(l.id) <> 1
     union all
     select 'sum: ' || t.have || ' instead of ' || t.want from (
       select (select coalesce(sum(amount), 0) from public.credit_ledger) as have, sum(amount) as want from sent
     ) t where t.have <> t.want`,
    [count],
  );
  return rows.map((row) => row.broken);
}

class Chaos {
  readonly #databases: TestDatabases;
  readonly #random: Random;
  readonly #proxy: WireProxy;
  readonly #urls: Urls;
  #db2: TestDatabase;
  #server: Running;
  #worker: Running;
  readonly kills = { server: 0, worker: 0, db2: 0 };

  private constructor(databases: TestDatabases, proxy: WireProxy, parts: [Running, Running, Urls]) {
    this.#databases = databases;
    this.#db2 = databases.db2;
    this.#proxy = proxy;
    this.#random = seededRandom(SEED);
    [this.#server, this.#worker, this.#urls] = parts;
  }

  static async start(databases: TestDatabases): Promise<Chaos> {
    const proxy = await startProxy(databases.db2.url);
    const urls = { db1Url: databases.db1.url, db2Url: proxy.url };
    return new Chaos(databases, proxy, [await startServe(urls), await startWork(urls), urls]);
  }

  /** Another one after each kill of the server. */
  get url(): string {
    return this.#server.url;
  }
  get db2Url(): string {
    return this.#db2.url;
  }

  /** The first three are one of each, then it is up to chance. */
  async killOne(turn: number): Promise<void> {
    const name = VICTIMS[turn < VICTIMS.length ? turn : this.#random.below(VICTIMS.length)] ?? 'worker';
    if (name === 'server') {
      await this.#server.kill();
      this.#server = await startServe(this.#urls);
    } else if (name === 'worker') {
      await this.#worker.kill();
      this.#worker = await startWork(this.#urls);
    } else {
      process.kill(this.#db2.pid, 'SIGKILL');
      await this.#db2.exited;
      this.#db2 = await this.#db2.restart();
      this.#proxy.retarget(this.#db2.url);
    }
    this.kills[name]++;
  }

  /** What was not killed yet. */
  spared(): string[] {
    return VICTIMS.filter((name) => this.kills[name] === 0);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#server.stop(), this.#worker.stop()]);
    await this.#proxy.close();
    await this.#databases.stop();
  }
}

describe('server, worker and DB2 killed at random', () => {
  let chaos: Chaos;
  let agent: Agent;
  before(async () => {
    const databases = await startDatabases();
    const db2 = await openClient(databases.db2.url);
    // Leases short enough for many takeovers; attempts enough for any number of them.
    const settings = { lease_sec: 2, max_attempts: 100, backoff_cap_sec: 1 };
    await addEndpoint(db2, 'inline', 'stripe', 'inline', settings);
    await addEndpoint(db2, 'queued', 'stripe', 'queued', settings);
    await db2.end();
    chaos = await Chaos.start(databases);
    agent = new Agent({ keepAlive: true, maxSockets: SENDERS });
  });
  after(async () => {
    agent?.destroy();
    await chaos?.stop();
  });

  it(`${EVENTS} events, each acknowledged: each took effect once, the sum is right, nothing is stuck`, async (t) => {
    t.diagnostic(`SLUICE_WEBHOOK_SEED=${SEED}`);
    const random = seededRandom(SEED + 1);
    let next = 0;
    let deliveries = 0;
    const acknowledged = new Set<number>();
    /** As a provider: until it is taken; and now and then once more although it was. */
    const deliver = async (index: number): Promise<void> => {
      const url = () => `${chaos.url}/webhooks/${index % 2 === 0 ? 'inline' : 'queued'}`;
      for (;;) {
        const sending = send({ url: url(), provider: 'stripe', body: bodyOf(index), agent });
        const status = await Promise.race([
          sending.then(
            (answer) => answer.status,
            () => 0,
          ),
          pause(SEND_MS, 0, { ref: false }),
        ]);
        if (status === 200 && random() > 0.1) return;
        assert.ok(status === 0 || status === 200 || status >= 500, `answered ${status}`);
        if (status !== 200) await pause(AGAIN_MS);
      }
    };
    // A sender without new events delivers old ones again, until each process has been killed under load.
    const sender = async (): Promise<void> => {
      for (let index = next++; index < EVENTS || chaos.spared().length > 0; index = next++) {
        await deliver(index % EVENTS);
        acknowledged.add(index % EVENTS);
        deliveries++;
      }
    };
    let isSending = true;
    const killing = (async () => {
      for (let turn = 0; isSending; turn++) {
        while (isSending && deliveries < (turn + 1) * CALM_EVENTS) await pause(10);
        if (isSending) await chaos.killOne(turn);
      }
    })();
    await Promise.all(Array.from({ length: SENDERS }, sender)).finally(() => {
      isSending = false;
    });
    await killing;
    t.diagnostic(JSON.stringify(chaos.kills));
    assert.equal(acknowledged.size, EVENTS);
    assert.deepEqual(chaos.spared(), [], 'each was killed');
    const db2 = await openClient(chaos.db2Url);
    try {
      const deadline = Date.now() + DRAIN_MS;
      let broken = await brokenPromises(db2, EVENTS);
      while (broken.length > 0 && Date.now() < deadline) {
        await pause(100);
        broken = await brokenPromises(db2, EVENTS);
      }
      assert.deepEqual(broken.slice(0, 10), []);
    } finally {
      await db2.end();
    }
  });

  it('negative control: the check sees a mark without an effect, an effect twice and a lost event', async () => {
    const db2 = await openClient(chaos.db2Url);
    try {
      await db2.query('begin');
      // Marked before the effect, and then the worker died.
      await db2.query(
        `insert into public.webhook_events (webhook_id, provider, event_id, status)
         select webhook_id, 'stripe', 'evt_k' || $1::int, 'success' from public.webhook_endpoints where name = 'queued'`,
        [EVENTS],
      );
      // The effect without its unique keys.
      await db2.query(
        `insert into public.credit_ledger (user_id, amount, currency, kind, provider, object_id, event_id, business_key)
         select user_id, amount, currency, kind, 'other', object_id, event_id, business_key
         from public.credit_ledger where event_id = 'evt_k0'`,
      );
      const broken = await brokenPromises(db2, EVENTS + 2);
      await db2.query('rollback');
      assert.deepEqual(
        broken.filter((line) => !line.startsWith('sum')).sort(),
        [
          `0 effects: evt_k${EVENTS + 1}`,
          `0 effects: evt_k${EVENTS}`,
          '2 effects: evt_k0',
          `lost: evt_k${EVENTS + 1}`,
        ].sort(),
      );
    } finally {
      await db2.end();
    }
  });
});

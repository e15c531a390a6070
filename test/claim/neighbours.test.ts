// One pool is stuck (an open transaction, lost slots) beside a healthy one. Buyers of the healthy pool must not wait for it.
// The stuck pool stays stuck until the test lets it go, so a buyer who is answered before that has not waited.

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { ClaimRoutes } from '#core/claim.ts';
import { openServerCell } from '../../src/fleet/cells.ts';
import { Fleet } from '../../src/fleet/fleet.ts';
import { createDatabasePorts } from '../../src/fleet/ports.ts';
import { createLog } from '../../src/log.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { askRoutes, memoryPorts } from '../core/support.ts';
import { type Answer, ask, assertRefusal, claim, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { closeAll, openSessions, type Session } from '../support/sessions.ts';

const BUYERS = 100;
const DEADLINE_MS = 10_000;

describe('beside a pool that is stuck', () => {
  let databases: TestDatabases;
  let observer: Session;
  let holder: Session;
  const servers: RunningServer[] = [];
  // One connection per buyer: no request waits for another one outside the server.
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  let rounds = 0;

  before(async () => {
    databases = await startDatabases();
    [observer, holder] = (await openSessions(databases.db1.url, 2)) as [Session, Session];
    for (let count = 0; count < 2; count++) servers.push(await startTestServer(databases));
  });
  afterEach(() => holder.client.query('rollback'));
  after(async () => {
    agent.destroy();
    for (const server of servers) await server.stop();
    await closeAll([observer, holder].filter((session) => session !== undefined));
    await databases?.stop();
  });

  const newPools = async (slots = BUYERS * 4): Promise<[stuck: string, healthy: string]> => {
    const pools: [string, string] = [`stuck_${++rounds}`, `healthy_${rounds}`];
    for (const pool of pools) await putOnSale(observer.client, pool, slots);
    return pools;
  };
  const buy = (pool: string, requestId: string, server = servers[0]) =>
    claim(server?.url ?? '', pool, { user_id: 'ann', request_id: requestId }, {}, agent);
  /** As a buyer's, in a transaction that the test ends. */
  const claimOpenly = async (pool: string) => {
    await holder.client.query('begin');
    await holder.rows(`select * from public.claim_batch(array[$1], '{ann}', '{held}', '{false}')`, [pool]);
  };
  const buyMany = (pool: string, name: string, count = BUYERS, at: RunningServer[] = servers.slice(0, 1)) =>
    Array.from({ length: count }, (_, buyer) => buy(pool, `${name} ${buyer}`, at[buyer % at.length]));
  const statuses = async (answers: Promise<Answer>[]) => {
    const counts: Record<string, number> = {};
    for (const { status, json } of await Promise.all(answers)) {
      const name = `${status} ${json.error?.code ?? json.status}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  };
  /** Whether it is answered by now. */
  const watch = (answer: Promise<unknown>) => {
    const watched = { isAnswered: false };
    void answer.then(() => {
      watched.isAnswered = true;
    });
    return watched;
  };
  const until = async (isSo: () => Promise<boolean>, what: string) => {
    for (const deadline = Date.now() + DEADLINE_MS; !(await isSo()); await delay(2))
      assert.ok(Date.now() < deadline, what);
  };
  const holderIsWaitedFor = () =>
    until(
      () =>
        observer.value<boolean>(
          `select exists (select from pg_stat_activity a where a.application_name like 'sluice-claims%'
             and $1 = any (pg_blocking_pids(a.pid)))`,
          [holder.pid],
        ),
      'no claim has met the open transaction',
    );
  const stuckPools = async () => {
    const { text } = await ask(`${servers[0]?.url}/metrics`);
    return Number(/^sluice_claim_pools_stuck (\d+)$/m.exec(text)?.[1]);
  };

  test('whose request id is in an open transaction, no buyer fails or waits, and of its own buyers only that one does', async () => {
    const [stuck, healthy] = await newPools();
    await claimOpenly(stuck);
    for (let round = 0; round < 3; round++) {
      const held = buy(stuck, 'held');
      const watched = watch(held);
      if (round === 0) await holderIsWaitedFor();
      const neighbours = buyMany(healthy, `round ${round}`);
      const others = buyMany(stuck, `round ${round}`);
      assert.deepEqual(await statuses(neighbours), { '201 queued': BUYERS });
      assert.equal(watched.isAnswered, false, 'the neighbours were first');
      assert.deepEqual(await statuses(others), { '201 queued': BUYERS });
      const refused = await held;
      assertRefusal(refused, 503, 'busy');
      assert.equal(refused.headers['retry-after'], '1');
    }
    await until(async () => (await stuckPools()) === 1, 'the metrics do not say that a pool is stuck');
    await holder.client.query('commit');
    assert.equal((await buy(stuck, 'held')).status, 200, 'the claim of the transaction');
    await until(async () => (await stuckPools()) === 0, 'the pool has not come back');
  });

  test('whose rebuild another session does, no buyer fails or waits, and its own are told busy', async () => {
    const [stuck, healthy] = await newPools();
    await observer.rows('delete from intake.pool_marks where pool_id = $1', [stuck]);
    await holder.client.query('begin');
    await holder.rows('select pg_advisory_xact_lock(intake.pool_lock_key($1))', [stuck]);
    const refused = buyMany(stuck, 'lost', 20);
    const watched = watch(Promise.race(refused));
    for (let round = 0; round < 3; round++)
      assert.deepEqual(await statuses(buyMany(healthy, `round ${round}`)), { '201 queued': BUYERS });
    assert.equal(watched.isAnswered, false, 'the neighbours were first');
    assert.deepEqual(await statuses(refused), { '503 busy': 20 });
    assert.equal((await Promise.all(refused))[0]?.headers['retry-after'], '1');
    await holder.client.query('rollback');
    assert.equal((await buy(stuck, 'lost 0')).status, 201, 'the first claim brings the slots back');
  });

  test('that is being rebuilt by a claim of its own, no buyer waits for that', async () => {
    const [stuck, healthy] = await newPools();
    // A rebuild of a million slots takes seconds; so does this one.
    await observer.client.query(
      `create function public.slow_rebuild() returns trigger language plpgsql as
       $$ begin perform pg_sleep(case new.pool_id when '${stuck}' then 2 else 0 end); return new; end $$`,
    );
    await observer.client.query(
      'create trigger slow_rebuild before insert on intake.pool_marks for each row execute function public.slow_rebuild()',
    );
    try {
      await observer.rows('delete from intake.pool_marks where pool_id = $1', [stuck]);
      const first = buy(stuck, 'first');
      await until(
        () =>
          observer.value<boolean>(
            `select exists (select from pg_stat_activity where application_name like 'sluice-claims%' and wait_event = 'PgSleep')`,
          ),
        'no claim rebuilds the pool',
      );
      const watched = watch(first);
      assert.deepEqual(await statuses(buyMany(healthy, 'meanwhile')), { '201 queued': BUYERS });
      assert.equal(watched.isAnswered, false, 'the neighbours were first');
      assert.equal((await first).status, 201);
    } finally {
      await observer.client.query('drop function public.slow_rebuild() cascade');
    }
  });

  test('whose last slots are in an open transaction and which 1,500 ask for, a claim does not wait for them', async () => {
    const [stuck, healthy] = await newPools(20);
    await holder.client.query('begin');
    await holder.rows('select from public.inventory_slots where pool_id = $1 for update', [stuck]);
    // Without HTTP between: 1,500 connections are work for the test too.
    const log = createLog('silent');
    const cell = openServerCell({ name: 'main', url: databases.db1.url }, true, undefined, log);
    const { claimBatch, cellOf } = createDatabasePorts(new Fleet([cell], log));
    const routes = askRoutes(
      new ClaimRoutes({ ...memoryPorts(), claimBatch, ...(cellOf && { cellOf }) }).routes(),
    );
    const ask = async (pool: string, request_id: string) =>
      (
        await routes({
          method: 'POST',
          path: `/v1/pools/${pool}/claims`,
          body: { user_id: 'ann', request_id },
        })
      ).status;
    const askMany = (name: string, count: number) =>
      Array.from({ length: count }, (_, buyer) => ask(stuck, `${name} ${buyer}`));
    try {
      assert.equal(await ask(healthy, 'before'), 201);
      const crowd = askMany('crowd', 1_500);
      const watched = watch(Promise.race(crowd));
      for (let turn = 0; turn < 5; turn++) assert.equal(await ask(healthy, `turn ${turn}`), 201);
      assert.equal(watched.isAnswered, false, 'the neighbour was first, five times');
      assert.deepEqual(new Set(await Promise.all(crowd)), new Set([503]));
      await holder.client.query('rollback');
      const after = await Promise.all(askMany('after', 21));
      assert.deepEqual(after.sort(), [...Array(20).fill(201), 409]);
    } finally {
      await cell.end();
    }
  });

  test('two servers keep their promises: no neighbour fails, no slot is sold twice, a retry elsewhere is the same claim', async () => {
    const [stuck, healthy] = await newPools();
    await claimOpenly(stuck);
    const held = servers.map((server) => buy(stuck, 'held', server));
    await holderIsWaitedFor();
    const buyAtBoth = (pool: string) =>
      Promise.all([servers, servers.toReversed()].flatMap((order) => buyMany(pool, 'both', BUYERS, order)));
    const others = buyAtBoth(stuck);
    const neighbours = await buyAtBoth(healthy);
    for (const answers of [neighbours, await others]) {
      assert.deepEqual(answers.map(({ status }) => status).sort(), [
        ...Array(BUYERS).fill(200),
        ...Array(BUYERS).fill(201),
      ]);
      const claims = new Map(answers.map(({ json }) => [json.request_id, json.claim_id]));
      for (const { json } of answers) assert.equal(json.claim_id, claims.get(json.request_id));
      assert.equal(new Set(answers.map(({ json }) => json.resource_id)).size, BUYERS);
    }
    assert.deepEqual(await statuses(held), { '503 busy': 2 });
    await holder.client.query('rollback');
    const again = await Promise.all(servers.map((server) => buy(stuck, 'held', server)));
    assert.deepEqual(again.map(({ status }) => status).sort(), [200, 201]);
    assert.equal(again[0]?.json.claim_id, again[1]?.json.claim_id);
  });
});

// Claims that end although a worker has taken them: a discard (N10), a hold that runs out in any state (N14), a release; and
// a claim that keeps how it was committed (N15). The workers are those of `sluice work`.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../src/bridge/crew.ts';
import { createLog } from '../../src/log.ts';
import type { Worker } from '../../src/worker.ts';
import { putOnSale } from '../server/support.ts';
import { WITHOUT_A_TRACE } from '../support/lost_tickets.ts';
import { sluice } from '../work/support.ts';
import { DEAD, FaultWorld, gateAt, SOLD_ELSEWHERE, TICKET } from './fault_support.ts';
import { startProxy } from './proxy.ts';

const noStop = new AbortController().signal;
/** What is promised while a worker runs and the ledger answers. */
const BOUND_MS = 2_000;
const RELEASED = 'released AVAILABLE, tickets 0, messages 0, letters 0';
const EXPIRED = 'expired AVAILABLE, tickets 0, messages 0, letters 0';
const DISCARDED = 'discarded AVAILABLE, tickets 0, messages 0, letters 0';

describe('a claim that a worker has taken', () => {
  let world: FaultWorld;
  let hook: Server;
  let hookUrl: string;
  const answer = 200;

  before(async () => {
    world = await FaultWorld.start();
    hook = createServer((request, response) => {
      request.resume();
      request.on('end', () => response.writeHead(answer).end());
    });
    await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
    hookUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
  });
  after(async () => {
    hook?.closeAllConnections();
    hook?.close();
    await world?.stop();
  });

  const crew = (db2Url = world.databases.db2.url): Worker =>
    startCrew({
      db1Url: world.databases.db1.url,
      db2Url,
      workers: 1,
      batchSize: 100,
      log: createLog('silent'),
      metrics: NO_METRICS,
    });
  const withCrew = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const worker = crew();
    try {
      return await work();
    } finally {
      await worker.stop();
    }
  };
  const end = async (pool: string, user: string): Promise<string | undefined> =>
    (await world.ends(pool))[user];
  const becomes = async (pool: string, user: string, expected: string): Promise<void> => {
    const deadline = Date.now() + BOUND_MS;
    while ((await end(pool, user)) !== expected && Date.now() < deadline) await delay(25);
    assert.equal(await end(pool, user), expected);
  };
  /** Takes what waits, as a worker does that then stalls. */
  const take = async (pool: string) => {
    const { rows } = await world.db1.query(
      `select * from public.bridge_take(array[intake.lane_of($1)], '{100}', 600)`,
      [pool],
    );
    return rows;
  };
  const bury = async (pool: string, reason = '22023: planted') => {
    await world.db1.query(`update pgmq.q_intake_queue set vt = now() where message ->> 'pool_id' = $1`, [
      pool,
    ]);
    for (const { msg_id, read_ct } of await take(pool))
      await world.db1.query(`select * from public.bridge_finish($1, $2, '{dead_letter}', $3, '{0}')`, [
        [msg_id],
        [read_ct],
        [reason],
      ]);
    const { rows } = await world.db1.query(
      `select msg_id from pgmq.q_intake_dlq where message ->> 'pool_id' = $1 order by msg_id`,
      [pool],
    );
    return rows.map(({ msg_id }) => msg_id);
  };
  const discard = async (letters: string[]) =>
    (
      await world.db1.query(`select outcome from public.discard_dead_letters($1, 'olga')`, [letters])
    ).rows.map(({ outcome }) => outcome);
  const reconcile = async () => {
    const env = {
      DB1_URL: world.databases.db1.url,
      DB2_URL: world.databases.db2.url,
    };
    const { stdout } = await sluice(['reconcile', '--fix', '--json'], env).ended;
    return JSON.parse(stdout).differences;
  };

  /** A worker that has taken the pool's message and stalls before it asks the ledger; `goOn` lets it. */
  async function stall(): Promise<() => Promise<unknown>> {
    const { reached, open, wrap } = gateAt('db2 finalize_batch');
    const late = world.bridge({ wrap }).step(noStop);
    await reached;
    return () => {
      open();
      return late;
    };
  }

  test('N10: is discarded from the dead letters, and its stalled worker does not take the seat from the next buyer', async () => {
    await world.sell('n10', ['ann']);
    const goOn = await stall();
    const letters = await bury('n10');
    assert.equal(await end('n10', 'ann'), DEAD);
    await withCrew(async () => {
      await discard(letters);
      await becomes('n10', 'ann', DISCARDED);
    });
    await world.db1.query(`select public.claim_resource_and_queue('n10', 'bob')`);
    await goOn();
    await world.drain();
    const isSeated = { ann: 'discarded CONSUMED, tickets 0, messages 0, letters 0', bob: TICKET };
    assert.deepEqual(await world.ends('n10'), isSeated);
    assert.deepEqual(await reconcile(), []);
    assert.deepEqual(await world.ends('n10'), isSeated);
  });

  test('N14: ends within two seconds of its hold, whatever its message does', async () => {
    const states: Record<string, (pool: string) => Promise<unknown>> = {
      waiting: (pool) =>
        world.db1.query(
          `update pgmq.q_intake_queue set vt = now() + interval '1 hour' where message ->> 'pool_id' = $1`,
          [pool],
        ),
      'backing off': async (pool) => {
        const [{ msg_id, read_ct }] = await take(pool);
        await world.db1.query(`select * from public.bridge_finish($1, $2, '{retry}', '{425}', '{3600000}')`, [
          [msg_id],
          [read_ct],
        ]);
      },
      'being validated': take,
      'a dead letter': (pool) => bury(pool),
    };
    const pools: string[] = [];
    for (const [state, reach] of Object.entries(states)) {
      const pool = `n14 ${state}`;
      await world.sell(pool, ['ann'], { hold_sec: 3, validation_webhook_url: hookUrl });
      await reach(pool);
      pools.push(pool);
    }
    await withCrew(async () => {
      await world.db1.query('select pg_sleep_until(max(hold_until)) from public.claims');
      for (const pool of pools) await becomes(pool, 'ann', EXPIRED);
    });
    const { rows } = await world.db1.query(
      `select pool_id from public.claims where pool_id = any ($1) and freed_at > hold_until + interval '2 seconds'`,
      [pools],
    );
    assert.deepEqual(rows, []);
  });

  test('N15: keeps how it was committed, whatever the rules of its pool say later', async () => {
    await world.db2.query(
      `create function public.own_commit(p_payload jsonb) returns void language sql as $$ select $$`,
    );
    await world.sell('n15 hook', ['ann'], { commit_webhook_url: hookUrl });
    await world.sell('n15 function', ['ann'], { commit_rpc_name: 'own_commit' });
    await world.drain();
    await world.db1.query(
      `update public.engine_config set commit_webhook_url = null, commit_rpc_name = 'finalize_transaction'
       where pool_id like 'n15 %'`,
    );
    assert.deepEqual(await reconcile(), []);
    for (const pool of ['n15 hook', 'n15 function'])
      assert.deepEqual(await world.ends(pool), { ann: SOLD_ELSEWHERE });
    // The other way round: what the ledger sold has its ticket, under whatever rules.
    await world.sell('n15 ledger', ['ann']);
    await world.drain();
    await world.db1.query(
      `update public.engine_config set commit_webhook_url = $1 where pool_id = 'n15 ledger'`,
      [hookUrl],
    );
    await world.db2.query(
      `delete from public.confirmed_tickets where pool_id = 'n15 ledger' and ${WITHOUT_A_TRACE}`,
    );
    assert.deepEqual(
      (await reconcile()).map(({ kind }: { kind: string }) => kind),
      ['claim_without_ticket'],
    );
    await world.db1.query(
      `update public.engine_config set commit_webhook_url = null where pool_id = 'n15 ledger'`,
    );
    await world.drain();
    assert.deepEqual(await world.ends('n15 ledger'), { ann: TICKET });
  });

  test('is released once the ledger knows, and its stalled worker is told that the claim has ended', async () => {
    await world.sell('given', ['ann']);
    const goOn = await stall();
    const { rows } = await world.db1.query(
      `select (public.release_own_claim(claim_id, 'ann')).* from public.claims where pool_id = 'given'`,
    );
    assert.deepEqual([rows[0].state, rows[0].ending], ['queued', true]);
    assert.equal(
      await end('given', 'ann'),
      'queued RESERVED, tickets 0, messages 1, letters 0',
      'it holds its slot',
    );
    await withCrew(() => becomes('given', 'ann', RELEASED));
    assert.deepEqual(((await goOn()) as { outcomes: unknown }).outcomes, { lost_lease: 1 });
    assert.equal(await end('given', 'ann'), RELEASED);
  });

  test('is committed where the ledger had the ticket before it was to end', async () => {
    await world.sell('late', ['ann', 'bob', 'cyd'], { hold_sec: 3600 });
    const taken = await take('late');
    await world.db2.query('select * from public.finalize_batch($1)', [
      JSON.stringify(taken.map(({ message }) => message)),
    ]);
    const [ann, bob] = taken;
    await world.db1.query(`select public.release_own_claim($1, $2)`, [
      ann.message.claim_id,
      ann.message.user_id,
    ]);
    await world.db1.query(`select * from public.bridge_finish($1, '{1}', '{dead_letter}', '{x}', '{0}')`, [
      [bob.msg_id],
    ]);
    const { rows } = await world.db1.query(
      `select msg_id from pgmq.q_intake_dlq where message ->> 'pool_id' = 'late'`,
    );
    assert.deepEqual(await discard([rows[0].msg_id]), ['ending']);
    await world.db1.query(`update public.claims set hold_until = now() where pool_id = 'late'`);
    await withCrew(async () => {
      for (const user of ['ann', 'bob', 'cyd']) await becomes('late', user, TICKET);
    });
    const { rows: claims } = await world.db1.query(
      `select distinct end_as, end_reason, hold_until from public.claims where pool_id = 'late'`,
    );
    assert.deepEqual(claims, [{ end_as: null, end_reason: null, hold_until: null }]);
  });

  test('keeps its slot while the ledger is away, and ends within two seconds of its return', async () => {
    await world.sell('away', ['ann']);
    await take('away');
    const proxy = await startProxy(world.databases.db2.url);
    proxy.retarget('postgres://127.0.0.1:1/');
    const worker = crew(proxy.url);
    try {
      await world.db1.query(
        `select public.release_own_claim(claim_id, 'ann') from public.claims where pool_id = 'away'`,
      );
      await delay(2 * BOUND_MS);
      assert.equal(await end('away', 'ann'), 'queued RESERVED, tickets 0, messages 1, letters 0');
      proxy.retarget(world.databases.db2.url);
      await becomes('away', 'ann', RELEASED);
    } finally {
      await worker.stop();
      await proxy.close();
    }
  });

  test('by hand, discarded and sent again with the same slot, is carried: it leaves no tombstone', async () => {
    await putOnSale(world.db1, 'hand', 1);
    const { rows } = await world.db1.query(
      `update public.inventory_slots set status = 'RESERVED', locked_at = now() where pool_id = 'hand'
       returning jsonb_build_object('pool_id', pool_id, 'resource_id', id, 'user_id', 'zed', 'state', 'queued') as message`,
    );
    const send = () => world.db1.query('select public.intake_queue_send($1)', [rows[0].message]);
    await send();
    assert.deepEqual(await discard(await bury('hand')), ['discarded']);
    await world.db1.query(`update public.inventory_slots set status = 'RESERVED' where pool_id = 'hand'`);
    await send();
    await world.drain();
    assert.deepEqual(await world.ends('hand'), { zed: TICKET });
  });
});

// A worker process has few connections and one ledger. What keeps up one pool uses up neither for the others.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../src/bridge/crew.ts';
import { createLog } from '../../src/log.ts';
import type { Worker } from '../../src/worker.ts';
import { openClient } from '../server/support.ts';
import { FaultWorld } from './fault_support.ts';

const SLOW = ['slow_1', 'slow_2', 'slow_3'];
/** Longer than a call may wait for a connection. */
const SLOW_SEC = 5;
/** Far more than a healthy claim needs on a busy machine, far less than any of these obstacles lasts. */
const SOON_MS = 1_500;
const HELD = 2_000;

let world: FaultWorld;
const lines: string[] = [];

before(async () => {
  world = await FaultWorld.start();
  for (const name of SLOW)
    await world.db2.query(
      `create function public.${name}(p_payload jsonb) returns void language sql as $$ select pg_sleep(${SLOW_SEC}) $$`,
    );
  await world.db2.query(
    `create function public.ends_its_session(p_payload jsonb) returns void language sql
     as $$ select pg_terminate_backend(pg_backend_pid()) $$`,
  );
});

beforeEach(async () => {
  lines.length = 0;
  await world.db1.query('delete from pgmq.q_intake_queue');
});

after(() => world.stop());

const users = (pool: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${pool} ${n + 1}`);

function start(): Worker {
  return startCrew({
    db1Url: world.databases.db1.url,
    db2Url: world.databases.db2.url,
    workers: 2,
    batchSize: 500,
    log: createLog('warn', (line) => void lines.push(line)),
    metrics: NO_METRICS,
  });
}

const saysLedgerIsDown = () => lines.filter((line) => line.includes('the ledger is unavailable'));

/** How long it took, or infinity. */
async function until(isTrue: () => Promise<boolean>, forMs: number): Promise<number> {
  const startedMs = Date.now();
  while (Date.now() - startedMs < forMs) {
    if (await isTrue()) return Date.now() - startedMs;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return Number.POSITIVE_INFINITY;
}

const claimsIn = (pool: string, state: string) =>
  world.count1('select count(*) from public.claims where pool_id = $1 and state::text = $2', [pool, state]);

/** The longest that one of some healthy claims took to be finished. */
async function slowestOf(crew: Worker, name: string, claims: number, everyMs: number): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < claims; n++) {
    const pool = `beside ${name} ${n}`;
    await world.sell(pool, [pool]);
    crew.wake();
    took.push(await until(async () => (await claimsIn(pool, 'committed')) === 1, 2 * SOON_MS));
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  return Math.max(...took);
}

/** A session that holds these rows in an open transaction. */
async function hold(sql: string): Promise<pg.Client> {
  const client = await openClient(world.databases.db1.url);
  await client.query(`begin; ${sql}`);
  return client;
}

test('pools whose own functions are slow do not make the ledger look down, however many they are', async () => {
  for (const name of SLOW) await world.sell(name, users(name, 8), { commit_rpc_name: name });
  const crew = start();
  const slowestMs = await slowestOf(crew, 'slow functions', 12, 400);
  await crew.stop();
  assert.ok(slowestMs < SOON_MS, `${slowestMs} ms`);
  assert.deepEqual(saysLedgerIsDown(), []);
});

test('a function that ends its own session is its own pool’s trouble', async () => {
  await world.sell('deadly', users('deadly', 20), { commit_rpc_name: 'ends_its_session' });
  const crew = start();
  const slowestMs = await slowestOf(crew, 'a deadly function', 12, 50);
  await crew.stop();
  assert.ok(slowestMs < SOON_MS, `${slowestMs} ms`);
  assert.deepEqual(saysLedgerIsDown(), []);
  assert.equal(await claimsIn('deadly', 'queued'), 20, 'and no attempt of its messages is counted');
});

test('claims that another session holds keep up neither other pools nor the end of the worker', async () => {
  await world.sell('held', users('held', HELD));
  const holder = await hold(`select from public.claims where pool_id = 'held' for update`);
  const crew = start();
  const isTaken = async () =>
    (await world.count1('select count(*) from pgmq.q_intake_queue where read_ct > 0')) >= HELD / 2;
  assert.ok((await until(isTaken, 10_000)) < 10_000, 'it has all that a pool may have');
  const slowestMs = await slowestOf(crew, 'held claims', 5, 100);
  assert.ok(slowestMs < SOON_MS, `${slowestMs} ms`);
  const stoppedMs = Date.now();
  await crew.stop();
  assert.ok(Date.now() - stoppedMs < 5_000, `the worker ended after ${Date.now() - stoppedMs} ms`);
  await holder.query('rollback');
  await holder.end();
  await world.expireLeases();
  await world.drain();
  assert.equal(await claimsIn('held', 'committed'), HELD);
});

test('a hold ends on time while another session holds the slot of one that was due before', async () => {
  for (const pool of ['locked', 'open']) await world.sell(pool, [pool], { hold_sec: 60 });
  await world.db1.query(`update pgmq.q_intake_queue set vt = now() + interval '1 hour'`);
  await world.db1.query(
    `update public.claims set hold_until = now() - interval '1 minute' where pool_id in ('locked', 'open')`,
  );
  const holder = await hold(`select from public.inventory_slots where pool_id = 'locked' for update`);
  const crew = start();
  try {
    assert.ok((await until(async () => (await claimsIn('open', 'expired')) === 1, 5_000)) < 2_000);
    assert.equal(await claimsIn('locked', 'queued'), 1);
  } finally {
    await holder.query('rollback');
    await holder.end();
    await crew.stop();
  }
  await world.db1.query('update public.claims set end_due = now() where end_as is not null');
  await world.end();
  assert.equal(await claimsIn('locked', 'expired'), 1);
});

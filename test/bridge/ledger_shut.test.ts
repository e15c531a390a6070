// DB2 runs and answers, but lets the worker do nothing: for longer than all attempts would last, on real databases.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Bridge } from '#core/bridge/bridge.ts';
import type { Database } from '../../src/db/database.ts';
import { FaultWorld, openDatabase, TICKET, type Wrap } from './fault_support.ts';

const USERS = Array.from({ length: 40 }, (_, n) => `user ${n}`);
const RULES = { max_retries: 3 };
const STEPS_WHILE_SHUT = 4 * RULES.max_retries;
/** Longer than the longest pause of a breaker. */
const MINUTE_MS = 60_000;

let world: FaultWorld;
let ledger: Database;
let nowMs = 0;
const asked: string[] = [];

before(async () => {
  world = await FaultWorld.start();
  await world.db2.query(`create role carrier login bypassrls password 'right' in role service_role`);
  const url = new URL(world.databases.db2.url);
  url.username = 'carrier';
  url.password = 'right';
  ledger = openDatabase(url.href, 1);
});

after(async () => {
  await ledger?.end();
  await world.stop();
});

const counting: Wrap =
  (name, call) =>
  (...args) => {
    asked.push(name);
    return call(...args);
  };

/** A batch is a quarter of the users, so that the ledger shuts in the middle of the sale. */
const startBridge = (): Bridge =>
  world.bridge({ db2: ledger, wrap: counting, batchSize: USERS.length / 4, now: () => nowMs });

/** A step in which no lease, no delay and no pause stands in the way. */
async function step(bridge: Bridge): Promise<Readonly<Record<string, number>>> {
  nowMs += MINUTE_MS;
  await world.expireLeases();
  return (await bridge.step(new AbortController().signal)).outcomes;
}

/** Logins are checked when a session begins: those that are open would go on. */
const endSessions = () =>
  world.db2.query(`select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = 'carrier'`);

const deadLetters = () => world.count1('select count(*) from pgmq.q_intake_dlq');

const WAYS_TO_SHUT: Record<string, { shut: string; open: string }> = {
  'changed its password (28P01)': {
    shut: `alter role carrier password 'other'`,
    open: `alter role carrier password 'right'`,
  },
  'forbidden it to log in (28000)': {
    shut: 'alter role carrier nologin',
    open: 'alter role carrier login',
  },
  'taken its right to the function (42501)': {
    shut: 'revoke execute on function public.finalize_batch from service_role',
    open: 'grant execute on function public.finalize_batch to service_role',
  },
};

for (const [what, { shut, open }] of Object.entries(WAYS_TO_SHUT)) {
  test(`the ledger’s operator has ${what}: no claim loses an attempt, and all are committed after the repair`, async () => {
    const pool = `pool: ${what}`;
    await world.sell(pool, USERS, RULES);
    const bridge = startBridge();
    assert.deepEqual(await step(bridge), { committed: USERS.length / 4 });
    await world.db2.query(shut);
    await endSessions();
    asked.length = 0;
    for (let shutFor = 0; shutFor < STEPS_WHILE_SHUT; shutFor++)
      assert.deepEqual(await step(bridge), { outage: USERS.length / 4 });
    assert.equal(
      asked.filter((name) => name.startsWith('db2')).length,
      STEPS_WHILE_SHUT,
      'the ledger is asked once a step',
    );
    const { rows } = await world.db1.query('select max(read_ct) as most from pgmq.q_intake_queue');
    assert.ok(rows[0].most > RULES.max_retries, `delivered ${rows[0].most} times`);
    await world.db2.query(open);
    nowMs += MINUTE_MS;
    await world.drain(bridge);
    assert.equal(await deadLetters(), 0);
    const ends = await world.ends(pool);
    assert.deepEqual(ends, Object.fromEntries(USERS.map((user) => [user, TICKET])));
  });
}

test('a function that a pool commits by is not there yet: that pool waits, and another goes on', async () => {
  await world.sell('own', ['ann', 'bob'], { ...RULES, commit_rpc_name: 'my_commit' });
  await world.sell('usual', ['cleo'], RULES);
  const bridge = startBridge();
  assert.deepEqual(await step(bridge), { outage: 2, committed: 1 });
  for (let shutFor = 0; shutFor < STEPS_WHILE_SHUT; shutFor++)
    assert.deepEqual(await step(bridge), { outage: 2 });
  await world.db2.query(
    `create function public.my_commit(p_payload jsonb) returns void language sql
       as 'select public.finalize_transaction(p_payload)'`,
  );
  assert.deepEqual(await step(bridge), { outage: 2 }, 'it is there, and the worker may not call it');
  await world.db2.query('grant execute on function public.my_commit to service_role');
  assert.deepEqual(await step(bridge), { committed: 2 });
  assert.equal(await deadLetters(), 0);
  assert.deepEqual(await world.ends('own'), { ann: TICKET, bob: TICKET });
});

test('a function that refuses a claim in its own words has refused it: a dead letter, as ever', async () => {
  await world.db2.query(
    `create function public.refuse(p_payload jsonb) returns void language plpgsql
       as $$ begin raise exception 'not you'; end $$;
     grant execute on function public.refuse to service_role`,
  );
  await world.sell('refused', ['ann', 'bob', 'cleo', 'dora'], { ...RULES, commit_rpc_name: 'refuse' });
  const bridge = startBridge();
  for (let tries = 1; tries < RULES.max_retries; tries++) assert.deepEqual(await step(bridge), { retry: 4 });
  assert.deepEqual(await step(bridge), { dead_letter: 4 });
});

// Holds of claims that were never taken, or only handed back by a worker that stopped, end in time. A claim that may be in
// the ledger keeps its slot.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FaultWorld, TICKET, type Wrap } from './fault_support.ts';

const RULES = { hold_sec: 60, commit_rate_per_sec: 1 };
const EXPIRED = /^expired /;

let world: FaultWorld;

before(async () => {
  world = await FaultWorld.start();
});

after(() => world.stop());

const users = (pool: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${pool} ${n + 1}`);

const step = (wrap?: Wrap) => world.bridge(wrap && { wrap }).step(new AbortController().signal);
const stoppedStep = () => world.bridge().step(AbortSignal.abort());

/** The ceiling allows nothing for an hour. */
const useUp = (pool: string) =>
  world.db1.query(
    `insert into intake.pool_allowances as a (pool_id, tokens, filled_at) values ($1, 0, now() + interval '1 hour')
     on conflict (pool_id) do update set tokens = 0, filled_at = excluded.filled_at`,
    [pool],
  );

/** Lets all holds of the pool run out; returns how many claims ended by it at once. */
async function holdsEnd(pool: string): Promise<number> {
  await world.db1.query(
    `update public.claims set hold_until = now() - interval '1 second'
     where pool_id = $1 and hold_until is not null`,
    [pool],
  );
  await world.db1.query('select public.expire_holds()');
  return world.count1(`select count(*) from public.claims where pool_id = $1 and state = 'expired'`, [pool]);
}

/** The slots that are free are sold to others. */
async function sellAgain(pool: string): Promise<number> {
  const { rows } = await world.db1.query(
    `select c.* from generate_series(1, 20) n
     cross join lateral public.claim_batch(array[$1::text], array['again ' || n], array[null::text]) c
     where c.outcome = 'claimed'`,
    [pool],
  );
  return rows.length;
}

/** Carries all that is left, without a ceiling, and tells how many slots and how many dead letters came of it. */
async function settle(pool: string): Promise<{ tickets: number; conflicts: number }> {
  await world.db1.query(
    'update public.engine_config set commit_rate_per_sec = null, hold_sec = null where pool_id = $1',
    [pool],
  );
  await world.drain();
  const tickets = await world.count2('select count(*) from public.confirmed_tickets where pool_id = $1', [
    pool,
  ]);
  const conflicts = await world.count1(
    `select count(*) from pgmq.q_intake_dlq where message ->> 'pool_id' = $1`,
    [pool],
  );
  return { tickets, conflicts };
}

/** The worker dies when the ledger has its tickets; others then take the messages and stop, twice. */
async function dieAfterCommit(pool: string): Promise<void> {
  await world.sell(pool, users(pool, 3), { hold_sec: 60 });
  const wrap: Wrap = (name, call) =>
    name === 'db1 bridge_finish' ? () => Promise.reject(new Error('killed')) : call;
  await assert.rejects(step(wrap), /killed/);
  for (let round = 0; round < 2; round++) {
    await world.expireLeases();
    assert.deepEqual((await stoppedStep()).outcomes, { untried: 3 });
  }
}

/** Replaces a piece of a function; returns how to undo that. */
async function patch(name: string, from: string, to: string): Promise<() => Promise<unknown>> {
  const { rows } = await world.db1.query('select pg_get_functiondef($1::regproc) as text', [name]);
  const text: string = rows[0].text;
  assert.ok(text.includes(from), `${name} does not contain "${from}"`);
  await world.db1.query(text.replaceAll(from, () => to));
  return () => world.db1.query(text);
}

test('holds in a throttled pool run out, the slots are sold again, and each becomes one ticket', async () => {
  await world.sell('throttled', users('throttled', 6), RULES);
  assert.deepEqual((await step()).outcomes, { committed: 1 }, 'the others are not taken');
  await useUp('throttled');
  assert.deepEqual((await step()).outcomes, {});
  assert.equal(await holdsEnd('throttled'), 5, 'never taken, and due');
  assert.equal(await world.queueDepth(), 0);
  assert.equal(await sellAgain('throttled'), 5);
  assert.deepEqual(await settle('throttled'), { tickets: 6, conflicts: 0 });
  const { 'throttled 1': first, ...others } = await world.ends('throttled');
  assert.equal(first, TICKET);
  for (const [user, end] of Object.entries(others)) {
    if (user.startsWith('again')) assert.equal(end, TICKET, user);
    else assert.match(end, /^expired \w+, tickets 0, messages 0, letters 0$/, user);
  }
});

test('a claim that a dead worker may have committed keeps its slot until the ledger is asked, however often it is handed back', async () => {
  await dieAfterCommit('died');
  assert.equal(
    await holdsEnd('died'),
    0,
    'the bridge cannot know how far the dead worker came with any of them',
  );
  assert.equal(await sellAgain('died'), 0);
  assert.equal(await world.end(), 3);
  assert.deepEqual(
    [...new Set(Object.values(await world.ends('died')))],
    [TICKET],
    'it had committed all of them',
  );
  assert.equal(await sellAgain('died'), 0);
  assert.deepEqual(await settle('died'), { tickets: 3, conflicts: 0 });
});

test('negative control: where nothing is remembered of untried deliveries, all holds that were handed back wait for the ledger', async () => {
  const undo = await patch('intake.finish_later', `d.verdict = 'untried' and (`, 'false and (');
  await world.sell('forgetful', users('forgetful', 3), { hold_sec: 60 });
  await stoppedStep();
  assert.equal(await holdsEnd('forgetful'), 0);
  assert.equal(await world.end(), 3);
  await undo();
  await settle('forgetful');
});

test('negative control: where every hand-back counts as untried, a ticket’s slot is sold again', async () => {
  const believes = `q.message -> 'untried' in (`;
  const undo = await patch('intake.finish_later', believes, `true or ${believes}`);
  await dieAfterCommit('gullible');
  assert.equal(await holdsEnd('gullible'), 3);
  assert.match((await world.ends('gullible'))['gullible 1'] ?? '', EXPIRED);
  assert.equal(await sellAgain('gullible'), 3);
  assert.deepEqual(await settle('gullible'), { tickets: 3, conflicts: 3 });
  await undo();
});

// Two workers and one message, a reply that gets lost, a poison among good messages, and the way back from the dead letters.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Bridge } from '#core/bridge/bridge.ts';
import type { Report } from '#core/lease_worker.ts';
import { openClient } from '../server/support.ts';
import { DEAD, FaultWorld, gateAt, openDatabase, TICKET } from './fault_support.ts';
import { startProxy } from './proxy.ts';

const noStop = new AbortController().signal;

let world: FaultWorld;
let hook: Server;
let hookUrl: string;
let answers: number[] = [];

before(async () => {
  world = await FaultWorld.start();
  hook = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(answers.shift() ?? 200).end());
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  hookUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
});

after(async () => {
  hook.closeAllConnections();
  hook.close();
  await world.stop();
});

/** Polls, because the lease is the database's own clock: another worker gets the message once it has run out. */
async function takeOver(bridge: Bridge): Promise<Report> {
  const DEADLINE_MS = 30_000;
  const started = Date.now();
  for (;;) {
    const report = await bridge.step(noStop);
    if (report.total > 0) return report;
    assert.ok(Date.now() - started < DEADLINE_MS, 'the lease never ran out');
  }
}

const SHORT_LEASE = { visibility_timeout_sec: 1 };

test('a worker stalled past its lease finds its message finished: one ticket, one finish, and nothing changes', async () => {
  for (const callName of ['db2 finalize_batch', 'db1 bridge_finish']) {
    const pool = `stalled before ${callName}`;
    await world.sell(pool, ['ann'], SHORT_LEASE);
    const gate = gateAt(callName);
    const late = world.bridge({ wrap: gate.wrap, leaseSec: 1 }).step(noStop);
    await gate.reached;
    assert.deepEqual((await takeOver(world.bridge({ leaseSec: 1 }))).outcomes, { committed: 1 });
    const state = await world.state();
    gate.open();
    assert.deepEqual((await late).outcomes, { lost_lease: 1 });
    assert.deepEqual(await world.state(), state);
    assert.deepEqual(await world.ends(pool), { ann: TICKET });
  }
});

/** The first worker was told no, late; the second was told yes, and the ledger has the ticket when the first wakes up. */
async function lateRefusal(pool: string) {
  await world.sell(pool, ['ann'], { ...SHORT_LEASE, validation_webhook_url: hookUrl });
  answers = [422, 200];
  const first = gateAt('db1 bridge_finish');
  const late = world.bridge({ wrap: first.wrap, leaseSec: 1 }).step(noStop);
  await first.reached;
  // The second worker remembers its yes by a finish, and stalls before the one that ends the delivery.
  const second = gateAt('db1 bridge_finish', 2);
  const winner = takeOver(world.bridge({ wrap: second.wrap, leaseSec: 60 }));
  await second.reached;
  const state = await world.state();
  first.open();
  const lateOutcomes = (await late).outcomes;
  const isUnchanged = JSON.stringify(await world.state()) === JSON.stringify(state);
  second.open();
  await winner;
  return { lateOutcomes, isUnchanged, end: (await world.ends(pool)).ann };
}

test('a refusal that comes after the lease was taken over does not free a slot that has a ticket', async () => {
  assert.deepEqual(await lateRefusal('late refusal'), {
    lateOutcomes: { lost_lease: 1 },
    isUnchanged: true,
    end: TICKET,
  });
});

/** The first worker has committed, and its finish is late; the second holds the message and is about to commit. */
async function lateFinish(pool: string) {
  await world.sell(pool, ['ann'], SHORT_LEASE);
  const first = gateAt('db1 bridge_finish');
  const late = world.bridge({ wrap: first.wrap, leaseSec: 1 }).step(noStop);
  await first.reached;
  const second = gateAt('db2 finalize_batch');
  const winner = takeOver(world.bridge({ wrap: second.wrap, leaseSec: 60 }));
  await second.reached;
  const state = await world.state();
  first.open();
  const lateOutcomes = (await late).outcomes;
  const isUnchanged = JSON.stringify(await world.state()) === JSON.stringify(state);
  second.open();
  return {
    lateOutcomes,
    isUnchanged,
    winnerOutcomes: (await winner).outcomes,
    end: (await world.ends(pool)).ann,
  };
}

test('a finish that comes after the lease was taken over leaves the message to its new holder', async () => {
  assert.deepEqual(await lateFinish('late finish'), {
    lateOutcomes: { lost_lease: 1 },
    isUnchanged: true,
    winnerOutcomes: { committed: 1 },
    end: TICKET,
  });
});

/** What stands there, and what stands there without it. */
type Fence = readonly [there: string, without: string];

const FENCES_OF_TICKETS: Fence[] = [
  ['and ((q.msg_id, q.read_ct) in (select * from unnest(p_msg_ids, p_read_cts))) is true', ''],
];
/** A late refusal is stopped twice: the message is another's, and it counts as validated. */
const FENCES_OF_REFUSALS: Fence[] = [
  [' and t.read_ct = q.read_ct', ''],
  [`then 'untried'`, 'then t.verdict'],
];

async function withoutFences(name: string, fences: Fence[], during: () => Promise<void>): Promise<void> {
  const { rows } = await world.db1.query('select pg_get_functiondef($1::regproc) as definition', [name]);
  const fenced: string = rows[0].definition;
  let unfenced = fenced;
  for (const [there, without] of fences) {
    assert.ok(unfenced.includes(there), 'the fence is where this test removes it');
    unfenced = unfenced.replaceAll(there, without);
  }
  await world.db1.query(unfenced);
  try {
    await during();
  } finally {
    await world.db1.query(fenced);
  }
}

test('negative control: with the fences removed the late refusal frees a slot that has a ticket', () =>
  withoutFences('intake.held_deliveries', FENCES_OF_REFUSALS, async () => {
    const { lateOutcomes, isUnchanged, end } = await lateRefusal('no fence');
    assert.deepEqual(lateOutcomes, { refused: 1 });
    assert.equal(isUnchanged, false);
    assert.equal(
      end,
      'refused AVAILABLE, tickets 1, messages 0, letters 0',
      'a seat on sale that has a ticket',
    );
  }));

test('negative control: with the fence removed the late finish takes the message from its new holder', () =>
  withoutFences('intake.finish_committed', FENCES_OF_TICKETS, async () => {
    const { lateOutcomes, isUnchanged, winnerOutcomes } = await lateFinish('no fence around tickets');
    assert.deepEqual(lateOutcomes, { committed: 1 });
    assert.equal(isUnchanged, false);
    assert.deepEqual(winnerOutcomes, { lost_lease: 1 });
  }));

test('a reply cut after DB2 committed is an outage, and the next delivery finds the tickets there', async () => {
  await world.sell('cut', ['ann', 'bob', 'cyd']);
  const proxy = await startProxy(world.databases.db2.url);
  const db2 = openDatabase(proxy.url, 1);
  let offsetMs = 0;
  try {
    const bridge = world.bridge({ db2, now: () => Date.now() + offsetMs });
    const cut = proxy.cutReplyTo('finalize_batch');
    const report = await bridge.step(noStop);
    await cut;
    assert.deepEqual(report.outcomes, { outage: 3 });
    assert.equal(
      await world.count2(`select count(*) from public.confirmed_tickets where pool_id = 'cut'`),
      3,
    );
    assert.equal(
      await world.count1(`select count(*) from public.claims where pool_id = 'cut' and state = 'queued'`),
      3,
    );
    offsetMs = 60_000;
    await world.expireLeases();
    assert.deepEqual((await bridge.step(noStop)).outcomes, { committed: 3 });
    assert.deepEqual(await world.ends('cut'), { ann: TICKET, bob: TICKET, cyd: TICKET });
  } finally {
    await db2.end();
    await proxy.close();
  }
});

test('one poison among 99 good: 99 tickets and one dead letter, in one pass', async () => {
  await world.db2.query(
    `alter table public.confirmed_tickets add constraint no_poison check (user_id <> 'poison')`,
  );
  const users = Array.from({ length: 100 }, (_, n) => (n === 41 ? 'poison' : `user ${n}`));
  await world.sell('poisoned', users);
  assert.deepEqual((await world.bridge().step(noStop)).outcomes, { committed: 99, dead_letter: 1 });
  const expected = Object.fromEntries(users.map((user) => [user, user === 'poison' ? DEAD : TICKET]));
  assert.deepEqual(await world.ends('poisoned'), expected);
});

test('whatever is put on the queue by hand, the messages beside it are carried in the same pass', async () => {
  await world.sell('beside', ['ann']);
  await world.db1.query(
    `select public.intake_queue_send(m) from unnest(array[
       'null', '[]', '"x"', '7', '{}', '{"pool_id": "beside"}', '{"pool_id": "beside", "forgiven": 1e99}',
       '{"pool_id": "beside", "forgiven": 0.5, "claim_id": "x", "resource_id": 5}'
     ]::jsonb[]) m`,
  );
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const stranger = { pool_id: 'beside', resource_id: '00000000-0000-4000-8000-000000000001', user_id: 'u' };
  await world.db1.query(
    `select public.intake_queue_send($1::jsonb || jsonb_build_object('note', $2::jsonb))`,
    [stranger, deep(5_000)],
  );
  await world.db1.query(
    `select public.intake_queue_send($1::jsonb || jsonb_build_object('note', repeat('x', 100000)))`,
    [stranger],
  );
  await world.sell('beside too', ['bob']);
  assert.deepEqual((await world.bridge().step(noStop)).outcomes, { committed: 2, dead_letter: 10 });
  const { rows } = await world.db1.query(
    `select d.message ->> 'reason' as reason, count(*)::int from pgmq.q_intake_dlq d
     where d.message ->> 'reason' like 'malformed%' group by 1 order by 1`,
  );
  assert.deepEqual(rows, [
    { reason: 'malformed: nested too deeply', count: 1 },
    { reason: 'malformed: not an object', count: 4 },
    { reason: 'malformed: pool_id', count: 1 },
    { reason: 'malformed: resource_id', count: 3 },
    { reason: 'malformed: too large', count: 1 },
  ]);
});

const letterOf = async (pool: string): Promise<number> =>
  Number((await world.db1.query('select msg_id from public.list_dead_letters($1)', [pool])).rows[0]?.msg_id);
const auditRows = (letter: number): Promise<number> =>
  world.count1(`select count(*) from audit.audit_logs where subject = 'dead letter ' || $1`, [letter]);

test('a replay after the cause is fixed gives one ticket and one audit row, also when it was killed halfway', async () => {
  const letter = await letterOf('poisoned');
  await world.db2.query('alter table public.confirmed_tickets drop constraint no_poison');
  const doomed = await openClient(world.databases.db1.url);
  doomed.on('error', () => undefined);
  await doomed.query('begin');
  const halfway = await doomed.query(
    `select outcome from public.replay_dead_letters(array[$1::bigint], 'olga')`,
    [letter],
  );
  assert.deepEqual(halfway.rows, [{ outcome: 'replayed' }]);
  const { rows: pids } = await doomed.query('select pg_backend_pid() as pid');
  await world.db1.query('select pg_terminate_backend($1, 10000)', [pids[0].pid]);
  await doomed.end().catch(() => undefined);
  assert.equal((await world.ends('poisoned')).poison, DEAD, 'a replay that did not commit has not happened');
  assert.equal(await auditRows(letter), 0);

  const again = await world.db1.query(
    `select outcome from public.replay_dead_letters(array[$1::bigint], 'olga')`,
    [letter],
  );
  assert.deepEqual(again.rows, [{ outcome: 'replayed' }]);
  await world.drain();
  assert.equal((await world.ends('poisoned')).poison, TICKET);
  assert.equal(await auditRows(letter), 1);
});

test('a replay sent twice in parallel goes round once', async () => {
  await world.db2.query(
    `alter table public.confirmed_tickets add constraint no_poison check (user_id <> 'venom')`,
  );
  await world.sell('twice', ['venom']);
  await world.bridge().step(noStop);
  await world.db2.query('alter table public.confirmed_tickets drop constraint no_poison');
  const letter = await letterOf('twice');
  const sessions = await Promise.all([1, 2, 3].map(() => openClient(world.databases.db1.url)));
  try {
    const outcomes = await Promise.all(
      sessions.map((session) =>
        session.query(`select outcome from public.replay_dead_letters(array[$1::bigint], 'olga')`, [letter]),
      ),
    );
    assert.deepEqual(outcomes.map(({ rows }) => rows[0].outcome).sort(), [
      'not_found',
      'not_found',
      'replayed',
    ]);
  } finally {
    await Promise.all(sessions.map((session) => session.end()));
  }
  await world.drain();
  assert.deepEqual(await world.ends('twice'), { venom: TICKET });
  assert.equal(await auditRows(letter), 1);
});

// Workers as processes, ended by a real kill -9 between the take and the commit: deaths of workers bury no healthy claim, and a
// message that kills its worker is one dead letter, alone. What the hook of the pools does not answer is held until its worker dies.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Sluice, sluice } from '../work/support.ts';
import { FaultWorld, TICKET } from './fault_support.ts';

const CLAIMS = 50;
/** Ten takeovers end a message; a worker that starts before its neighbours' leases are over may die once more. */
const MOST_DEATHS = 20;
const LOOK_EVERY_MS = 50;
const DEADLINE_MS = 60_000;
const DEADLY = 'haunted 7';

let world: FaultWorld;
let hook: Server;
let rules: Record<string, unknown>;
/** What the hook does with a claim of this user. */
let answer: (user: string, response: ServerResponse) => void;
const running = new Set<Sluice>();

before(async () => {
  world = await FaultWorld.start();
  hook = createServer((request, response) => {
    text(request).then(
      (body) => answer(JSON.parse(body).user_id, response),
      // Its worker was killed while it sent.
      () => undefined,
    );
  });
  hook.listen(0, '127.0.0.1');
  await once(hook, 'listening');
  rules = { validation_webhook_url: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/` };
});
afterEach(() => Promise.all([...running].map(kill)));
after(async () => {
  hook.closeAllConnections();
  hook.close();
  await world.stop();
});

const yes = (response: ServerResponse) => response.writeHead(200).end();
const users = (pool: string) => Array.from({ length: CLAIMS }, (_, n) => `${pool} ${n}`);

function startWorker(): Sluice {
  const worker = sluice(['work', '--json'], {
    DB1_URL: world.databases.db1.url,
    DB2_URL: world.databases.db2.url,
  });
  running.add(worker);
  return worker;
}

async function kill(worker: Sluice): Promise<void> {
  worker.child.kill('SIGKILL');
  await worker.ended;
  running.delete(worker);
}

/** Two workers at once carry what is left. */
async function carryOn(): Promise<void> {
  answer = (_, response) => yes(response);
  const workers = [startWorker(), startWorker()];
  await untilEmpty(() => workers.some(({ child }) => child.exitCode !== null));
  assert.equal(await world.queueDepth(), 0, 'a worker ended by itself');
  for (const worker of workers) worker.child.kill('SIGTERM');
  for (const worker of workers) assert.equal((await worker.ended).code, 0);
  for (const worker of workers) running.delete(worker);
}

test(`nine and then thirty workers, killed between take and commit, leave ${CLAIMS} healthy claims to become tickets`, async () => {
  await world.sell('mourned', users('mourned'), rules);
  const deadLetters = () => world.count1('select count(*) from pgmq.q_intake_dlq');
  const taken = () => world.count1('select sum(read_ct) as count from pgmq.q_intake_queue');
  let before = 0;
  // The hook never answers: what a worker has taken cannot come to its commit.
  answer = () => undefined;
  for (let death = 1; death <= 30; death++) {
    const worker = startWorker();
    while ((await taken()) <= before) {
      assert.equal(worker.child.exitCode, null, 'it ended by itself');
      await pause(LOOK_EVERY_MS);
    }
    await kill(worker);
    await world.expireLeases();
    before = await taken();
    if (death === 9) assert.equal(await deadLetters(), 0, 'after nine deaths');
  }
  const tickets = await world.count2('select count(*) from public.confirmed_tickets');
  assert.equal(tickets, 0, 'none came as far as its commit');
  await carryOn();
  assert.deepEqual([...new Set(Object.values(await world.ends('mourned')))], [TICKET]);
  assert.equal(await deadLetters(), 0);
});

test('a message that kills each worker that has it is one dead letter, and its neighbours are tickets', async () => {
  await world.sell('haunted', users('haunted'), rules);
  let deaths = 0;
  for (; (await world.queueDepth()) > 0; deaths++) {
    assert.ok(deaths < MOST_DEATHS, `${await world.queueDepth()} messages are left after ${deaths} deaths`);
    const worker = startWorker();
    answer = (user, response) => {
      if (user === DEADLY) worker.child.kill('SIGKILL');
      else yes(response);
    };
    await untilEmpty(() => worker.child.exitCode !== null || worker.child.signalCode !== null);
    await kill(worker);
    await world.expireLeases();
  }
  const { [DEADLY]: killer, ...others } = await world.ends('haunted');
  assert.equal(killer, 'dead_letter RESERVED, tickets 0, messages 0, letters 1');
  assert.deepEqual([...new Set(Object.values(others))], [TICKET]);
  const { rows } = await world.db1.query(`select message ->> 'reason' as reason from pgmq.q_intake_dlq`);
  assert.deepEqual(rows, [{ reason: 'takeovers: 10 workers were lost with it' }]);
});

/** Until no message is left, or `isOver`. */
async function untilEmpty(isOver: () => boolean): Promise<void> {
  const untilMs = Date.now() + DEADLINE_MS;
  while (!isOver() && (await world.queueDepth()) > 0) {
    assert.ok(Date.now() < untilMs, `${await world.queueDepth()} messages are left`);
    await pause(LOOK_EVERY_MS);
  }
}

// One pool's slow hook, failing function or deadly message does not hold up, fail or bury the claims of another.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { FaultWorld, TICKET, type Wrap } from './fault_support.ts';
import { Mortal } from './mortal.ts';

const neverAborted = new AbortController().signal;
const CLAIMS = 50;

let world: FaultWorld;
let hook: Server;
let hookUrl: string;
/** Lets the slow hook answer all that wait for it. */
let answerAll: () => void;

before(async () => {
  world = await FaultWorld.start();
  await world.db2.query(
    `create function public.calls_another_database(p_payload jsonb) returns void language plpgsql
     as $$ begin raise exception 'could not connect to server "elsewhere"' using errcode = '08001'; end $$`,
  );
  const waiting: (() => void)[] = [];
  answerAll = () => {
    for (const answer of waiting.splice(0)) answer();
  };
  hook = createServer((request, response) => {
    request.resume();
    waiting.push(() => response.writeHead(200).end());
  });
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  hookUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/commit`;
});

beforeEach(async () => {
  await world.db1.query('delete from pgmq.q_intake_queue');
  await world.db1.query('delete from pgmq.q_intake_dlq');
});

after(async () => {
  hook.closeAllConnections();
  hook.close();
  await world.stop();
});

const users = (pool: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${pool} ${n + 1}`);
const ticketsOf = (pool: string) =>
  world.count2('select count(*) from public.confirmed_tickets where pool_id = $1', [pool]);
const endsOf = async (pool: string) => [...new Set(Object.values(await world.ends(pool)))];

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
}

for (const column of ['commit_webhook_url', 'validation_webhook_url'])
  test(`claims become tickets while a ${column} of another pool gives no answer`, async () => {
    const [slow, healthy] = [`slow ${column}`, `healthy beside ${column}`];
    await world.sell(slow, users(slow, 40), { [column]: hookUrl });
    const stopping = new AbortController();
    // Both workers have all that they may hold of the slow pool.
    const workers = [world.bridge({ batchSize: 20 }), world.bridge({ batchSize: 20 })];
    const running = workers.map((bridge) => bridge.run(stopping.signal));
    await until(
      async () => (await world.count1('select count(*) from pgmq.q_intake_queue where read_ct > 0')) === 40,
    );
    await world.sell(healthy, users(healthy, CLAIMS));
    for (const bridge of workers) bridge.wake();
    await until(async () => (await world.queueDepth()) === 40);
    assert.equal(await ticketsOf(healthy), CLAIMS);
    assert.deepEqual(await endsOf(healthy), [TICKET], 'they are finished too');
    const answering = setInterval(answerAll, 10);
    await until(async () => (await world.queueDepth()) === 0);
    clearInterval(answering);
    stopping.abort();
    await Promise.all(running);
  });

test('a function that says the connection is lost is its own pool’s trouble, and counts as an attempt', async () => {
  await world.sell('far', ['ann'], { commit_rpc_name: 'calls_another_database' });
  await world.sell('near', users('near', CLAIMS));
  const { outcomes, pausedUntilMs } = await world.bridge().step(neverAborted);
  assert.deepEqual([outcomes, pausedUntilMs], [{ committed: CLAIMS, retry: 1 }, 0]);
});

for (const deaths of [9, 30])
  test(`${deaths} workers that die between take and commit leave ${CLAIMS} healthy claims to become tickets`, async () => {
    const pool = `mourned ${deaths}`;
    await world.sell(pool, users(pool, CLAIMS));
    for (let death = 1; death <= deaths; death++) {
      // Its third call asks for the configuration of what it took.
      const mortal = new Mortal(3, 'after');
      const step = world.bridge({ wrap: mortal.wrap }).step(neverAborted);
      await Promise.race([step, mortal.died]);
      assert.ok(mortal.isDead);
      await mortal.bury(step);
      await world.expireLeases();
    }
    await world.bridge().drain(neverAborted);
    assert.deepEqual(await endsOf(pool), [TICKET]);
    assert.equal(await world.count1('select count(*) from pgmq.q_intake_dlq'), 0);
  });

/** A worker that dies when it commits what it took with this user's message: its calls get no answer until it is buried. */
class Victim {
  readonly #user: string;
  readonly #limbo: Promise<never>;
  #hasTaken = false;
  #isDead = false;
  #die: () => void = () => undefined;
  bury: () => void = () => undefined;
  readonly died: Promise<void>;

  constructor(user: string) {
    this.#user = user;
    this.died = new Promise((resolve) => {
      this.#die = resolve;
    });
    this.#limbo = new Promise((_, reject) => {
      this.bury = () => reject(new Error('buried'));
    });
    this.#limbo.catch(() => undefined);
  }

  readonly wrap: Wrap =
    (name, call) =>
    async (...args) => {
      if (!this.#isDead && this.#hasTaken && name === 'db2 finalize_batch') {
        this.#isDead = true;
        this.#die();
      }
      if (this.#isDead) return this.#limbo;
      const answer = await call(...args);
      if (name.startsWith('db1 bridge_take') && JSON.stringify(answer).includes(`"${this.#user}"`))
        this.#hasTaken = true;
      return answer;
    };
}

test('a message that kills each worker that commits it is one dead letter, and its neighbours are tickets', async () => {
  await world.sell('haunted', users('haunted', CLAIMS));
  let deaths = 0;
  for (; (await world.queueDepth()) > 0; deaths++) {
    assert.ok(deaths < 20, `${await world.queueDepth()} messages are left after ${deaths} deaths`);
    const victim = new Victim('haunted 7');
    const drained = world.bridge({ wrap: victim.wrap }).drain(neverAborted);
    await Promise.race([drained, victim.died]);
    victim.bury();
    await drained.catch(() => undefined);
    await world.expireLeases();
  }
  const { 'haunted 7': killer, ...others } = await world.ends('haunted');
  assert.match(killer ?? '', /^dead_letter RESERVED, tickets 0, messages 0, letters 1$/);
  assert.deepEqual([...new Set(Object.values(others))], [TICKET]);
  const { rows } = await world.db1.query(`select message ->> 'reason' as reason from pgmq.q_intake_dlq`);
  assert.deepEqual(rows, [{ reason: 'takeovers: 10 workers were lost with it' }]);
});

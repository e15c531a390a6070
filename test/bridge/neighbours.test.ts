// One pool's slow hook or failing function does not hold up or fail the claims of another.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { FaultWorld, TICKET } from './fault_support.ts';

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

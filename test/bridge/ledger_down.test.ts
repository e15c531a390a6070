// DB2 is down for longer than all attempts would last, with workers running and 10,000 claims queued.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startWorker } from '../../src/worker.ts';
import { openClient } from '../server/support.ts';
import { FaultWorld, openDatabase } from './fault_support.ts';
import { startProxy } from './proxy.ts';

const CLAIMS = 10_000;
const RULES = { visibility_timeout_sec: 1, max_retries: 2 };
const ALL_ATTEMPTS_MS = RULES.visibility_timeout_sec * RULES.max_retries * 1_000;
const WORKERS = 2;
const POLL_MS = 50;
const DEADLINE_MS = 60_000;

let world: FaultWorld;

before(async () => {
  world = await FaultWorld.start();
});

after(() => world.stop());

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const started = Date.now();
  while (!(await isTrue())) {
    assert.ok(Date.now() - started < DEADLINE_MS, `still waiting until ${what}`);
    await pause(POLL_MS);
  }
}

const committed = () => world.count1(`select count(*) from public.claims where state = 'committed'`);

test('after an outage longer than all attempts everything drains: none dead, none lost, none twice', async () => {
  const users = Array.from({ length: CLAIMS }, (_, n) => `user ${n}`);
  await world.sell('sale', users, RULES);
  const proxy = await startProxy(world.databases.db2.url);
  const ledgers = Array.from({ length: WORKERS }, () => openDatabase(proxy.url, 1));
  const workers = ledgers.map((db2) => startWorker(world.bridge({ db2, batchSize: 200, leaseSec: 1 })));
  try {
    await until('the drain has begun', async () => (await committed()) > 0);
    await world.databases.db2.stop('immediate');
    const downSince = Date.now();
    const before = await committed();
    assert.ok(before < CLAIMS, 'DB2 went down in the middle of it');
    await until('messages were delivered more often than they have attempts', async () => {
      const { rows } = await world.db1.query('select max(read_ct) as most from pgmq.q_intake_queue');
      return rows[0].most > RULES.max_retries && Date.now() - downSince > ALL_ATTEMPTS_MS;
    });
    const restarted = await world.databases.db2.restart();
    proxy.retarget(restarted.url);
    await until('all is drained', async () => (await world.queueDepth()) === 0);
    assert.equal(await committed(), CLAIMS);
    assert.equal(await world.count1('select count(*) from pgmq.q_intake_dlq'), 0);
    const ledger = await openClient(restarted.url);
    try {
      const { rows: tickets } = await ledger.query(
        'select claim_id, resource_id, user_id from public.confirmed_tickets order by claim_id',
      );
      const { rows: claims } = await world.db1.query(
        'select claim_id, slot_id as resource_id, user_id from public.claims order by claim_id',
      );
      assert.equal(tickets.length, CLAIMS);
      assert.deepEqual(tickets, claims, 'the ledger has exactly the claims of the intake');
    } finally {
      await ledger.end();
    }
    assert.equal(
      await world.count1(`select count(*) from public.inventory_slots where status = 'CONSUMED'`),
      CLAIMS,
    );
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()));
    await Promise.all(ledgers.map((ledger) => ledger.end()));
    await proxy.close();
  }
});

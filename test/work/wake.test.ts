import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../src/bridge/crew.ts';
import type { Worker } from '../../src/bridge/worker.ts';
import { startListener } from '../../src/db/listener.ts';
import { createLog } from '../../src/log.ts';
import { createWake } from '../../src/server/wake.ts';
import { claim, openClient, putOnSale, startTestServer } from '../door/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const log = createLog('silent');

describe('a claim wakes the workers', () => {
  let databases: TestDatabases;
  let db1: pg.Client;

  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'p', 100);
  });
  after(async () => {
    await db1?.end();
    await databases?.stop();
  });

  it('a claim at the door is a ticket within a second', async () => {
    let crew: Worker | undefined;
    const server = await startTestServer(databases);
    let onCommitted = (): void => undefined;
    try {
      crew = startCrew(
        {
          db1Url: databases.db1.url,
          db2Url: databases.db2.url,
          workers: 2,
          batchSize: 100,
          allowedHosts: new Set(),
          metrics: NO_METRICS,
          log,
        },
        ({ outcomes }) => {
          if (outcomes.committed) onCommitted();
        },
      );
      // The first round trip opens the connections; the second is what a buyer waits for.
      for (const user of ['first', 'second']) {
        const committed = new Promise<void>((resolve) => {
          onCommitted = resolve;
        });
        const startedAt = performance.now();
        assert.equal((await claim(server.url, 'p', { user_id: user })).status, 201);
        await committed;
        assert.ok(performance.now() - startedAt < 1_000, `took ${performance.now() - startedAt} ms`);
      }
    } finally {
      await crew?.stop();
      await server.stop();
    }
  });

  it('the word goes out after the claim has committed, and not in its transaction', async () => {
    const server = await startTestServer(databases);
    const other = await openClient(databases.db1.url);
    try {
      await other.query('listen sluice_intake');
      const notified = once(other, 'notification');
      await claim(server.url, 'p', { user_id: 'listened' });
      await notified;
      const { rows } = await other.query(`select state from public.claims where user_id = 'listened'`);
      assert.equal(rows.length, 1, 'whoever is woken sees the claim');
      const direct = once(other, 'notification', { signal: AbortSignal.timeout(300) });
      await db1.query(`select public.claim_resource_and_queue('p', 'direct')`);
      await assert.rejects(direct, { name: 'AbortError' }, 'the claim itself notifies nobody');
    } finally {
      await other.end();
      await server.stop();
    }
  });

  it('a listener that lost its connection connects again and makes up for what it missed', async () => {
    let notices = 0;
    let onNotice = (): void => undefined;
    const nextNotice = () =>
      new Promise<void>((resolve) => {
        onNotice = resolve;
      });
    const first = nextNotice();
    const listener = startListener({
      url: databases.db1.url,
      channel: 'sluice_intake',
      log,
      onNotice: () => {
        notices++;
        onNotice();
      },
    });
    try {
      await first;
      const second = nextNotice();
      await db1.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'sluice-listener'`,
      );
      await second;
      const third = nextNotice();
      await db1.query('select public.bridge_wake()');
      await third;
      assert.equal(notices, 3);
    } finally {
      await listener.stop();
    }
  });
});

describe('createWake', () => {
  it('speaks at once, and once more for all that came within the interval', async () => {
    const said: number[] = [];
    let second = (): void => undefined;
    const spokeTwice = new Promise<void>((resolve) => {
      second = resolve;
    });
    const wake = createWake(async () => {
      if (said.push(performance.now()) === 2) second();
    }, 50);
    for (let i = 0; i < 1000; i++) wake();
    assert.equal(said.length, 1);
    // The wake's own timer does not hold the process; this one does while we wait.
    const hold = setTimeout(() => undefined, 10_000);
    await spokeTwice;
    clearTimeout(hold);
    assert.ok((said[1] ?? 0) - (said[0] ?? 0) >= 45);
    await wake.stop();
    assert.equal(said.length, 2);
    wake();
    assert.equal(said.length, 2, 'a stopped one says nothing');
  });

  it('says what is still to be said before it stops', async () => {
    let said = 0;
    const wake = createWake(async () => {
      said++;
    }, 60_000);
    wake();
    wake();
    await wake.stop();
    assert.equal(said, 2);
  });
});

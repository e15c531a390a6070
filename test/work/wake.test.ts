import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { after, before, describe, it, type TestContext } from 'node:test';
import timers from 'node:timers/promises';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../src/bridge/crew.ts';
import { startListener } from '../../src/db/listener.ts';
import { createLog } from '../../src/log.ts';
import { createWake } from '../../src/server/wake.ts';
import { claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const log = createLog('silent');
const WORKERS = 2;

/** From now on a rest (a worker looks again after 250 ms of it) lasts until somebody cuts it short. */
function makeRestsEndless(t: TestContext): void {
  const real = timers.setTimeout;
  const endless: typeof real = (_ms, value, { signal } = {}) => {
    assert(signal, 'a rest that nobody can cut short');
    return new Promise((resolve) => {
      const end = () => resolve(value as never);
      if (signal.aborted) end();
      else signal.addEventListener('abort', end);
    });
  };
  const use = (sleep: typeof real) => {
    timers.setTimeout = sleep;
    syncBuiltinESMExports();
  };
  use(endless);
  t.after(() => use(real));
}

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

  /** Workers that have looked, listen, and rest until they are woken. */
  async function startRestingCrew(t: TestContext) {
    makeRestsEndless(t);
    const heard = new EventEmitter();
    let steps = 0;
    const crew = startCrew(
      {
        db1Url: databases.db1.url,
        db2Url: databases.db2.url,
        workers: WORKERS,
        batchSize: 100,
        allowedHosts: new Set(),
        metrics: NO_METRICS,
        log,
      },
      ({ outcomes }) => {
        heard.emit('step', ++steps);
        if (outcomes.committed) heard.emit('committed');
      },
    );
    t.after(() => crew.stop());
    // Each looks once at the start, and once because the listener has connected and may have missed something.
    while (steps < 2 * WORKERS) await once(heard, 'step');
    return { committed: once(heard, 'committed'), steps: () => steps };
  }

  it('a claim at the door is a ticket though no worker would ever look by itself', async (t) => {
    const server = await startTestServer(databases);
    t.after(() => server.stop());
    const { committed } = await startRestingCrew(t);
    assert.equal((await claim(server.url, 'p', { user_id: 'ann' })).status, 201);
    await committed;
  });

  it('negative control: with the word switched off the same claim waits until somebody says it', async (t) => {
    const { rows } = await db1.query(
      `select pg_get_functiondef('public.bridge_wake()'::regprocedure) as definition`,
    );
    await db1.query('create or replace function public.bridge_wake() returns void language sql return null');
    t.after(() => db1.query(rows[0].definition));
    const server = await startTestServer(databases);
    const { committed, steps } = await startRestingCrew(t);
    const before = steps();
    try {
      assert.equal((await claim(server.url, 'p', { user_id: 'bob' })).status, 201);
    } finally {
      // What it has to say, it says before it stops.
      await server.stop();
    }
    assert.equal(steps(), before, 'nobody has looked');
    await db1.query(`select pg_notify('sluice_intake', '')`);
    await committed;
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

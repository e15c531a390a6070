import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, describe, it, type TestContext } from 'node:test';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { startCrew } from '../../src/bridge/crew.ts';
import { startListener } from '../../src/db/listener.ts';
import { createLog } from '../../src/log.ts';
import { createWake } from '../../src/server/wake.ts';
import { claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';

const log = createLog('silent');

/** The core's name for it is IDLE_MS. */
const REST_MS = 250;

/** From now on a rest lasts until a wake cuts it short. Tells how many rests have begun. */
function makeRestsEndless(t: TestContext, onRest: () => void): void {
  const real = globalThis.setTimeout;
  const endless = (work: () => void, ms?: number, ...more: unknown[]) => {
    if (ms !== REST_MS) return real(work, ms, ...(more as []));
    onRest();
    return real(() => undefined, 0);
  };
  globalThis.setTimeout = endless as typeof real;
  t.after(() => {
    globalThis.setTimeout = real;
  });
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

  /** A worker that has looked, listens, and rests until it is woken. */
  async function startRestingCrew(t: TestContext) {
    const heard = new EventEmitter();
    let rests = 0;
    makeRestsEndless(t, () => heard.emit('rest', ++rests));
    const crew = startCrew(
      {
        db1Url: databases.db1.url,
        db2Url: databases.db2.url,
        workers: 2,
        batchSize: 100,
        metrics: NO_METRICS,
        log,
      },
      (outcomes) => {
        if (outcomes.committed) heard.emit('committed');
      },
    );
    t.after(() => crew.stop());
    // Its listener is connected when it hears a notice; then it looks, and rests again.
    const isListening = `select from pg_stat_activity where query ilike 'listen%' and state = 'idle'`;
    while ((await db1.query(isListening)).rowCount === 0);
    let seen: number;
    do {
      seen = rests;
      const rested = once(heard, 'rest');
      await db1.query(`select pg_notify('sluice_intake', '')`);
      await rested;
      await db1.query('select pg_sleep(0.1)');
    } while (rests !== seen + 1);
    return { committed: once(heard, 'committed'), rests: () => rests };
  }

  it('a claim at the door is a ticket though no worker would ever look by itself', async (t) => {
    const server = await startTestServer(databases);
    t.after(() => server.stop());
    const { committed } = await startRestingCrew(t);
    assert.equal((await claim(server.url, 'p', { user_id: 'ann' })).status, 201);
    await committed;
  });

  it('negative control: with the notice switched off the same claim waits for the next notice', async (t) => {
    const { rows } = await db1.query(
      `select pg_get_functiondef('public.bridge_wake()'::regprocedure) as definition`,
    );
    await db1.query('create or replace function public.bridge_wake() returns void language sql return null');
    t.after(() => db1.query(rows[0].definition));
    const server = await startTestServer(databases);
    const { committed, rests } = await startRestingCrew(t);
    const before = rests();
    try {
      assert.equal((await claim(server.url, 'p', { user_id: 'bob' })).status, 201);
    } finally {
      // What it has to say, it says before it stops.
      await server.stop();
    }
    assert.equal(rests(), before, 'the worker has not looked');
    await db1.query(`select pg_notify('sluice_intake', '')`);
    await committed;
  });

  it('the notice goes out after the claim has committed, and not in its transaction', async () => {
    const server = await startTestServer(databases);
    const other = await openClient(databases.db1.url);
    try {
      await other.query('listen sluice_intake');
      const notified = once(other, 'notification');
      await claim(server.url, 'p', { user_id: 'listened' });
      await notified;
      const { rows } = await other.query(`select state from public.claims where user_id = 'listened'`);
      assert.equal(rows.length, 1, 'a worker that is woken sees the claim');
      const direct = once(other, 'notification', { signal: AbortSignal.timeout(300) });
      await db1.query(`select public.claim_resource_and_queue('p', 'direct')`);
      await assert.rejects(direct, { name: 'AbortError' }, 'the claim itself sends no notice');
    } finally {
      await other.end();
      await server.stop();
    }
  });

  it('a claim that is held wakes none: it has no message before it was paid', async (t) => {
    const rules = {
      confirm_by: 'payment',
      price: 1000,
      currency: 'eur',
      payment_tenant: 'stripe',
      hold_sec: 600,
    };
    await putOnSale(db1, 'paid', 2, rules);
    const other = await openClient(databases.db1.url);
    t.after(() => other.end());
    const heard: string[] = [];
    other.on('notification', ({ channel }) => heard.push(channel));
    await other.query('listen sluice_intake');
    const heardOf = async (pool: string, user: string): Promise<string[]> => {
      const server = await startTestServer(databases);
      try {
        const { status } = await claim(server.url, pool, {
          user_id: user,
          secret: `the-secret-of-${user}-0123456789`,
        });
        assert.equal(status, 201);
      } finally {
        // What it has to say, it says before it stops.
        await server.stop();
      }
      await other.query('select');
      return heard.splice(0);
    };
    assert.deepEqual(await heardOf('paid', 'held'), []);
    assert.deepEqual(await heardOf('p', 'queued'), ['sluice_intake'], 'a claim of another pool does');
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

// DB2 is away while Stripe and Twilio go on. They retry as they do; then a backfill of both brings every event here once, and
// the ledger equals the providers' books. OUTAGE_SEC=600 makes it ten minutes, SEED draws other lives.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { createRandom } from '../../../chaos/random.ts';
import { createLog } from '../../../src/log.ts';
import { type RunningServer, startServer } from '../../../src/server/server.ts';
import { processOnce, startWebhookCrew, type WebhookCrew } from '../../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../../src/webhook/handlers.ts';
import { startProxy, type Proxy as WireProxy } from '../../bridge/proxy.ts';
import { ADMIN_KEY, JWT_SECRET, openClient } from '../../server/support.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../../support/databases.ts';
import { PROJECT } from '../../support/dev.ts';
import { drawLives, endsOf, findWrong } from '../lives/play.ts';
import { addEndpoint, SECRETS } from '../world.ts';
import { Senders } from './senders.ts';
import { ACCOUNT, envFor, type Providers, startProviders } from './support.ts';
import { Traffic } from './traffic.ts';

const OUTAGE_SEC = Number(process.env.OUTAGE_SEC ?? 3);
const SEED = Number(process.env.SEED ?? 15);
const EVENTS_PER_SEC = Number(process.env.EVENTS_PER_SEC ?? 40);
/** Before and after the outage. */
const QUIET_SEC = Math.max(1, OUTAGE_SEC / 10);
/** Twilio tries again within 15 s; sooner in a shorter outage, so that it gives up in the middle of it. */
const TWILIO_PAUSE_SEC = Math.min(15, OUTAGE_SEC / 10);

/** On a slow machine the outage lasts until Twilio has given up so many. */
const LEAST_GIVEN_UP = 10;

/** Short, because the last events wait for it. */
const LEASE_SEC = 10;

/** Against a run that waits for ever. */
const PATIENCE_MS = (10 * OUTAGE_SEC + 300) * 1_000;

const WORKERS = { workers: 2, batchSize: 100, handlers: NO_HANDLERS, metrics: NO_METRICS };

describe(`an outage of ${OUTAGE_SEC} s`, () => {
  let databases: TestDatabases;
  let db2: TestDatabase;
  let proxy: WireProxy;
  let server: RunningServer;
  let crew: WebhookCrew | undefined;
  let providers: Providers;
  before(async () => {
    process.env.SLUICE_LOG ??= 'silent';
    databases = await startDatabases();
    db2 = databases.db2;
    const client = await openClient(db2.url);
    const settings = { accounts: ['acct_connected'], lease_sec: LEASE_SEC };
    await addEndpoint(client, 'stripe', 'stripe', 'queued', settings);
    await addEndpoint(client, 'stripe-inline', 'stripe', 'inline', settings);
    // Without the inbox: what is shown here is what a backfill finds.
    const refusing = { ...settings, accounts: [ACCOUNT], on_outage: 'refuse' };
    await addEndpoint(client, 'twilio', 'twilio', 'queued', refusing);
    await client.end();
    proxy = await startProxy(db2.url);
    providers = await startProviders();
    const log = createLog('silent');
    crew = startWebhookCrew({ ...WORKERS, db2Url: proxy.url, log });
    server = await startServer({
      port: 0,
      db1Url: databases.db1.url,
      db2Url: proxy.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => SECRETS[name],
    });
  });
  after(async () => {
    await Promise.all([server?.stop(), crew?.stop(), providers?.stop()]);
    await proxy?.close();
    await databases?.stop();
  });

  async function rows<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const client = await openClient(db2.url);
    try {
      return (await client.query<Row>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }
  /** Of what the providers told, what is not recorded; and how often what is recorded is there. */
  async function compare(told: Traffic['told']) {
    const counted = await rows<{ provider: 'stripe' | 'twilio'; event_id: string; effects: number }>(
      `select e.provider, e.event_id, (select count(*)::int from public.webhook_side_effects s
         where s.provider = e.provider and s.event_id = e.event_id) as effects
       from public.webhook_events e`,
    );
    const known = new Map(counted.map((row) => [row.event_id, row]));
    const missing = (name: 'stripe' | 'twilio') => [...told[name]].filter((id) => !known.has(id));
    const effects = [...told.twilio].filter((id) => known.get(id)?.effects !== 1);
    return { events: counted.length, stripe: missing('stripe'), twilio: missing('twilio'), effects };
  }
  /** Until nothing is open any more: what a worker held when DB2 went away comes back when its lease ends. */
  async function work(): Promise<void> {
    const { signal } = new AbortController();
    const open = `select from public.webhook_events where status in ('pending', 'failed', 'processing') limit 1`;
    const drain = () => processOnce({ ...WORKERS, db2Url: db2.url, log: createLog('silent') }, signal);
    for (await drain(); (await rows(open)).length > 0; await drain()) await setTimeout(200);
  }
  async function runBackfill(endpoint: string, since: Date): Promise<Record<string, number>> {
    const words = ['webhooks', 'backfill', endpoint, '--since', since.toISOString(), '--json'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(PROJECT, 'bin', 'sluice.js'), ...words],
      {
        cwd: '/',
        env: { PATH: process.env.PATH ?? '', ...envFor(providers, db2.url) },
      },
    );
    return JSON.parse(stdout);
  }
  async function serverIsBack(): Promise<void> {
    while ((await fetch(`${server.url}/readyz`)).status !== 200) await setTimeout(100);
  }

  it('loses nothing: after a backfill every event is here once, and the ledger equals the books', {
    timeout: PATIENCE_MS,
  }, async (t) => {
    const since = new Date(Date.now() - 1_000);
    const eventsInAll = EVENTS_PER_SEC * (OUTAGE_SEC + 2 * QUIET_SEC);
    // A life has seven events on average.
    const lives = drawLives(Math.ceil(eventsInAll / 6), SEED);
    const senders = new Senders(TWILIO_PAUSE_SEC);
    const random = createRandom(SEED, 'traffic');
    const traffic = new Traffic({
      providers,
      senders,
      serverUrl: server.url,
      lives,
      random,
      eventsPerSec: EVENTS_PER_SEC,
    });
    const stopping = new AbortController();
    const running = traffic.run(stopping.signal);

    await setTimeout(QUIET_SEC * 1_000);
    await db2.stop('immediate');
    const toldBefore = { stripe: traffic.told.stripe.size, twilio: traffic.told.twilio.size };
    await setTimeout(OUTAGE_SEC * 1_000);
    while (senders.givenUp.size < LEAST_GIVEN_UP) await setTimeout(100);
    const toldMeanwhile = {
      stripe: traffic.told.stripe.size - toldBefore.stripe,
      twilio: traffic.told.twilio.size - toldBefore.twilio,
    };
    db2 = await db2.restart();
    proxy.retarget(db2.url);
    await serverIsBack();
    await setTimeout(QUIET_SEC * 1_000);
    stopping.abort();
    await running;
    await senders.settleTwilio();

    // The control: without a backfill what Twilio told in the outage is gone.
    const lost = await compare(traffic.told);
    t.diagnostic(
      `told in the outage: ${JSON.stringify(toldMeanwhile)}; refused: ${JSON.stringify([...senders.refused])}`,
    );
    t.diagnostic(`before backfill missing: stripe ${lost.stripe.length}, twilio ${lost.twilio.length}`);
    assert.ok(lost.twilio.length > 0);
    assert.deepEqual(
      lost.twilio.filter((id) => !senders.givenUp.has(id)),
      [],
    );

    const filled = [await runBackfill('stripe', since), await runBackfill('twilio', since)];
    t.diagnostic(`backfill: ${JSON.stringify(filled)}`);
    assert.equal(filled[1]?.new, lost.twilio.length);
    const late = await senders.flush();
    t.diagnostic(`Stripe's later deliveries: ${JSON.stringify(late)}`);
    assert.deepEqual(
      Object.keys(late).filter((answer) => answer !== '200 duplicate'),
      [],
    );
    await crew?.stop();
    crew = undefined;
    await work();

    const { events, ...found } = await compare(traffic.told);
    const ends = await endsOf({ rows });
    t.diagnostic(`${events} events, ${traffic.finished.length} lives; ${JSON.stringify(ends)}`);
    assert.deepEqual(found, { stripe: [], twilio: [], effects: [] });
    assert.equal(events, traffic.told.stripe.size + traffic.told.twilio.size);
    assert.deepEqual(await findWrong({ rows }, traffic.finished), []);
    assert.deepEqual(await rows('select from public.webhook_alarms'), []);
    assert.deepEqual(
      Object.keys(ends).filter((how) => !/^(success|skipped)/.test(how)),
      [],
    );
    assert.equal((await runBackfill('stripe', since)).new, 0);
  });
});

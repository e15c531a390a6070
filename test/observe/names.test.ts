import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import type { CallFunction } from '#core/call_function.ts';
import { drainOnce } from '../../src/bridge/crew.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { type CollectedMetrics, createMetrics } from '../../src/metrics.ts';
import { createIntakeLevels } from '../../src/server/intake_levels.ts';
import { startMetricsServer } from '../../src/server/metrics_server.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { StripeStandIn } from '../../src/stripe_stand_in/stand_in.ts';
import { compareWithProviders } from '../../src/webhook/comparison.ts';
import { processOnce } from '../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { storeEvents } from '../admin/webhook_support.ts';
import * as callSite from '../calls/support.ts';
import { ADMIN_KEY, ask, bearer, claim, JWT_SECRET, openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { KEYS, STRIPE_KEY } from '../webhook/backfill/support.ts';
import { addEndpoint, paymentEvent, SECRETS, send } from '../webhook/world.ts';
import { documentedMetrics, scrapedMetrics } from './documented.ts';

const log = createLog('silent');
const { signal } = new AbortController();

describe('metrics', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let server: RunningServer;
  const metrics: CollectedMetrics = createMetrics();

  before(async () => {
    process.env.SLUICE_LOG ??= 'silent';
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    const secrets: Record<string, string> = { ...SECRETS, ...callSite.SECRETS };
    server = await startServer({
      port: 0,
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      adminKey: ADMIN_KEY,
      jwtSecret: JWT_SECRET,
      secretOf: (name) => secrets[name],
      metrics,
    });
  });

  after(async () => {
    await server?.stop();
    await db2?.end();
    await databases?.stop();
  });

  const scrape = () => ask(`${server.url}/metrics`, { headers: bearer(ADMIN_KEY) });

  /** Claims that are sold, retried and sold out, a ticket and a dead letter. */
  async function useClaims(): Promise<void> {
    await putOnSale(db1, 'show', 1);
    const request = { user_id: 'ann', request_id: 'r' };
    const answers = [await claim(server.url, 'show', request), await claim(server.url, 'show', request)];
    answers.push(await claim(server.url, 'show', { user_id: 'bob' }));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 200, 409],
    );
    await db1.query(`select public.intake_queue_send('{"pool_id": "nowhere"}')`);
    const { totals } = await drainOnce(
      {
        db1Url: databases.db1.url,
        db2Url: databases.db2.url,
        workers: 1,
        batchSize: 10,
        metrics,
        log,
      },
      signal,
    );
    assert.deepEqual(totals, { committed: 1, dead_letter: 1 });
  }

  /** An event inline, one that waits for a worker, one in quarantine, and a replay. */
  async function useWebhooks(): Promise<void> {
    await addEndpoint(db2, 'at-once', 'stripe', 'inline');
    const webhookId = await addEndpoint(db2, 'later', 'stripe', 'queued');
    for (const [endpoint, body] of [
      ['at-once', paymentEvent('evt_1')],
      ['later', paymentEvent('evt_2')],
      ['later', '{'],
    ] as const)
      await send({ url: `${server.url}/webhooks/${endpoint}`, provider: 'stripe', body });
    const [dead] = await storeEvents(db2, ['evt_3'], { webhookId, provider: 'stripe' });
    const replay = await ask(`${server.url}/admin/webhooks/events/replay`, {
      method: 'POST',
      headers: bearer(ADMIN_KEY),
      body: { ids: [dead?.id], reason: 'mended' },
    });
    assert.equal(replay.status, 200, replay.text);
    await processOnce(
      { db2Url: databases.db2.url, workers: 1, batchSize: 10, handlers: NO_HANDLERS, metrics, log },
      signal,
    );
  }

  /** A comparison of both endpoints with what Stripe has, which is nothing. */
  async function useProviders(): Promise<void> {
    const stripe = await StripeStandIn.start({ keys: KEYS });
    const ledger = createDatabase({ url: databases.db2.url, max: 1, applicationName: 'test', log });
    const urls = { STRIPE_API_URL: stripe.url };
    const options = { db2: ledger, secretOf: () => STRIPE_KEY, urls, metrics, log, isShown: () => true };
    await compareWithProviders(options, signal);
    await ledger.end();
    await stripe.server.stop();
  }

  async function useCalls(): Promise<void> {
    await callSite.addSites(db2);
    const { status } = await callSite.post(server.url, callSite.signedRequest(callSite.callBody()));
    assert.equal(status, 200);
  }

  it('are those of docs/metrics.md, with their kinds and labels, and no others', async () => {
    await useClaims();
    await useWebhooks();
    await useProviders();
    await useCalls();
    // A table that was never vacuumed has no age of it.
    await db1.query('vacuum public.claims');
    const { text } = await scrape();
    assert.deepEqual(sorted(scrapedMetrics(text)), sorted(documentedMetrics()));
    assert.match(text, /^process_cpu_seconds_total /m);
    assert.match(text, /^sluice_claims_total\{outcome="sold_out"\} 1$/m);
    assert.match(text, /^sluice_claim_batch_size_count 3$/m);
    assert.match(text, /^sluice_ledger_tickets_total\{outcome="committed"\} 1$/m);
    assert.match(text, /^sluice_bridge_deliveries_total\{outcome="dead_letter"\} 1$/m);
    assert.match(text, /^sluice_http_requests_total\{route="claims",status="4xx"\} 1$/m);
    assert.match(text, /^sluice_dead_letters 1$/m);
    assert.match(text, /^sluice_pool_slots\{pool_id="show",state="consumed"\} 1$/m);
  });

  it('show no person by name, and no pool that is neither open nor announced', async () => {
    await putOnSale(db1, 'secret_tour', 3, { is_active: false });
    await putOnSale(db1, 'spring_tour', 3, { is_active: false, opens_at: '2036-03-01T18:00:00Z' });
    let text = '';
    // A page is kept for a second.
    for (const deadline = Date.now() + 10_000; !text.includes('spring_tour'); ) {
      assert.ok(Date.now() < deadline, 'the announced pool is missing');
      text = (await scrape()).text;
    }
    assert.doesNotMatch(text, /secret_tour|ann\.of\.the\.house/);
    assert.match(text, /^webhook_replay_total\{webhook_id="[^"]+",operator="[0-9a-f]{12}"\} 1$/m);
    await db1.query(`update public.engine_config set is_active = true where pool_id = 'secret_tour'`);
    for (const deadline = Date.now() + 10_000; !text.includes('secret_tour'); ) {
      assert.ok(Date.now() < deadline, 'a pool that is open now is missing');
      text = (await scrape()).text;
    }
  });

  it('are on the page of the workers too, but for what only the server knows', async (t) => {
    const workers = await startMetricsServer({
      port: 0,
      db1Url: databases.db1.url,
      db2Url: databases.db2.url,
      metricsOpen: true,
      metrics,
      log,
    });
    t.after(() => workers.stop());
    const documented = documentedMetrics();
    documented.delete('replay_cache_state');
    const { text } = await ask(`http://127.0.0.1:${workers.port}/metrics`);
    assert.deepEqual([...scrapedMetrics(text).keys()].sort(), [...documented.keys()].sort());
  });

  it('never have a path or an id from outside as a label', async () => {
    const { text: earlier } = await scrape();
    const before = scrapedSeries(earlier);
    await ask(`${server.url}/unrouted/has/this`);
    await ask(`${server.url}/v1/pools/whatever`);
    await claim(server.url, 'no-such-pool', { user_id: 'ann' });
    await ask(`${server.url}/call-events`, {
      method: 'POST',
      headers: { 'x-ops-site': 'stranger' },
      body: {},
    });
    await ask(`${server.url}/webhooks/stranger`, { method: 'POST', body: {} });
    let text = earlier;
    // A page is kept for a second; another one was made after these requests.
    while (text === earlier) ({ text } = await scrape());
    assert.doesNotMatch(text, /unrouted|whatever|no-such-pool|stranger/);
    const added = [...scrapedSeries(text)].filter((series) => !before.has(series));
    assert.deepEqual(
      added.filter(
        (series) => !/^(call_events_total\{site="unknown"|sluice_http_request_seconds_)/.test(series),
      ),
      [],
    );
  });

  it('do not wait for a DB1 that went silent', async () => {
    const silent: CallFunction = () => new Promise(() => undefined);
    const levels = createIntakeLevels([{ name: 'main', call: silent }], log, { waitMs: 10 });
    assert.match(await levels.page(), /^sluice_intake_up 0$/m);
  });

  it('refuse a name that the page does not have', () => {
    assert.throws(() => metrics.count('sluice_made_up_total', {}), /no sluice_made_up_total/);
  });

  it('say that DB1 is away, and leave out what only it knows', async () => {
    await db1.end();
    await databases.db1.stop('immediate');
    let text = '';
    // What was asked a moment ago is kept for a second.
    for (const deadline = Date.now() + 10_000; !/^sluice_intake_up 0$/m.test(text); ) {
      assert.ok(Date.now() < deadline, 'DB1 is away and the page does not say so');
      text = (await scrape()).text;
    }
    assert.doesNotMatch(text, /^sluice_queue_depth /m);
    assert.match(text, /^sluice_claims_total\{outcome="claimed"\} 1$/m);
  });
});

function sorted(metrics: Map<string, unknown>): [string, unknown][] {
  return [...metrics].sort(([a], [b]) => (a < b ? -1 : 1));
}

function scrapedSeries(page: string): Set<string> {
  return new Set([...page.matchAll(/^((?!nodejs_)\w+\{.*\}) \S+$/gm)].map(([, series = '']) => series));
}

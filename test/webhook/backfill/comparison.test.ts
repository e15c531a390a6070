// Once an hour workers compare the last day with the provider, one of them for all.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Log } from '#core/ports.ts';
import { createDatabase } from '../../../src/db/database.ts';
import { createLog } from '../../../src/log.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { compareWithProviders } from '../../../src/webhook/comparison.ts';
import { startWebhookCrew } from '../../../src/webhook/crew.ts';
import { NO_HANDLERS } from '../../../src/webhook/handlers.ts';
import { WebhookWorld } from '../world.ts';
import { ACCOUNT, call, envFor, type Providers, startProviders, stripeEvent } from './support.ts';

interface Line {
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

function keptLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const at =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void lines.push({ level, message, fields });
  return {
    lines,
    log: { debugEnabled: false, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
  };
}

describe('the hourly comparison', () => {
  let world: WebhookWorld;
  let providers: Providers;
  let env: Record<string, string>;
  const hourBefore = Math.floor(Date.now() / 1_000) - 3_600;
  before(async () => {
    world = await WebhookWorld.start();
    providers = await startProviders();
    env = envFor(providers, world.databases.db2.url);
    await world.addEndpoint('stripe', 'stripe', 'queued');
  });
  after(async () => {
    await providers?.stop();
    await world?.stop();
  });

  /** So many workers at once look whether it is time. */
  async function compare(workers: number, secrets = env, isShown = true) {
    const metrics = createMetrics();
    const { log, lines } = keptLog();
    const url = world.databases.db2.url;
    const databases = Array.from({ length: workers }, () =>
      createDatabase({ url, max: 1, applicationName: 'test', log: createLog('silent') }),
    );
    try {
      await Promise.all(
        databases.map((db2) =>
          compareWithProviders(
            { db2, secretOf: (name) => secrets[name], urls: env, metrics, log, isShown: () => isShown },
            new AbortController().signal,
          ),
        ),
      );
    } finally {
      await Promise.all(databases.map((db2) => db2.end()));
    }
    return { lines, page: await metrics.page() };
  }
  const nextHour = () =>
    world.rows(`update public.webhook_endpoints set compared_at = now() - interval '1 hour'`);

  it('does nothing where no key is configured, and keeps the turn for a worker that has one', async () => {
    const { lines } = await compare(2, {});
    assert.deepEqual(lines, []);
    assert.equal(providers.stripe.server.requests.length, 0);
  });

  it('waits for a scrape that sees the endpoint with 0, and keeps the turn meanwhile', async () => {
    const { lines } = await compare(2, env, false);
    assert.deepEqual(lines, []);
    assert.equal(providers.stripe.server.requests.length, 0);
  });

  it('is done by one of two workers, fills what is missing, and tells it', async () => {
    providers.stripe.send(stripeEvent('evt_missing', { created: hourBefore }));
    providers.stripe.send(stripeEvent('evt_unhandled', { created: hourBefore, type: 'person.created' }));
    providers.stripe.send(stripeEvent('evt_old', { created: hourBefore - 25 * 3_600 }));
    providers.stripe.send(stripeEvent('evt_young'));
    const { lines, page } = await compare(2);
    assert.equal(
      providers.stripe.server.requests.length,
      2,
      'one worker asks for undelivered events and for all',
    );
    assert.deepEqual(
      lines.map(({ level, message, fields }) => [level, message, fields.missing, fields.new]),
      [['warn', 'compared with the provider', 1, 2]],
    );
    assert.match(page, /webhook_missing_total\{[^}]*provider="stripe"[^}]*\} 1\n/);
    assert.match(page, /webhook_comparisons_total\{[^}]*result="done"[^}]*\} 1\n/);
    const rows = await world.rows(`select event_id, backfilled from public.webhook_events order by 1`);
    assert.deepEqual(rows, [
      { event_id: 'evt_missing', backfilled: true },
      { event_id: 'evt_unhandled', backfilled: true },
    ]);
    await world.process();
    assert.deepEqual(await world.credited('ann'), { rows: 1, sum: 100 });
  });

  it('is done once an hour', async () => {
    const before = providers.stripe.server.requests.length;
    await compare(2);
    assert.equal(providers.stripe.server.requests.length, before);
    await nextHour();
    const { lines } = await compare(2);
    assert.deepEqual(
      lines.map(({ level, fields }) => [level, fields.missing, fields.known]),
      [['info', 0, 2]],
    );
  });

  it('that fails says so once, and leaves the other endpoints alone', async () => {
    await world.addEndpoint('twilio', 'twilio', 'queued', { accounts: [ACCOUNT] });
    providers.twilio.calls.set('CA_1', call('CA_1', { end: new Date(hourBefore * 1_000) }));
    await nextHour();
    const { lines, page } = await compare(2, { ...env, STRIPE_API_KEY: 'rk_live_unknown_0123456789' });
    assert.deepEqual(lines.map(({ level, fields }) => [level, fields.endpoint]).sort(), [
      ['error', 'stripe'],
      ['warn', 'twilio'],
    ]);
    assert.match(page, /webhook_comparisons_total\{[^}]*provider="stripe"[^}]*result="failed"[^}]*\} 1\n/);
    assert.deepEqual((await compare(2)).lines, [], 'the next try is an hour away');
  });

  it('is made by workers by themselves', async () => {
    await nextHour();
    const before = providers.stripe.server.requests.length;
    const options = { db2Url: world.databases.db2.url, workers: 1, batchSize: 10, handlers: NO_HANDLERS };
    const shared = { metrics: createMetrics(), log: createLog('silent') };
    let first = '';
    const done = new Promise<void>((resolve) => {
      providers.stripe.server.gate = async () => {
        first ||= await shared.metrics.page();
        if (providers.stripe.server.requests.length === before + 2) resolve();
      };
    });
    const compare = { secretOf: (name: string) => env[name], urls: env, everyMs: 20 };
    const crews = [1, 2].map(() => startWebhookCrew({ ...options, ...shared, compare }));
    await done;
    await Promise.all(crews.map((crew) => crew.stop()));
    assert.equal(providers.stripe.server.requests.length, before + 2);
    const series = [...first.matchAll(/^webhook_(\w+)\{.*provider="stripe"(?:,\w+="(\w+)")?\} 0$/gm)];
    assert.deepEqual(
      series.map(([, name, value]) => [name, value].filter(Boolean).join(' ')),
      [
        ...['success', 'skipped', 'failed', 'dead_letter', 'lost_lease', 'handed_back'].map(
          (result) => `processing_total ${result}`,
        ),
        'dead_letter_total handler_error',
        'dead_letter_total quarantine',
        'comparisons_total done',
        'comparisons_total failed',
        'missing_total',
      ],
      'a scrape before the comparison sees every series with 0',
    );
  });
});

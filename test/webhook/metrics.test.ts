import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import type { CallFunction } from '#core/call_function.ts';
import { tellOutcome } from '#core/webhook/outcome.ts';
import { createLog } from '../../src/log.ts';
import { createMetrics } from '../../src/metrics.ts';
import { createBacklog } from '../../src/server/backlog.ts';
import { metricsRoute } from '../../src/server/metrics_route.ts';
import { startMetricsServer } from '../../src/server/metrics_server.ts';
import { ADMIN_KEY, ask } from '../server/support.ts';
import { startDatabases } from '../support/databases.ts';

const log = createLog('silent');
const BACKLOG = {
  webhook_id: 'w',
  provider: 'stripe',
  pending: 3,
  failed: 2,
  processing: 1,
  dead_letter: 4,
  oldest_due_sec: 12.5,
};
const answering =
  (answers: Record<string, unknown[]>): CallFunction =>
  async <Row>(name: string) =>
    (answers[name] ?? []) as Row[];

describe('metrics', () => {
  it('count and time by name and labels', async () => {
    const metrics = createMetrics();
    const labels = { webhook_id: 'w', provider: 'stripe', result: 'success' };
    metrics.count('webhook_processing_total', labels);
    metrics.count('webhook_processing_total', labels);
    metrics.observe('webhook_processing_seconds', { provider: 'stripe', result: 'success' }, 0.02);
    const page = await metrics.page();
    assert.match(page, /^webhook_processing_total\{webhook_id="w",provider="stripe",result="success"\} 2$/m);
    assert.match(page, /^webhook_processing_seconds_bucket\{le="0.01",.*\} 0$/m);
    assert.match(page, /^webhook_processing_seconds_bucket\{le="0.025",.*\} 1$/m);
  });

  it('spell a provider one way, in every counter', async () => {
    const metrics = createMetrics();
    for (const provider of ['hmac', 'hmac:acme']) {
      const event = { webhookId: 'w', provider, eventId: 'e', eventType: 't', error: null, durationMs: 1 };
      tellOutcome({ ...event, result: 'dead_letter' }, log, metrics);
    }
    const page = await metrics.page();
    assert.match(
      page,
      /^webhook_processing_total\{webhook_id="w",provider="hmac",result="dead_letter"\} 2$/m,
    );
    assert.match(page, /^webhook_dead_letter_total\{.*provider="hmac".*\} 2$/m);
    assert.doesNotMatch(page, /hmac:/);
  });

  it('of one process are not those of another', async () => {
    createMetrics().count('webhook_processing_total', { result: 'success' });
    assert.doesNotMatch(await createMetrics().page(), /^webhook_processing_total\{/m);
  });

  it('show the backlog, its age and the replays as DB2 tells them', async () => {
    const replays = [{ webhook_id: 'w', operator: 'o"dd\nname', total: 7 }];
    const unnamed = [{ count_payments_without_user: 5 }];
    const call = answering({
      metrics: [BACKLOG],
      replay_totals: replays,
      count_payments_without_user: unnamed,
    });
    const route = metricsRoute([createMetrics(), createBacklog(call, ADMIN_KEY, log)], async () => undefined);
    const { status, headers, ...answer } = await route.handle({} as never, '');
    const body = String(answer.body);
    assert.equal(status, 200);
    assert.match(headers['content-type'] ?? '', /^text\/plain; version=0\.0\.4/);
    for (const [name, count] of Object.entries({ pending: 3, failed: 2, processing: 1, dead_letter: 4 }))
      assert.match(
        body,
        new RegExp(`^webhook_backlog\\{webhook_id="w",provider="stripe",status="${name}"\\} ${count}$`, 'm'),
      );
    assert.match(body, /^webhook_oldest_due_seconds\{webhook_id="w",provider="stripe"\} 12\.5$/m);
    assert.match(body, /^webhook_replay_total\{webhook_id="w",operator="[0-9a-f]{12}"\} 7$/m);
    assert.match(body, /^webhook_payments_without_user 5$/m);
    assert.match(body, /^webhook_database_up 1$/m);
  });

  it('show operators under pseudonyms that only the holder of the admin key can compute', async () => {
    const replays = ['ann', 'bob'].map((operator) => ({ webhook_id: 'w', operator, total: 1 }));
    const labels = async (adminKey: string | undefined) => {
      const backlog = createBacklog(answering({ replay_totals: replays }), adminKey, log);
      return [...(await backlog.page()).matchAll(/operator="([^"]*)"/g)].map(([, label]) => label);
    };
    const shown = await labels(ADMIN_KEY);
    const hash = createHmac('sha256', ADMIN_KEY).update('ann').digest('hex');
    assert.equal(shown[0], hash.slice(0, 12));
    assert.equal(new Set(shown).size, 2);
    assert.deepEqual(await labels(ADMIN_KEY), shown, 'the same on every server');
    for (const other of ['another-admin-key', undefined])
      assert.notEqual((await labels(other))[0], shown[0], 'with another key, or none');
  });

  it('ask DB2 once a second at most, however many look', async () => {
    let asked = 0;
    let nowMs = 0;
    const call: CallFunction = async () => {
      asked++;
      return [];
    };
    const backlog = createBacklog(call, ADMIN_KEY, log, { now: () => nowMs });
    await Promise.all(Array.from({ length: 50 }, () => backlog.page()));
    assert.equal(asked, 3, 'one call of each function');
    nowMs += 1_000;
    await backlog.page();
    assert.equal(asked, 6);
  });

  it('are still there without DB2, and say that it is away', async () => {
    let nowMs = 0;
    let isAway = false;
    const call: CallFunction = async <Row>(name: string) => {
      if (isAway) throw new Error('gone');
      return (name === 'metrics' ? [BACKLOG] : []) as Row[];
    };
    const backlog = createBacklog(call, ADMIN_KEY, log, { now: () => nowMs });
    assert.match(await backlog.page(), /^webhook_backlog\{/m);
    isAway = true;
    nowMs += 1_000;
    const page = await backlog.page();
    assert.match(page, /^webhook_database_up 0$/m);
    assert.doesNotMatch(page, /^webhook_backlog\{/m);
  });

  it('do not wait for a DB2 that went silent, and ask it no second time meanwhile', async () => {
    let asked = 0;
    let nowMs = 0;
    let wakeUp = (_: never[]) => {};
    const call: CallFunction = <Row>() => {
      asked++;
      return new Promise<Row[]>((resolve) => {
        wakeUp = resolve;
      });
    };
    const backlog = createBacklog(call, ADMIN_KEY, log, { now: () => nowMs, waitMs: 10 });
    for (let scrape = 0; scrape < 3; scrape++) {
      assert.match(await backlog.page(), /^webhook_database_up 0$/m);
      nowMs += 1_000;
    }
    assert.equal(asked, 3, 'one call of each function');
    wakeUp([]);
  });

  it('of workers have a door of their own, also while DB2 is away', async (t) => {
    const databases = await startDatabases();
    t.after(() => databases.stop());
    const metrics = createMetrics();
    const { db1, db2 } = databases;
    const server = await startMetricsServer({
      port: 0,
      db1Url: db1.url,
      db2Url: db2.url,
      metricsOpen: true,
      metrics,
      log,
    });
    t.after(() => server.stop());
    metrics.count('webhook_processing_total', { result: 'success' });
    const url = `http://127.0.0.1:${server.port}`;
    const page = await ask(`${url}/metrics`);
    assert.equal(page.status, 200);
    assert.match(page.text, /^webhook_processing_total\{result="success"\} 1$/m);
    assert.match(page.text, /^webhook_database_up 1$/m);
    assert.equal((await ask(`${url}/readyz`)).status, 200);
    assert.equal((await ask(`${url}/webhooks/x`)).status, 404);
    await databases.db2.stop('immediate');
    assert.equal((await ask(`${url}/readyz`)).status, 503);
    assert.equal((await ask(`${url}/metrics`)).status, 200);
  });
});

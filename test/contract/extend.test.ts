import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, mock } from 'node:test';
import type pg from 'pg';
import { NO_METRICS } from '#core/ports.ts';
import { createLog } from '../../src/log.ts';
import { processOnce } from '../../src/webhook/crew.ts';
import { loadHandlers, NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { blocksOf, readPage } from './docs.ts';

const PAGE = readPage('extend_webhooks.md');

describe('docs/extend_webhooks.md', () => {
  let databases: TestDatabases;
  let db2: pg.Client;

  before(async () => {
    databases = await startDatabases({ db1: false });
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    mock.restoreAll();
    await db2?.end();
    await databases?.stop();
  });

  const store = (provider: string, eventId: string, type: string, payload: object) =>
    db2.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
       values (gen_random_uuid(), $1, $2, $3, $4)`,
      [provider, eventId, type, payload],
    );
  const process = (handlers = NO_HANDLERS) =>
    processOnce(
      {
        db2Url: databases.db2.url,
        workers: 1,
        batchSize: 10,
        handlers,
        metrics: NO_METRICS,
        log: createLog('silent'),
      },
      new AbortController().signal,
    );
  const statusOf = async (eventId: string) =>
    (await db2.query('select status::text, error from public.webhook_events where event_id = $1', [eventId]))
      .rows[0];

  it('has an SQL handler that works as it stands', async () => {
    await db2.query(blocksOf(PAGE, 'sql')[1] ?? '');
    await store('github', 'star-1', 'star.created', {
      action: 'created',
      repository: { full_name: 'a/b' },
    });
    await store('github', 'star-2', 'star.deleted', { action: 'deleted' });
    await process();
    const { rows } = await db2.query('select * from public.stars');
    assert.deepEqual(rows, [{ event_id: 'star-1', repository: 'a/b' }]);
    assert.deepEqual(await statusOf('star-2'), { status: 'skipped', error: 'not a new star' });
  });

  it('has a TypeScript handler that works as it stands', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-handlers-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const source = blocksOf(PAGE, 'ts')[0] ?? '';
    writeFileSync(join(dir, 'my_handlers.ts'), source);
    const handlers = await loadHandlers(join(dir, 'my_handlers.ts'), createLog());
    const keys: unknown[] = [];
    mock.method(globalThis, 'fetch', async (_: string, options: RequestInit) => {
      keys.push((options.headers as Record<string, string>)['idempotency-key']);
      const { phone } = JSON.parse(String(options.body));
      return phone === '0' ? new Response('', { status: 422 }) : Response.json({ id: `contact of ${phone}` });
    });
    await db2.query(blocksOf(PAGE, 'sql')[0] ?? '');
    const message = (from: string, body: string) => ({ message: { from, text: { body } } });
    await store('whatsapp', 'message:1', 'message.text', message('49', 'hello'));
    await store('whatsapp', 'message:2', 'message.text', message('49', 'stop'));
    await store('whatsapp', 'message:3', 'message.text', message('0', 'hello'));
    await process(handlers);
    const { rows } = await db2.query('select * from public.welcomes');
    assert.deepEqual(rows, [{ event_id: 'message:1', contact_id: 'contact of 49' }]);
    assert.equal((await statusOf('message:2')).status, 'skipped');
    assert.deepEqual(await statusOf('message:3'), {
      status: 'dead_letter',
      error: 'the CRM does not know this number',
    });
    assert.deepEqual(keys.sort(), ['whatsapp:message:1', 'whatsapp:message:2', 'whatsapp:message:3']);
  });
});

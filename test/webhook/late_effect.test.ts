// An effect that takes longer than its provider waits: the provider is answered in time, and the effect is taken once.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import { Router } from '#core/router.ts';
import type { Handler } from '#core/webhook/handlers.ts';
import { WebhookRoutes } from '#core/webhook/routes.ts';
import { createLog } from '../../src/log.ts';
import { HttpServer } from '../../src/server/http.ts';
import { openProcessor } from '../../src/webhook/crew.ts';
import { openWebhookStore } from '../../src/webhook/databases.ts';
import { registerHandlers } from '../../src/webhook/handlers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { addEndpoint, paymentEvent, SECRETS, send } from './world.ts';

/** Well below the 2 s after which a statement gives up on a lock. */
const DELIVERY_MS = 500;

describe('an inline effect that takes longer than the provider waits', () => {
  let databases: TestDatabases;
  let session: Session;
  const log = createLog('silent');
  const opened: { end(): Promise<unknown> }[] = [];
  let gate = Promise.resolve();
  const handler: Handler = {
    name: 'slow',
    provider: 'stripe',
    types: ['slow.typescript'],
    call: () => gate,
    async apply(event, tx) {
      await tx.query('insert into app.effects values ($1)', [event.eventId]);
    },
  };
  const handlers = new Map([[handler.name, handler]]);

  before(async () => {
    databases = await startDatabases({ db1: false });
    session = await openSession(databases.db2.url);
    await session.client.query(`
      create schema app;
      create table app.effects (event_id text not null);
      create table app.gate (open boolean);
      insert into app.gate values (true);
      create function app.slow(p_event public.webhook_events) returns text language plpgsql as $$
      begin
        perform from app.gate for share;
        insert into app.effects values (p_event.event_id);
        return null;
      end $$;
      insert into public.webhook_handlers (provider, event_type, kind, name) values ('stripe', 'slow.sql', 'sql', 'app.slow');
    `);
    await addEndpoint(session.client, 'shop', 'stripe', 'inline');
  });
  after(async () => {
    for (const one of opened) await one.end();
    await session?.close();
    await databases?.stop();
  });

  /** A server of its own, as far as webhooks go. */
  async function openServer() {
    const options = { db2Url: databases.db2.url, workers: 1, batchSize: 1, handlers };
    const { processor, database, end } = openProcessor({ ...options, metrics: NO_METRICS, log });
    await registerHandlers(database, handlers);
    const { signal } = new AbortController();
    const door = new WebhookRoutes(
      {
        store: openWebhookStore(database),
        hmac: nodeHmac,
        secretOf: (name) => SECRETS[name],
        findSecret: async () => ({ is_allowed: true, value: null }),
        runTypescript: (id) => processor.runOne(id, signal),
        wake: () => undefined,
        log,
        metrics: NO_METRICS,
        now: Date.now,
      },
      DELIVERY_MS,
    );
    const http = new HttpServer(new Router(door.routes(), log), log);
    const url = `http://127.0.0.1:${await http.listen(0)}/webhooks/shop`;
    opened.push({ end: () => http.close() }, { end });
    return (id: string, type: string) => send({ url, provider: 'stripe', body: paymentEvent(id, { type }) });
  }
  const effectsOf = (id: string) =>
    session.value<number>('select count(*)::int from app.effects where event_id = $1', [id]);
  const hasEnded = async (id: string) => {
    const status = `select status::text from public.webhook_events where event_id = $1`;
    while ((await session.value(status, [id])) !== 'success') await sleep(10);
  };

  it('is taken once by a TypeScript handler, whichever server gets a delivery meanwhile and afterwards', async () => {
    const [here, elsewhere] = [await openServer(), await openServer()];
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    for (let delivery = 0; delivery < 2; delivery++) {
      const { status, json } = await here('evt_typescript', 'slow.typescript');
      assert.deepEqual([status, json.error.code], [500, 'processing_failed']);
    }
    // Another server cannot wait for it. It answers that the event is recorded and being worked on.
    assert.equal((await elsewhere('evt_typescript', 'slow.typescript')).json.status, 'duplicate');
    assert.equal(await effectsOf('evt_typescript'), 0);
    open();
    await hasEnded('evt_typescript');
    for (const deliver of [here, elsewhere])
      assert.equal((await deliver('evt_typescript', 'slow.typescript')).json.status, 'duplicate');
    assert.equal(await effectsOf('evt_typescript'), 1);
  });

  it('is taken once by an SQL handler, whichever server gets a delivery meanwhile and afterwards', async () => {
    const [here, elsewhere] = [await openServer(), await openServer()];
    const holder = await openSession(databases.db2.url);
    await holder.client.query('begin; update app.gate set open = false');
    const { status, json } = await here('evt_sql', 'slow.sql');
    assert.deepEqual([status, json.error.code], [500, 'processing_failed']);
    // Another server does not wait for the row, which the effect has locked: it answers that the event is recorded.
    assert.equal((await elsewhere('evt_sql', 'slow.sql')).json.status, 'duplicate');
    await holder.client.query('rollback');
    await holder.close();
    await hasEnded('evt_sql');
    for (const deliver of [here, elsewhere])
      assert.equal((await deliver('evt_sql', 'slow.sql')).json.status, 'duplicate');
    assert.equal(await effectsOf('evt_sql'), 1);
  });
});

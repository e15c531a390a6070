// Handlers written in TypeScript: effect and mark in one transaction, calls to the outside before it.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import { type HandledEvent, type Handler, PermanentError } from '#core/webhook/handlers.ts';
import { createLog } from '../../src/log.ts';
import { openProcessor } from '../../src/webhook/crew.ts';
import { registerHandlers } from '../../src/webhook/handlers.ts';
import { paymentEvent, WebhookWorld } from './world.ts';

/** What the next event meets; each test sets what it is about. */
let call: (event: HandledEvent, signal: AbortSignal) => Promise<unknown>;
let applyMore: (event: HandledEvent, world: WebhookWorld) => Promise<string | undefined>;
const seen: HandledEvent[] = [];
let world: WebhookWorld;

const handler: Handler = {
  name: 'own_handler',
  provider: 'stripe',
  types: ['own.exact', 'own_prefix.*'],
  call: (event, signal) => call(event, signal),
  async apply(event, tx, called) {
    seen.push(event);
    await tx.query('insert into public.own_effects (event_id, called) values ($1, $2)', [
      event.eventId,
      called ?? null,
    ]);
    return applyMore(event, world);
  },
};
const handlers = new Map([[handler.name, handler]]);

describe('a handler in TypeScript', () => {
  before(async () => {
    world = await WebhookWorld.start(handlers);
    await world.addEndpoint('inline', 'stripe', 'inline');
    await world.addEndpoint('queued', 'stripe', 'queued', { lease_sec: 5 });
    await world.db2.query('create table public.own_effects (event_id text, called text)');
    await world.process();
  });
  after(() => world?.stop());
  beforeEach(() => {
    call = async () => 'answered';
    applyMore = async () => undefined;
    seen.length = 0;
  });

  const post = (mode: string, id: string, type = 'own.exact') =>
    world.send(mode, 'stripe', paymentEvent(id, { type }));
  const effects = (id: string) =>
    world.rows('select called from public.own_effects where event_id = $1', [id]);
  const due = (id: string) =>
    world.db2.query('update public.webhook_events set next_attempt_at = now() where event_id = $1', [id]);

  it('takes its effect once, with what its call was answered, for exact types and for prefixes', async () => {
    for (const type of ['own.exact', 'own_prefix.x']) {
      await post('queued', `evt_${type}`, type);
      await world.process();
      await world.process();
      assert.deepEqual(await effects(`evt_${type}`), [{ called: 'answered' }]);
      assert.equal((await world.event(`evt_${type}`))?.status, 'success');
    }
    assert.deepEqual(
      seen.map(({ idempotencyKey, attempts }) => [idempotencyKey, attempts]),
      [
        ['stripe:evt_own.exact', 1],
        ['stripe:evt_own_prefix.x', 1],
      ],
    );
  });

  it('runs while the provider waits, in inline mode, and the second delivery is a duplicate', async () => {
    assert.equal((await post('inline', 'evt_inline')).json.status, 'processed');
    assert.equal((await post('inline', 'evt_inline')).json.status, 'duplicate');
    assert.equal((await effects('evt_inline')).length, 1);
  });

  it('that ran in the server does not count the server as a worker', async () => {
    const workers = async () =>
      (await world.rows(`select (public.ledger_sample() ->> 'webhook_workers')::int as n`))[0]?.n;
    assert.equal((await post('inline', 'evt_no_worker')).json.status, 'processed');
    // Those that ended a moment ago may still be listed.
    for (const deadline = Date.now() + 5_000; (await workers()) > 0; await sleep(10))
      assert.ok(Date.now() < deadline, 'no worker runs, and one is counted');
    call = async () => `${await workers()} at work`;
    await post('queued', 'evt_worker');
    await world.process();
    assert.match((await effects('evt_worker'))[0]?.called, /^[1-9]\d* at work$/);
  });

  it('that throws leaves no effect, a failed event and its error; the next try gets the same key', async () => {
    applyMore = async () => {
      throw new Error('out of paper');
    };
    assert.equal((await post('inline', 'evt_throws')).status, 500);
    const failed = await world.event('evt_throws');
    assert.deepEqual([failed?.status, failed?.attempts, failed?.error], ['failed', 1, 'out of paper']);
    assert.deepEqual(await effects('evt_throws'), []);
    applyMore = async () => undefined;
    await due('evt_throws');
    await world.process();
    assert.equal((await effects('evt_throws')).length, 1);
    assert.deepEqual(
      seen.map(({ idempotencyKey, attempts }) => [idempotencyKey, attempts]),
      [
        ['stripe:evt_throws', 1],
        ['stripe:evt_throws', 2],
      ],
    );
  });

  it('that fails like a lost connection has failed all the same: the database is there', async () => {
    applyMore = async () => {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    };
    await post('queued', 'evt_refused');
    assert.deepEqual((await world.process()).totals, { failed: 1 });
    assert.equal((await world.event('evt_refused'))?.attempts, 1);
  });

  it('that swallows an error of the database does not get away with it', async () => {
    const swallowing: Handler = {
      ...handler,
      async apply(_, tx) {
        await tx.query('select 1 / 0').catch(() => undefined);
      },
    };
    await post('queued', 'evt_swallow');
    const { totals } = await world.process(new Map([[handler.name, swallowing]]));
    assert.deepEqual(totals, { failed: 1 });
    assert.equal((await world.event('evt_swallow'))?.status, 'failed');
  });

  it('that says PermanentError, or raises SL030, goes to the dead letters at once', async () => {
    applyMore = async (event) => {
      if (event.eventId === 'evt_permanent') throw new PermanentError('no such customer');
      throw Object.assign(new Error('no such customer'), { code: 'SL030' });
    };
    for (const id of ['evt_permanent', 'evt_sl030']) {
      await post('queued', id);
      await world.process();
      const event = await world.event(id);
      assert.deepEqual(
        [event?.status, event?.attempts, event?.error],
        ['dead_letter', 1, 'no such customer'],
      );
    }
  });

  it('that gives a reason is skipped, with it', async () => {
    applyMore = async () => 'not for us';
    await post('queued', 'evt_reason');
    await world.process();
    const event = await world.event('evt_reason');
    assert.deepEqual([event?.status, event?.error], ['skipped', 'not for us']);
  });

  it('whose call fails has not begun its effect', async () => {
    call = async () => {
      throw new Error('partner is down');
    };
    await post('queued', 'evt_call');
    await world.process();
    assert.equal((await world.event('evt_call'))?.error, 'partner is down');
    assert.deepEqual(seen, []);
  });

  it('that lost its lease meanwhile takes no effect, and its late mark changes nothing', async () => {
    call = async (event) => {
      // Another worker takes it over while the handler waits for its partner.
      await world.db2.query(
        `update public.webhook_events set lease_token = gen_random_uuid(), takeovers = takeovers + 1
         where event_id = $1`,
        [event.eventId],
      );
      return 'too late';
    };
    await post('queued', 'evt_lost');
    assert.deepEqual((await world.process()).totals, { lost_lease: 1 });
    assert.deepEqual(await effects('evt_lost'), []);
    assert.equal((await world.event('evt_lost'))?.status, 'processing');
  });

  it('negative control: without the look at the lease the late effect would be there', async () => {
    const { processor, database, end } = openProcessor({
      db2Url: world.databases.db2.url,
      workers: 1,
      batchSize: 1,
      handlers,
      metrics: NO_METRICS,
      log: createLog('silent'),
    });
    try {
      await post('queued', 'evt_control');
      const [lane] = await database.call<{ lane: number }>('webhook.event_lanes', {});
      const [taken] = await database.call<{ id: string; lease_token: string }>('webhook.take_events', {
        p_lanes: [lane?.lane],
        p_wanted: [1],
      });
      assert.ok(taken);
      await world.db2.query(
        'update public.webhook_events set lease_token = gen_random_uuid() where id = $1',
        [taken.id],
      );
      await database.transact(
        (tx) => tx.query(`insert into public.own_effects values ('evt_control')`),
        10_000,
      );
      assert.equal((await effects('evt_control')).length, 1);
      assert.equal(await processor.runOne(taken.id, new AbortController().signal), undefined);
    } finally {
      await end();
    }
  });

  it('that is stopped hands its event back, uncounted', async () => {
    const stopping = new AbortController();
    call = (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        stopping.abort();
      });
    const { processor, end } = openProcessor({
      db2Url: world.databases.db2.url,
      workers: 1,
      batchSize: 10,
      handlers,
      metrics: NO_METRICS,
      log: createLog('silent'),
    });
    try {
      await post('queued', 'evt_stopped');
      const { outcomes } = await processor.step(stopping.signal);
      // Events of other tests that failed may come round at the same time.
      assert.deepEqual(Object.keys(outcomes), ['handed_back']);
    } finally {
      await end();
    }
    const event = await world.event('evt_stopped');
    assert.deepEqual([event?.status, event?.attempts], ['pending', 0]);
    call = async () => 'answered';
    await world.process();
    assert.equal((await effects('evt_stopped')).length, 1);
  });

  it('is waited for: a worker without it leaves its events alone', async () => {
    await post('queued', 'evt_elsewhere');
    // Not the totals: events of other tests that failed may come round again at any time.
    await world.process(new Map());
    assert.equal((await world.event('evt_elsewhere'))?.status, 'pending');
    await world.process();
    assert.equal((await world.event('evt_elsewhere'))?.status, 'success');
  });

  it('gives up a type that it no longer lists', async () => {
    const { database, end } = openProcessor({
      db2Url: world.databases.db2.url,
      workers: 1,
      batchSize: 1,
      handlers,
      metrics: NO_METRICS,
      log: createLog('silent'),
    });
    try {
      await registerHandlers(database, new Map([['own_handler', { ...handler, types: ['own.exact'] }]]));
    } finally {
      await end();
    }
    const types = await world.rows(
      `select event_type from public.webhook_handlers where name = 'own_handler'`,
    );
    assert.deepEqual(types, [{ event_type: 'own.exact' }]);
  });
});

describe('a server that is given a handler', () => {
  it('registers it before its first inline event, so that no worker has to come first', async () => {
    const own = await WebhookWorld.start(
      new Map([['own', { ...handler, name: 'own', apply: async () => {} }]]),
    );
    try {
      await own.addEndpoint('inline', 'stripe', 'inline');
      const answer = await own.send('inline', 'stripe', paymentEvent('evt_first', { type: 'own.exact' }));
      assert.equal(answer.json.status, 'processed');
      assert.equal((await own.event('evt_first'))?.status, 'success');
    } finally {
      await own.stop();
    }
  });
});

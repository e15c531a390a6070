// Workers take the events of each handler for themselves: a slow one, a hanging one, or one that no worker has, is waited for by
// its own events only. With two workers throughout.

import assert from 'node:assert/strict';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NO_METRICS } from '#core/ports.ts';
import type { Handler } from '#core/webhook/handlers.ts';
import { createLog } from '../../src/log.ts';
import { startWebhookCrew, type WebhookCrewOptions } from '../../src/webhook/crew.ts';
import { type Handlers, NO_HANDLERS } from '../../src/webhook/handlers.ts';
import { openSession } from '../support/sessions.ts';
import { useLedger } from '../support/suite.ts';

const DEADLINE_MS = 20_000;
/** "Within a second or so": what a payment may take beside the events of a slow handler. */
const SOON_MS = 1_500;

describe('two workers', () => {
  const database = useLedger('session');
  const { session } = database;
  let shop: string;
  const running: { stop(): Promise<void> }[] = [];

  before(async () => {
    shop = await session.value<string>(
      `select webhook.add_endpoint('shop', 'shop', '{OPS_SITE_SECRET}', 'queued', '{}', 'test')`,
    );
    await session.client.query(`
      create schema app;
      create table app.effects (event_id text not null, at timestamptz not null, txid xid8 not null);
      create function app.act(p_event public.webhook_events) returns text language plpgsql as $$
      begin
        perform pg_sleep((p_event.payload ->> 'sec')::float);
        insert into app.effects values (p_event.event_id, clock_timestamp(), pg_current_xact_id());
        return null;
      end $$;
      create function app.pay(p_event public.webhook_events) returns text language sql as $$
        select app.act(p_event);
      $$;
      insert into public.webhook_handlers (provider, event_type, kind, name)
      values ('shop', 'slow', 'sql', 'app.act'), ('shop', 'pay', 'sql', 'app.pay')`);
  });
  beforeEach(() =>
    session.client.query(
      `truncate public.webhook_events, app.effects; delete from public.webhook_handlers where kind = 'typescript'`,
    ),
  );
  afterEach(async () => {
    await Promise.all(running.splice(0).map((crew) => crew.stop()));
  });

  const start = (handlers: Handlers = NO_HANDLERS, workers = 2) => {
    const options: WebhookCrewOptions = {
      db2Url: database.url(),
      workers,
      batchSize: 100,
      handlers,
      metrics: NO_METRICS,
      log: createLog('silent'),
    };
    const crew = startWebhookCrew(options);
    running.push(crew);
    return crew;
  };
  const put = (type: string, count: number, payload: Record<string, unknown> = {}) =>
    session.client.query(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
       select $1, 'shop', $2 || '-' || n, $2, $4 from generate_series(1, $3) n`,
      [shop, type, count, payload],
    );
  const until = async (what: string, sql: string) => {
    const deadline = Date.now() + DEADLINE_MS;
    while (!(await session.value<boolean>(sql))) {
      assert(Date.now() < deadline, what);
      await sleep(10);
    }
  };
  const done = (like: string, count: number) =>
    `select count(*) >= ${count} from public.webhook_events where event_id like '${like}' and status = 'success'`;
  /** How long a payment takes that arrives now. */
  const payMs = async () => {
    const startedMs = Date.now();
    await put('pay', 1, { sec: 0 });
    await until('the payment waits', done('pay-%', 1));
    return Date.now() - startedMs;
  };

  it('handle a payment at once behind three hundred events of a handler that takes half a second', async () => {
    await put('slow', 300, { sec: 0.5 });
    start();
    await until('the slow ones have begun', done('slow-%', 4));
    const tookMs = await payMs();
    assert(tookMs < SOON_MS, `the payment took ${tookMs} ms`);
    // Sets of about a second: none comes near the statement timeout.
    await until('the slow ones go on', done('slow-%', 12));
    const sets = await session.rows<{ events: number }>(
      `select count(*)::int as events from app.effects where event_id like 'slow-%' group by txid`,
    );
    assert(
      sets.every(({ events }) => events <= 3),
      JSON.stringify(sets),
    );
  });

  it('put a hundred events of a fast handler into a set', async () => {
    await put('slow', 2_000, { sec: 0 });
    start();
    await until('they are done', done('slow-%', 2_000));
    assert.equal(
      await session.value<number>(
        'select max(n)::int from (select count(*) as n from app.effects group by txid) t',
      ),
      100,
    );
  });

  const typescript = (name: string, apply: Handler['apply'], call?: Handler['call']): Handler => ({
    name,
    provider: 'shop',
    types: [name],
    apply,
    ...(call && { call }),
  });
  const effect: Handler['apply'] = async ({ eventId }, tx) => {
    await tx.query('insert into app.effects values ($1, now(), pg_current_xact_id())', [eventId]);
  };

  it('go on with other handlers while those of TypeScript hang in their transactions', async () => {
    const holder = await openSession(database.url());
    const hanging = typescript('hanging', async (event, tx) => {
      await tx.query('set local lock_timeout = 0');
      await tx.query('select pg_advisory_xact_lock_shared(17)');
      await effect(event, tx, undefined);
    });
    const other = typescript('other', effect);
    await holder.value('select pg_advisory_lock(17)');
    try {
      start(
        new Map([
          [hanging.name, hanging],
          [other.name, other],
        ]),
      );
      await until(
        'they are registered',
        `select count(*) = 2 from public.webhook_handlers where kind = 'typescript'`,
      );
      await put('hanging', 100);
      await until(
        'both workers hang',
        `select count(*) = 16 from pg_locks where locktype = 'advisory' and objid = 17 and not granted`,
      );
      await put('other', 50);
      await until('the other one goes on', done('other-%', 50));
      assert((await payMs()) < SOON_MS);
    } finally {
      await holder.value('select pg_advisory_unlock(17)');
      await holder.close();
    }
    await until('then they end as well', done('hanging-%', 100));
    assert.equal(
      await session.value(`select count(*)::int from app.effects where event_id like 'hanging-%'`),
      100,
    );
  });

  it('leave events alone whose handler only the other one has, and both take the rest', async () => {
    const mine = typescript('mine', effect);
    await put('mine', 20);
    start(NO_HANDLERS, 1);
    // Without a handler they are skipped: so they wait until it is registered.
    await until(
      'they are skipped',
      `select count(*) = 20 from public.webhook_events where status = 'skipped'`,
    );
    await session.client.query('truncate public.webhook_events');
    const other = start(new Map([[mine.name, mine]]), 1);
    await until('it is registered', `select count(*) = 1 from public.webhook_handlers where name = 'mine'`);
    await other.stop();
    running.pop();
    await put('mine', 20);
    await put('slow', 50, { sec: 0 });
    await until('the rest is done', done('slow-%', 50));
    assert.equal(
      await session.value(`select count(*)::int from public.webhook_events where status = 'pending'`),
      20,
    );
    start(new Map([[mine.name, mine]]), 1);
    await until('who has the handler takes them', done('mine-%', 20));
    assert.deepEqual(await session.rows(`select distinct attempts, takeovers from public.webhook_events`), [
      { attempts: 1, takeovers: 0 },
    ]);
  });

  it('are not needed for SQL handlers where cron does the work, a few events of each lane in turn', async () => {
    await session.client.query(
      `insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'mine', 'typescript', 'mine')`,
    );
    await put('mine', 1);
    // Left in a lane that cron serves: it is given its own.
    await session.client.query('update public.webhook_events set lane = 0');
    await put('slow', 40, { sec: 0 });
    await put('pay', 1, { sec: 0 });
    await session.client.query('call webhook.work(20)');
    assert.deepEqual(
      await session.rows(
        `select event_type as type, status::text, attempts, count(*)::int as events
         from public.webhook_events group by 1, 2, 3 order by 1, 2`,
      ),
      [
        { type: 'mine', status: 'pending', attempts: 0, events: 1 },
        { type: 'pay', status: 'success', attempts: 1, events: 1 },
        { type: 'slow', status: 'pending', attempts: 0, events: 22 },
        { type: 'slow', status: 'success', attempts: 1, events: 18 },
      ],
    );
    assert.equal(
      await session.value(
        `select handler_name from webhook.event_lanes() join public.webhook_events using (lane) where event_type = 'mine'`,
      ),
      'mine',
    );
  });

  it('are not needed where cron does the work: one call takes all that is due', async () => {
    await put('slow', 1_100, { sec: 0 });
    await session.client.query('call webhook.work()');
    assert.equal(await session.value(done('slow-%', 1_100)), true);
  });

  for (const [events, status, said] of [
    [1, 'failed', undefined],
    // Which of them hangs is not known: each is taken alone when its lease has run out.
    [2, 'processing', /events of handler app\.act wait: canceling statement/],
  ] as const)
    it(`are not needed where cron does the work: ${events} events that hang keep up no other handler's`, async () => {
      await put('slow', events, { sec: 3_600 });
      await put('pay', 30, { sec: 0 });
      const cron = await openSession(database.url());
      const calling = cron.client.query('call webhook.work()').then(
        () => undefined,
        (error: unknown) => String(error),
      );
      await until(
        'it hangs',
        `select exists (select from pg_stat_activity where application_name = 'sluice-webhook-cron' and wait_event = 'PgSleep')`,
      );
      assert.equal(await session.value('select webhook.cancel_hung()'), 0, 'it has hardly begun');
      assert.equal(await session.value(`select webhook.cancel_hung('0 s')`), 1);
      const error = await calling;
      await cron.close();
      if (said === undefined) assert.equal(error, undefined);
      else assert.match(error ?? '', said);
      assert.equal(await session.value(done('pay-%', 30)), true);
      assert.deepEqual(
        await session.rows(
          `select status::text, count(*)::int as events from public.webhook_events where event_type = 'slow' group by 1`,
        ),
        [{ status, events }],
      );
    });

  it('hand back an event that was left in the lane of another handler, and it finds its own', async () => {
    const mine = typescript('mine', effect);
    await session.client.query(
      `insert into public.webhook_handlers (provider, event_type, kind, name) values ('shop', 'mine', 'typescript', 'mine')`,
    );
    await put('mine', 3);
    await session.client.query('update public.webhook_events set lane = 0');
    start(NO_HANDLERS, 1);
    await until(
      'they are in its lane',
      `select count(*) = 0 from public.webhook_events where lane = 0 or status <> 'pending'`,
    );
    assert.equal(await session.value('select max(attempts) from public.webhook_events'), 0);
    start(new Map([[mine.name, mine]]), 1);
    await until('they are done', done('mine-%', 3));
  });
});

// TypeScript handlers that hang, end the transaction, throw strange things or do not wait: the worker goes on, and no
// effect is taken twice.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { NO_METRICS } from '#core/ports.ts';
import { type Handler, type Transaction, TryLater } from '#core/webhook/handlers.ts';
import { Processor } from '#core/webhook/processor.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { openWebhookStore } from '../../src/webhook/databases.ts';
import { registerHandlers, warnOfMissingHandlers } from '../../src/webhook/handlers.ts';
import { memoryLog } from '../core/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { openShop, record } from './sql_support.ts';

const never = () => new Promise<never>(() => undefined);
const coded = (code: string) => Object.assign(new Error(`failed with ${code}`), { code });

describe('a hostile handler', () => {
  let databases: TestDatabases;
  let session: Session;
  let database: Database;
  let shop: string;
  const log = createLog('silent');
  const base = { name: 'own', provider: 'shop', types: ['act'] };
  before(async () => {
    databases = await startDatabases({ db1: false });
    session = await openSession(databases.db2.url);
    shop = await openShop(session);
    await session.value(`select webhook.remove_handler('app.act', 'test')`);
    // A type of an SQL handler is not given away.
    await session.client.query(`delete from public.webhook_handlers where name = 'app.act'`);
    database = createDatabase({ url: databases.db2.url, max: 10, applicationName: 'test', log });
    await registerHandlers(database, new Map([['own', { ...base, apply: async () => undefined }]]));
  });
  after(async () => {
    await database?.end();
    await session?.close();
    await databases?.stop();
  });
  beforeEach(() => session.client.query('truncate public.webhook_events, app.effects'));

  type Behaviour = Partial<Pick<Handler, 'call'>> & {
    apply?: (...args: Parameters<Handler['apply']>) => unknown;
  };
  const processorOf = (behaviour: Behaviour, timeouts = { callMs: 10_000, applyMs: 10_000 }) =>
    new Processor(
      {
        store: openWebhookStore(database),
        connectionsOf: () => ({
          process: openWebhookStore(database).process,
          transact: (work, timeoutMs) => database.transact(work, timeoutMs),
        }),
        handlers: new Map([['own', { apply: async () => undefined, ...base, ...behaviour } as Handler]]),
        timeouts,
        log,
        metrics: NO_METRICS,
        now: Date.now,
      },
      100,
    );
  /** One event through the handler, and what the row says then. */
  const meet = async (
    behaviour: Behaviour,
    {
      stop = new AbortController(),
      ...timeouts
    }: { callMs?: number; applyMs?: number; stop?: AbortController } = {},
  ) => {
    await record(session, shop, ['e1']);
    await processorOf(behaviour, { callMs: 10_000, applyMs: 10_000, ...timeouts }).step(stop.signal);
    const [row] = await session.rows(
      `select status::text, error, attempts, (select count(*)::int from app.effects) as effects
       from public.webhook_events`,
    );
    return row;
  };
  const effect = (tx: Transaction) => tx.query(`insert into app.effects values ('e1')`);

  it('whose call never ends, and never looks at its signal, has failed after its time', async () => {
    const row = await meet({ call: never }, { callMs: 50 });
    assert.deepEqual(row, { status: 'failed', error: 'not done within 50 ms', attempts: 1, effects: 0 });
  });

  it('whose call never ends does not hold up a stop: its event is handed back', async () => {
    const stop = new AbortController();
    const call = () => {
      stop.abort();
      return never();
    };
    assert.deepEqual(await meet({ call }, { stop }), {
      status: 'pending',
      error: null,
      attempts: 0,
      effects: 0,
    });
  });

  it('whose apply never ends has failed after its time, and its transaction is gone', async () => {
    let late: Transaction | undefined;
    const apply = async (_: unknown, tx: Transaction) => {
      late = tx;
      await effect(tx);
      return never();
    };
    const row = await meet({ apply }, { applyMs: 200 });
    assert.deepEqual(row, { status: 'failed', error: 'not done within 200 ms', attempts: 1, effects: 0 });
    await assert.rejects(async () => late?.query('select 1'), /the transaction is over/);
  });

  it('that keeps its transaction cannot use it after the end', async () => {
    let late: Transaction | undefined;
    const apply = async (_: unknown, tx: Transaction) => {
      late = tx;
      throw new Error('no');
    };
    assert.equal((await meet({ apply }))?.error, 'no');
    await assert.rejects(async () => effect(late as Transaction), /the transaction is over/);
    assert.equal(await session.value('select count(*)::int from app.effects'), 0);
  });

  for (const [name, then] of [
    ['throws', () => Promise.reject(new Error('after the commit'))],
    ['returns', async () => undefined],
    ['hangs', never],
  ] as const)
    it(`that commits and then ${name} is a dead letter, and its effect is not taken again`, async () => {
      const apply = async (_: unknown, tx: Transaction) => {
        await effect(tx);
        await tx.query('commit');
        return then();
      };
      const row = await meet({ apply }, { applyMs: 500 });
      assert.match(row?.error, /has ended its transaction/);
      assert.deepEqual([row?.status, row?.effects], ['dead_letter', 1]);
    });

  it('cannot hide a commit behind another statement', async () => {
    const apply = (_: unknown, tx: Transaction) =>
      tx.query(`insert into app.effects values ('e1'); commit; begin`);
    const row = await meet({ apply });
    assert.deepEqual([row?.status, row?.effects], ['failed', 0]);
  });

  it('that does not wait for a statement that fails has failed, and the process lives', async () => {
    const apply = async (_: unknown, tx: Transaction) => {
      void tx.query('insert into app.nothing values (1)');
    };
    assert.equal((await meet({ apply }))?.status, 'failed');
  });

  it('that is not an async function is waited for, and an answer that is not text gives no reason', async () => {
    assert.equal((await meet({ apply: () => undefined }))?.status, 'success');
    await session.client.query('truncate public.webhook_events');
    const apply = (_: unknown, tx: Transaction) => tx.query('select 1');
    assert.deepEqual(await meet({ apply }), { status: 'success', error: null, attempts: 1, effects: 0 });
  });

  it('that throws what no text column can hold has failed, with the rest of it', async () => {
    const apply = async () => {
      throw new Error('bad \0 byte, half a \ud83d smile');
    };
    assert.equal((await meet({ apply }))?.error, 'bad \ufffd byte, half a \ufffd smile');
    await session.client.query('truncate public.webhook_events');
    const thrown = await meet({ apply: () => Promise.reject(Object.create(null)) });
    assert.equal(thrown?.error, 'a value that cannot be turned into text was thrown');
    await session.client.query('truncate public.webhook_events');
    assert.deepEqual(await meet({ apply: async () => 'for \0 test' }), {
      status: 'skipped',
      error: 'for \ufffd test',
      attempts: 1,
      effects: 0,
    });
  });

  it('that collides is tried again in a moment and not at once, uncounted, with its error', async () => {
    const row = await meet({ apply: () => Promise.reject(coded('55P03')) });
    assert.deepEqual([row?.status, row?.error, row?.attempts], ['failed', 'failed with 55P03', 0]);
    assert.equal(
      await session.value(
        'select next_attempt_at > last_attempt_at + interval $$0.4 s$$ from public.webhook_events',
      ),
      true,
    );
  });

  for (const error of [new TryLater('not yet'), coded('SL034'), coded('53100'), coded('25006')])
    it(`that says ${error.name} ${error.message} is not counted`, async () => {
      const row = await meet({ apply: () => Promise.reject(error) });
      assert.deepEqual([row?.status, row?.error, row?.attempts], ['failed', error.message, 0]);
      assert.equal(await session.value('select waiting_since is not null from public.webhook_events'), true);
    });

  it('is missed in the log when its events wait and no worker has it', async () => {
    await record(session, shop, ['e1', 'e2']);
    const warnings = memoryLog();
    await warnOfMissingHandlers(database, new Map(), warnings);
    assert.deepEqual(warnings.lines, []);
    await session.client.query(
      `update public.webhook_events set next_attempt_at = now() - interval '2 minutes'`,
    );
    await warnOfMissingHandlers(database, new Map([['own', {} as Handler]]), warnings);
    assert.deepEqual(warnings.lines, []);
    await warnOfMissingHandlers(database, new Map(), warnings);
    assert.equal(warnings.lines.length, 1);
    assert.match(JSON.stringify(warnings.lines), /"handler":"own","events":2/);
  });
});

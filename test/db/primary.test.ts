import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { toHttpError } from '#core/failure.ts';
import { createDatabase, type Database, REBUILD_TIMEOUT_MS } from '../../src/db/database.ts';
import { hostsOf } from '../../src/db/hosts.ts';
import { startListener } from '../../src/db/listener.ts';
import { createLog } from '../../src/log.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { type Pair, startPair } from '../support/standby.ts';

const log = createLog('silent');

describe('an address', () => {
  it('may name several hosts, as libpq has it', () => {
    assert.deepEqual(hostsOf('postgres://u:p%40x@a:1,b:2,[::1]:3/db?sslmode=require'), [
      'postgres://u:p%40x@a:1/db?sslmode=require',
      'postgres://u:p%40x@b:2/db?sslmode=require',
      'postgres://u:p%40x@[::1]:3/db?sslmode=require',
    ]);
  });

  for (const url of [
    'postgres://a/db',
    'postgresql://u@a:1/d?x=1,2',
    'postgres:///db?host=/tmp',
    '/var/run db',
  ])
    it(`stays what it is with one host: ${url}`, () => assert.deepEqual(hostsOf(url), [url]));
});

describe('a database with two hosts', () => {
  let pair: Pair;
  let database: Database;
  const own = async (of: Database = database): Promise<number> =>
    Number(
      (await of.call<{ inet_server_port: number }>('pg_catalog.inet_server_port', {}))[0]?.inet_server_port,
    );
  const outageOf = async (call: Promise<unknown>): Promise<string> =>
    toHttpError(
      await call.then(
        () => assert.fail('it answered'),
        (thrown: unknown) => thrown,
      ),
    ).kind.code;
  /** Asked until it answers; each refusal meanwhile asks for a retry. */
  const ownOnceAgain = async (): Promise<number> => {
    for (;;) {
      try {
        return await own();
      } catch (error) {
        assert.equal(toHttpError(error).kind.code, 'database_unavailable', String(error));
        await pause(50);
      }
    }
  };
  const open = (url: string): Database =>
    createDatabase({ url, max: 2, applicationName: 'probe', callTimeoutMs: REBUILD_TIMEOUT_MS, log });

  beforeEach(async () => {
    pair = await startPair('db1');
    database = open(pair.url);
  });
  afterEach(async () => {
    await database?.end();
    await pair?.stop();
  });

  it('calls the primary, wherever it stands in the address', async () => {
    assert.equal(await own(), pair.first.port);
  });

  it('follows the primary when it was killed', async () => {
    assert.equal(await own(), pair.first.port);
    process.kill(pair.first.pid, 'SIGKILL');
    await pair.promote();
    assert.equal(await ownOnceAgain(), pair.second.port);
  });

  it('ends what waits for a primary that hangs, and does not wait for it again', async () => {
    await withClient(pair.first.url, (client) =>
      client.query('create function public.nap() returns void language sql as $$ select pg_sleep(600) $$'),
    );
    assert.equal(await own(), pair.first.port);
    const underWay = outageOf(database.call('public.nap', {}));
    pair.freeze(pair.first);
    // Nothing but the watcher can end it: the call itself may take a quarter of an hour.
    assert.equal(await underWay, 'database_unavailable');
    assert.equal(await outageOf(own()), 'database_unavailable');
    await pair.promote();
    assert.equal(await ownOnceAgain(), pair.second.port);
    pair.thaw(pair.first);
    assert.equal(await own(), pair.second.port);
  });

  it('does not read from a primary whose commits reach no standby', async () => {
    await pair.synchronous(true);
    assert.equal(await own(), pair.first.port);
    await pair.second.stop('immediate');
    const fresh = open(`${pair.url}?application_name=later`);
    assert.equal(await outageOf(own(fresh)), 'database_unavailable');
    await fresh.end();
  });

  it('lets its listener follow', async () => {
    let notices = 0;
    const listener = startListener({ url: pair.url, channel: 'probe', onNotice: () => notices++, log });
    await until(() => notices === 1);
    process.kill(pair.first.pid, 'SIGKILL');
    await pair.promote();
    await until(() => notices === 2);
    await withClient(pair.second.url, (client) => client.query('notify probe'));
    await until(() => notices === 3);
    await listener.stop();
  });

  it('is watched by one session for all its pools, and by none where it has one host', async () => {
    const [second, single] = [open(pair.url), open(pair.first.url)];
    await Promise.all([own(), own(second), own(single)]);
    const watchers = () =>
      withClient(pair.first.url, async (client) => {
        const { rows } = await client.query(
          "select count(*)::int as n from pg_stat_activity where application_name = 'sluice-watcher'",
        );
        return rows[0].n as number;
      });
    assert.equal(await watchers(), 1);
    await Promise.all([second.end(), database.end()]);
    await until(async () => (await watchers()) === 0);
    assert.equal(await own(single), pair.first.port);
    assert.equal(await watchers(), 0);
    await single.end();
    database = open(pair.url);
  });
});

describe('a database with one host', () => {
  it('that is a standby is not available, whatever a statement meets there', async () => {
    const pair = await startPair('db1');
    const [primary, standby] = [pair.first, pair.second].map(({ url }) =>
      createDatabase({ url, max: 1, applicationName: 'probe', log }),
    ) as [Database, Database];
    try {
      await pair.synchronous(true);
      await withClient(pair.first.url, (client) =>
        client.query(`
          create function public.probe_unlogged() returns bigint language sql as $$ select count(*) from public.inventory_slots $$;
          create function public.probe_write() returns void language sql as $$ update public.engine_config set batch_size = 1 $$;
          create function public.probe_refusal() returns void language plpgsql as
            $$ begin raise exception 'no' using errcode = 'SL004'; end $$;
          create function public.probe_unsupported() returns void language plpgsql as
            $$ begin raise exception 'no' using errcode = '0A000'; end $$;`),
      );
      await pair.caughtUp();
      assert.deepEqual(await standby.call('public.intake_ready', {}), [{ intake_ready: false }]);
      const codes = await Promise.all(
        [
          // Reads an unlogged table: 0A000. Writes: 25006. Needs a transaction id: 0A000 or XX000.
          standby.call('public.probe_unlogged', {}),
          standby.call('public.probe_write', {}),
          standby.call('pg_catalog.pg_current_xact_id', {}),
          standby.call('public.probe_refusal', {}),
        ].map((call) => call.then(String, (error: unknown) => toHttpError(error).kind.code)),
      );
      assert.deepEqual(codes, [...Array(3).fill('database_unavailable'), 'limit']);
      // On a primary the same code is the statement's own.
      await assert.rejects(primary.call('public.probe_unsupported', {}), { code: '0A000' });
    } finally {
      await Promise.all([primary.end(), standby.end()]);
      await pair.stop();
    }
  });
});

async function until(test: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await test())) await pause(20);
}

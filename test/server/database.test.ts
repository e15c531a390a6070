import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { toHttpError } from '#core/failure.ts';
import { createDatabase, type Database, type DatabaseOptions } from '../../src/db/database.ts';
import { quoteName, statementFor } from '../../src/db/statement.ts';
import { memoryLog } from '../core/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openClient } from './support.ts';

describe('a statement', () => {
  it('is the call of a function by named arguments, made once', () => {
    const one = statementFor('public.get_claim', ['p_claim_id', 'p_other']);
    assert.match(one.text, /get_claim\(p_claim_id => \$1, p_other => \$2\)$/);
    assert.equal(statementFor('public.get_claim', ['p_claim_id', 'p_other']), one);
    assert.notEqual(statementFor('public.get_claim', ['p_claim_id']).name, one.name);
  });

  for (const name of ['get_claim', 'public.a()', 'public.a; drop', 'Public.a', 'a.b.c', '']) {
    it(`is not made for ${JSON.stringify(name)}`, () => assert.throws(() => statementFor(name, [])));
  }

  it('takes a name that people chose in quotes, whatever is in it', () => {
    const name = quoteName('my "Own" Commit(); --');
    assert.equal(name, '"my ""Own"" Commit(); --"');
    assert.equal(statementFor(`public.${name}`, []).text, `select * from public.${name}()`);
    for (const open of ['public."a', 'public."a"b"', 'public.""', 'public."a".b'])
      assert.throws(() => statementFor(open, []), open);
  });

  it('is not made with an argument that is not a name', () => {
    assert.throws(() => statementFor('public.get_claim', ['p_a => 1) --']));
  });
});

describe('a database', () => {
  let databases: TestDatabases;
  let database: Database;
  let options: DatabaseOptions;
  let client: pg.Client;
  const log = memoryLog();

  before(async () => {
    databases = await startDatabases({ db2: false });
    client = await openClient(databases.db1.url);
    await client.query(`
      create function public.probe(p_text text, p_list text[], p_flags boolean[]) returns table
        (text_back text, list_back text[], flags_back boolean[], moment timestamptz, never timestamptz, many bigint)
        language sql as $$
          select p_text, p_list, p_flags, timestamptz '2026-02-24 12:00:00.123456+02', timestamptz 'infinity', 9007199254740991 $$;
      create function public.own_pid() returns int language sql as $$ select pg_backend_pid() $$;
      create function public.nap() returns void language sql as $$ select pg_sleep(20) $$;
      create function public.refuse() returns void language plpgsql as
        $$ begin raise exception 'no' using errcode = 'SL004'; end $$;
      create function public.too_many() returns bigint language sql as $$ select 9007199254740992 $$;`);
    options = { url: databases.db1.url, max: 1, applicationName: 'probe', log };
    database = createDatabase(options);
  });
  after(async () => {
    await database?.end();
    await client?.end();
    await databases?.stop();
  });

  it('passes text, lists and nulls as they are, and gives times as UTC text', async () => {
    const p_text = `quote ' " \\ { } , null 😀`;
    const p_list = [p_text, null, '', 'NULL'];
    const rows = await database.call('public.probe', { p_text, p_list, p_flags: [true, false] });
    assert.deepEqual(rows, [
      {
        text_back: p_text,
        list_back: p_list,
        flags_back: [true, false],
        moment: '2026-02-24T10:00:00.123456Z',
        never: 'infinity',
        many: 9007199254740991,
      },
    ]);
  });

  it('refuses a number that it would have to round', async () => {
    await assert.rejects(database.call('public.too_many', {}), RangeError);
  });

  it('hands on the SQLSTATE of a refusal, and keeps the connection', async () => {
    const [before] = await database.call('public.own_pid', {});
    await assert.rejects(database.call('public.refuse', {}), { code: 'SL004' });
    assert.deepEqual(await database.call('public.own_pid', {}), [before]);
  });

  it('shows its name in pg_stat_activity', async () => {
    const { rows } = await client.query(`select 1 from pg_stat_activity where application_name = 'probe'`);
    assert.equal(rows.length, 1);
  });

  it('replaces a connection that was cut while idle, and does not end the process', async () => {
    const [before] = await database.call<{ own_pid: number }>('public.own_pid', {});
    assert.ok(before);
    await client.query('select pg_terminate_backend($1, 5000)', [before.own_pid]);
    // The call may meet the corpse; it then says so in a way that asks for a retry.
    const attempt = await database
      .call<{ own_pid: number }>('public.own_pid', {})
      .catch((error: unknown) => error);
    if (!Array.isArray(attempt)) assert.equal(toHttpError(attempt).kind.code, 'database_unavailable');
    const [later] = await database.call<{ own_pid: number }>('public.own_pid', {});
    assert.ok(later);
    assert.notEqual(later.own_pid, before.own_pid);
  });

  it('gives up a call that takes too long: the server says so first', async () => {
    const hasty = createDatabase({ ...options, callTimeoutMs: 2_100 });
    await assert.rejects(hasty.call('public.nap', {}), { code: '57014' });
    await hasty.end();
  });

  it('gives up a server that went silent, as one that cannot be reached', async () => {
    const hasty = createDatabase({ ...options, callTimeoutMs: 2_100 });
    const [own] = await hasty.call<{ own_pid: number }>('public.own_pid', {});
    assert.ok(own);
    process.kill(own.own_pid, 'SIGSTOP');
    try {
      const error = await hasty.call('public.own_pid', {}).catch((thrown: unknown) => thrown);
      assert.equal(toHttpError(error).kind.code, 'database_unavailable');
    } finally {
      process.kill(own.own_pid, 'SIGCONT');
    }
    await hasty.end();
  });

  it('cannot be reached on a port without a listener', async () => {
    const nowhere = createDatabase({
      url: 'postgres://x:y@127.0.0.1:1/z',
      max: 1,
      applicationName: 'probe',
      log,
    });
    const error = await nowhere.call('public.own_pid', {}).catch((thrown: unknown) => thrown);
    assert.equal(toHttpError(error).kind.code, 'database_unavailable');
    await nowhere.end();
  });
});

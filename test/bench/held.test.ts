import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { holdSnapshot } from '../../bench/whole/held.ts';
import { sessionOf } from '../../bench/world.ts';
import { startDatabases } from '../support/databases.ts';

const DEAD = `select n_dead_tup::int from pg_stat_user_tables where relname = 'held'`;
const WRITE = 'update held set n = n + 1; select pg_stat_force_next_flush()';

test('a held snapshot keeps vacuum from removing rows, and one that was not held to the end is noticed', async (t) => {
  const databases = await startDatabases({ db2: false, settings: { autovacuum: 'off' } });
  const { url } = databases.db1;
  const client = new pg.Client({ connectionString: url });
  t.after(async () => {
    await client.end();
    await databases.stop();
  });
  await client.connect();
  const session = sessionOf(client);
  await session.run('create table held (n int); insert into held select generate_series(1, 100)');
  const deadAfterVacuum = async (): Promise<number> => {
    await session.run(WRITE);
    await session.run('vacuum held');
    return session.ask<number>(DEAD);
  };

  const held = await holdSnapshot(session, url);
  assert.equal(await deadAfterVacuum(), 100);
  await held.release();
  assert.equal(await deadAfterVacuum(), 0);

  const lost = await holdSnapshot(session, url);
  await session.ask('select pg_terminate_backend($1, 5000)', [lost.pid]);
  await assert.rejects(lost.release(), /the snapshot was not held/);
});

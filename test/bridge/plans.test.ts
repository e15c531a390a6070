// However long the queue is and whatever the statistics said when the plan was made: a finish reads its own batch.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { openSession, type Session } from '../support/sessions.ts';

const CLAIMS = 3_000;
const MAX_BATCH = 1_000;
const FINISHED = 100;
/** Rows read for each message of a batch, in one table: once to find it, and room for what is read again. */
const READS_A_MESSAGE_MAX = 4;

const VERDICTS = ['committed', 'refused', 'dead_letter', 'retry', 'outage', 'untried'];

let databases: TestDatabases;
let session: Session;

before(async () => {
  databases = await startDatabases({ db2: false, settings: { autovacuum: 'off' } });
  session = await openSession(databases.db1.url);
});

after(async () => {
  await session.close();
  await databases.stop();
});

type Taken = { msg_id: string; read_ct: number }[];

const take = (count: number): Promise<Taken> =>
  session.rows(
    `select msg_id, read_ct from public.bridge_take(array[intake.lane_of('p')], array[$1::int], 600)`,
    [count],
  );

const finish = (taken: Taken, verdicts: string[]): Promise<unknown> =>
  session.rows('select * from public.bridge_finish($1, $2, $3, $4, $5)', [
    taken.map(({ msg_id }) => msg_id),
    taken.map(({ read_ct }) => read_ct),
    verdicts,
    verdicts.map(() => 'planted'),
    verdicts.map(() => 0),
  ]);

/** What this transaction has read so far, however it was found. */
async function rowsRead(): Promise<Record<string, number>> {
  const rows = await session.rows<{ relname: string; rows: string }>(
    `select relname, seq_tup_read + coalesce(idx_tup_fetch, 0) as rows from pg_stat_xact_user_tables
     where relname in ('q_intake_queue', 'claims', 'inventory_slots')`,
  );
  return Object.fromEntries(rows.map(({ relname, rows: read }) => [relname, Number(read)]));
}

test('a finish that was planned while everything was empty reads only its batch, whatever its verdicts', async () => {
  await putOnSale(session.client, 'p', CLAIMS);
  const batch = Array.from({ length: MAX_BATCH }, (_, n) => ({ pool: 'p', user: `user ${n}` }));
  // Postgres makes the plans with the first few claims: the claims table was never analyzed, the queue only when empty.
  await session.client.query('vacuum analyze pgmq.q_intake_queue');
  await session.batch(batch.slice(0, VERDICTS.length));
  for (const verdict of VERDICTS) await finish(await take(1), [verdict]);
  for (let sold = 0; sold < CLAIMS; sold += MAX_BATCH) await session.batch(batch);

  const mixes = [
    ['committed'],
    ['retry'],
    ['outage'],
    ['untried'],
    ['refused'],
    ['committed', 'retry', 'refused', 'dead_letter'],
  ];
  for (const mix of mixes) {
    const taken = await take(FINISHED);
    assert.equal(taken.length, FINISHED);
    const verdicts = taken.map((_, n) => mix[n % mix.length] ?? '');
    await session.client.query('begin');
    const before = await rowsRead();
    await finish(taken, verdicts);
    const after = await rowsRead();
    await session.client.query('commit');
    for (const [table, read] of Object.entries(after)) {
      const reads = read - (before[table] ?? 0);
      assert.ok(reads <= READS_A_MESSAGE_MAX * FINISHED, `${mix}: ${reads} rows of ${table} were read`);
    }
  }
});

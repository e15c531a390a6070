// Many holds that are due at once end in parts, each its own transaction: what cuts a later part short undoes none before it.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { HOLDS_AT_ONCE } from '#core/bridge/ends.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import { expireHolds } from '../../src/scheduler/upkeep.ts';
import { putOnSale } from '../server/support.ts';
import { useIntake } from '../support/suite.ts';

const BATCH = 500;
/** Two whole parts and a rest. */
const DUE = 2 * HOLDS_AT_ONCE + BATCH;

describe('many holds that are due at once', () => {
  let db: Database;
  let rounds = 0;
  // Before the database itself is stopped.
  after(() => db?.end());
  const database = useIntake('session');
  const { session } = database;

  before(async () => {
    db = createDatabase({
      url: database.url(),
      max: 1,
      applicationName: 'test',
      log: createLog('silent'),
    });
  });
  beforeEach(async () => {
    const pool = `holds_${++rounds}`;
    await putOnSale(session.client, pool, DUE);
    for (let at = 0; at < DUE; at += BATCH)
      await session.batch(Array.from({ length: BATCH }, (_, n) => ({ pool, user: `user ${at + n}` })));
    await session.client.query(
      `update public.claims set hold_until = now() - interval '1 minute' - random() * interval '1 hour' where freed_at is null`,
    );
  });

  const left = () => session.value<number>('select count(*)::int from public.claims where freed_at is null');

  it('end in parts by the scheduler, until less than a part was due', async () => {
    const parts: number[] = [];
    const watched: Database = {
      ...db,
      async call<Row>(name: string, args: Record<string, unknown>) {
        const rows = await db.call<Row>(name, args);
        parts.push((rows[0] as { expire_holds: number }).expire_holds);
        return rows;
      },
    };
    await expireHolds(watched, new AbortController().signal);
    assert.deepEqual(parts, [HOLDS_AT_ONCE, HOLDS_AT_ONCE, BATCH]);
    assert.equal(await left(), 0);
  });

  it('end in parts by pg_cron’s procedure, and those before a cut stay ended', async () => {
    await session.client.query(
      `create function public.cut() returns trigger language plpgsql as $$ begin raise exception 'cut'; end $$`,
    );
    // The newest hold is in the last part.
    const last = await session.value<string>(
      'select claim_id from public.claims where freed_at is null order by hold_until desc limit 1',
    );
    await session.client.query(
      `create trigger cut before update on public.claims for each row when (new.claim_id = '${last}')
       execute function public.cut()`,
    );
    await assert.rejects(session.client.query('call intake.expire_due_holds()'), /cut/);
    assert.equal(await left(), BATCH);
    await session.client.query('drop function public.cut() cascade');
    await session.client.query('call intake.expire_due_holds()');
    assert.equal(await left(), 0);
  });
});

// A paid claim is voided while a worker writes its ticket, again and again, on real parallel sessions and both versions of
// Postgres. Whatever the order, a voided claim has no ticket afterwards. RACES=10000 makes it ten thousand. The control leaves the
// placeholder out, as a plain tombstone would, and tickets of voided claims live.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { prepareDebian, startDebianCluster } from '../pgtap/debian_cluster.ts';
import { startDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { closeAll, openSessions, type Session } from '../support/sessions.ts';

const RACES = Number(process.env.RACES ?? 200);
const CONTROL_RACES = 200;
const PAIRS = 4;
/** Each side begins up to so many round trips late, and keeps its transaction open for as many. */
const STEPS_MAX = 3;
const UNIT_PRICE = 1000;

type Server = { url: string; stop(): Promise<void> | void };

const SERVERS: Readonly<Record<string, () => Promise<Server | string>>> = {
  async 'Postgres 18'() {
    const databases = await startDatabases({ db1: false });
    return { url: databases.db2.url, stop: databases.stop };
  },
  async 'Postgres 15'() {
    const reason = await prepareDebian();
    if (reason !== undefined) return reason;
    const cluster = await startDebianCluster(false);
    await withClient(cluster.url, async (client) => {
      await applyPlatform(client, { authenticatorPassword: 'test', defaults: 'new' });
      await migrate(client, join(PROJECT, 'db2'));
    });
    return cluster;
  },
};

const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
/** The same course for the same number; the sessions' own speed does the rest. */
const steps = (race: number, which: number) => ((race * 2654435761 + which * 40503) >>> 7) % (STEPS_MAX + 1);

async function idle({ client }: Session, times: number): Promise<void> {
  for (let done = 0; done < times; done++) await client.query('select');
}

/** One claim is finalized and voided at the same time. Returns what the worker was told. */
async function race(number: number, worker: Session, courier: Session): Promise<string> {
  const claim = {
    claim_id: uuid(number),
    resource_id: uuid(500_000_000 - number),
    pool_id: 'p',
    user_id: 'ann',
    order_id: uuid(number),
  };
  const paid = { ...claim, payment_key: `stripe/pi_${number}`, unit_price: UNIT_PRICE, currency: 'usd' };
  const [outcome] = await Promise.all([
    inTransaction(worker, number, 0, async () =>
      worker.value<string>('select outcome from public.finalize_batch($1)', [JSON.stringify([claim])]),
    ),
    inTransaction(courier, number, 2, async () =>
      courier.rows('select * from public.void_order_tickets($1, $2)', [
        `void:stripe/pi_${number}`,
        JSON.stringify([paid]),
      ]),
    ),
  ]);
  return outcome;
}

async function inTransaction<T>(
  session: Session,
  race: number,
  seed: number,
  work: () => Promise<T>,
): Promise<T> {
  await idle(session, steps(race, seed));
  await session.client.query('begin');
  const answer = await work();
  await idle(session, steps(race, seed + 1));
  await session.client.query('commit');
  return answer;
}

/** Payments that were refunded in full, and that the courier has to take back. */
async function addPayments(observer: Session, first: number, count: number): Promise<void> {
  await observer.rows(
    `with paid as (
       insert into public.payments (provider, object_id, user_id, told, occurred_at, arrival, last_event_id, amount, captured, currency)
       select 'stripe', 'pi_' || n, 'ann', 'succeeded', now(), n, 'evt_' || n, $3::bigint, $3::bigint, 'usd'
       from generate_series($1::int, $2::int) n returning object_id)
     insert into public.claim_outbox (id, kind, payment_key, fact)
     select 'void:stripe/' || object_id, 'void', 'stripe/' || object_id, '{"cause": "operator", "refund": true}' from paid`,
    [first, first + count - 1, UNIT_PRICE],
  );
}

async function raceMany(sessions: Session[], observer: Session, first: number, count: number) {
  await addPayments(observer, first, count);
  const told: Record<string, number> = {};
  let next = first;
  await Promise.all(
    Array.from({ length: PAIRS }, async (_, pair) => {
      const [worker, courier] = [sessions[2 * pair], sessions[2 * pair + 1]] as [Session, Session];
      while (next < first + count) {
        const outcome = await race(next++, worker, courier);
        told[outcome] = (told[outcome] ?? 0) + 1;
      }
    }),
  );
  const [row] = await observer.rows<{
    living: number;
    voided: number;
    was_ticket: number;
    owed: number;
    placeholders: number;
  }>(
    `select count(t.claim_id)::int as living, count(*)::int as voided, count(v.confirmed_at)::int as was_ticket,
       count(r.id)::int as owed,
       (select count(*)::int from public.confirmed_tickets k where k.resource_id = k.claim_id) as placeholders
     from public.voided_tickets v
     left join public.confirmed_tickets t on t.claim_id = v.claim_id
     left join public.refunds_due r on r.id = 'void:' || v.claim_id
     where v.claim_id between $1 and $2`,
    [uuid(first), uuid(first + count - 1)],
  );
  assert(row);
  return { ...row, told };
}

for (const [name, start] of Object.entries(SERVERS))
  describe(`finalize against void on ${name}`, () => {
    let server: Server | string;
    let sessions: Session[] = [];
    let observer: Session;
    before(async () => {
      server = await start();
      if (typeof server === 'string') return;
      sessions = await openSessions(server.url, 2 * PAIRS + 1);
      observer = sessions[2 * PAIRS] as Session;
    });
    after(async () => {
      await closeAll(sessions);
      if (typeof server !== 'string') await server.stop();
    });
    const isMissing = (t: TestContext): boolean => {
      if (typeof server === 'string') t.skip(server);
      return typeof server === 'string';
    };

    test(`${RACES} races leave no ticket of a voided claim`, async (t) => {
      if (isMissing(t)) return;
      const { living, voided, was_ticket, owed, placeholders, told } = await raceMany(
        sessions,
        observer,
        1,
        RACES,
      );
      t.diagnostic(
        `${voided} voided, ${was_ticket} of them after they were tickets; workers were told ${JSON.stringify(told)}`,
      );
      assert.deepEqual(
        { living, voided, owed, placeholders },
        { living: 0, voided: RACES, owed: RACES, placeholders: 0 },
      );
      assert.equal(told.committed, was_ticket, 'each ticket that was written left its time in the tombstone');
      assert.equal((told.committed ?? 0) + (told.voided ?? 0), RACES);
      assert.ok(
        (told.committed ?? 0) > RACES / 10 && (told.voided ?? 0) > RACES / 10,
        'both came first often enough',
      );
    });

    test('control: with a plain tombstone, tickets of voided claims live', async (t) => {
      if (isMissing(t)) return;
      const original = await observer.value<string>(
        `select pg_get_functiondef('public.place_claims'::regproc)`,
      );
      const placing = /with placed as \([\s\S]*?into v_placed from placed p;/;
      assert.match(original, placing);
      await observer.client.query(original.replace(placing, `v_placed := '{}';`));
      try {
        const { living, told } = await raceMany(sessions, observer, 1_000_000, CONTROL_RACES);
        t.diagnostic(`${living} of ${CONTROL_RACES} live; workers were told ${JSON.stringify(told)}`);
        assert.ok(living > 0);
      } finally {
        await observer.client.query(original);
      }
    });
  });

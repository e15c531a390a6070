import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { collect } from '../../chaos/collect.ts';
import type { FinalState, History } from '../../chaos/history.ts';
import { judge } from '../../chaos/judge.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { event, told } from './good_history.ts';

describe('what is collected from two real databases', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let history: History;

  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    history = await live(db1, db2, databases);
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end()]);
    await databases?.stop();
  });

  const collected = (): Promise<FinalState> => collect({ db1: databases.db1.url, db2: databases.db2.url });
  const broken = async (): Promise<string[]> => {
    const { violations } = judge({ ...history, final: await collected() });
    return [...new Set(violations.map((violation) => violation.promise))];
  };

  test('has everything that happened, and no promise is broken', async () => {
    assert.deepEqual(judge({ ...history, final: await collected() }).violations, []);
    const { durability: _, queued: __, ...sizes } = await collected();
    assert.deepEqual(Object.fromEntries(Object.entries(sizes).map(([name, rows]) => [name, rows.length])), {
      ...{ slots: 3, claims: 2, tickets: 1, deadLetters: 1, archivedLetters: 1 },
      ...{ events: 1, credits: 1, payments: 1, calls: 1, audit: 2 },
    });
  });

  test('survives a crash that empties the cache of slots', async () => {
    await db1.query('truncate public.inventory_slots, intake.pool_marks');
    assert.deepEqual(await broken(), []);
  });

  /** Each must be seen through the queries, not only through a hand-made history. */
  const damages: [string, 'db1' | 'db2', string][] = [
    ['I1', 'db1', `delete from public.claims where request_id = 'r1'`],
    ['I3', 'db2', `update public.confirmed_tickets set user_id = 'thief'`],
    ['I5', 'db1', `update public.inventory_slots set status = 'RESERVED' where status = 'AVAILABLE'`],
    ['I6', 'db1', `update public.claims set state = 'queued' where request_id = 'r1'`],
    ['I7', 'db2', `update public.webhook_events set event_id = 'evt_other'`],
    ['I7', 'db2', 'update public.payments set refunded = 3'],
    ['I9', 'db2', 'update public.webhook_events set takeovers = 1'],
    ['I10', 'db2', `update public.webhook_events set status = 'pending'`],
    ['I11', 'db1', 'delete from audit.audit_logs'],
    ['I12', 'db1', `update pgmq.a_intake_dlq set message = message || '{"user_id": "healthy"}'`],
  ];
  for (const [promise, side, sql] of damages) {
    test(`shows that ${promise} is broken by: ${sql}`, async () => {
      const client = side === 'db1' ? db1 : db2;
      const restore = await keep(client);
      await client.query(sql);
      const found = await broken();
      await restore();
      assert(found.includes(promise), `only ${found}`);
      assert.deepEqual(await broken(), []);
    });
  }
});

/** Copies of the tables that a damage touches, put back by what it returns. */
async function keep(client: pg.Client): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('public', 'audit', 'pgmq') and tablename in (
       'claims', 'inventory_slots', 'audit_logs', 'a_intake_dlq', 'confirmed_tickets', 'webhook_events', 'payments')`,
  );
  await client.query('set session_replication_role = replica');
  for (const [index, { name }] of rows.entries())
    await client.query(`create temp table kept_${index} as select * from ${name}`);
  return async () => {
    for (const [index, { name }] of rows.entries()) {
      await client.query(`delete from ${name}`);
      const columns = await client.query<{ list: string }>(
        `select string_agg(quote_ident(attname), ', ') as list from pg_attribute
         where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [name],
      );
      const list = columns.rows[0]?.list;
      await client.query(
        `insert into ${name} (${list}) overriding system value select ${list} from kept_${index}`,
      );
      await client.query(`drop table kept_${index}`);
    }
    await client.query('set session_replication_role = origin');
  };
}

/** One ticket, one release, a dead letter, another that was discarded, an event and a call; and what was said of it. */
async function live(db1: pg.Client, db2: pg.Client, databases: TestDatabases): Promise<History> {
  await putOnSale(db1, 'rpc', 3);
  const claimOf = async (requestId: string) => {
    await db1.query(`select public.claim_resource_and_queue('rpc', 'ann', $1)`, [requestId]);
    const { rows } = await db1.query<{ claimId: string; slotId: string }>(
      'select claim_id as "claimId", slot_id as "slotId" from public.claims where request_id = $1',
      [requestId],
    );
    return rows[0] as { claimId: string; slotId: string };
  };
  const second = await claimOf('r2');
  await db1.query(`select public.release_own_claim($1, 'ann')`, [second.claimId]);
  const first = await claimOf('r1');
  for (const user of ['poison 1', 'poison 2'])
    await db1.query(`select public.intake_queue_send(jsonb_build_object('user_id', $1::text))`, [user]);
  await db2.query('select public.finalize_transaction($1)', [
    { resource_id: first.slotId, pool_id: 'rpc', user_id: 'ann', claim_id: first.claimId },
  ]);
  await db1.query(
    `select public.bridge_finish(array_agg(msg_id), array_agg(read_ct),
       array_agg(case when message ? 'claim_id' then 'committed' else 'dead_letter' end),
       array_agg('malformed'::text), array_agg(0))
     from public.bridge_take(array[0, intake.lane_of('rpc')], '{10,10}', 5)`,
  );
  const { rows: letters } = await db1.query<{ id: string }>(
    `select msg_id::text as id from public.list_dead_letters() where user_id = 'poison 1'`,
  );
  const letterId = letters[0]?.id ?? '';
  await db1.query(`select public.discard_dead_letters(array[$1::bigint], 'operator', 'chaos 1')`, [letterId]);
  await db2.query(
    `select webhook.add_endpoint('inline', 'stripe', '{OPS_SITE_SECRET}', 'inline', '{}', 'setup')`,
  );
  await db2.query(
    `insert into public.webhook_events (webhook_id, provider, event_id, event_type, payload)
     select webhook_id, 'stripe', 'evt_1', 'payment_intent.succeeded', $1 from public.webhook_endpoints`,
    [
      JSON.stringify({
        data: { object: { id: 'pi_1', amount: 7, currency: 'eur', metadata: { user_id: 'payer' } } },
      }),
    ],
  );
  await db2.query('call webhook.work()');
  await db2.query(`insert into public.calls (site_id, signature_hash) values ('site', 'aa')`);
  const call = { poolId: 'rpc', userId: 'ann', startedAt: 1, endedAt: 2, attempts: 1 };
  return {
    ...{ seed: 0, minutes: 0, stormAt: 0, calmAt: 0, drainedAt: 1 },
    pools: [{ poolId: 'rpc', capacity: 3, commit: 'rpc' }],
    claims: [
      { ...call, requestId: 'r1', answer: 'claimed', told: [told(first.claimId, first.slotId)] },
      { ...call, requestId: 'r2', answer: 'claimed', told: [told(second.claimId, second.slotId)] },
    ],
    releases: [{ claimId: second.claimId, at: 2, answer: 'released' }],
    events: [event('evt_1', 'pi_1', 'paid', 7)],
    callEvents: [{ siteId: 'site', signatureHash: 'aa', deliveries: 1, stored: 1, noop: 0 }],
    operatorActions: [
      {
        ...{ action: 'dead_letter_discard', ids: [letterId], reason: 'chaos 1', at: 3, answer: 'done' },
        results: [{ id: letterId, result: 'discarded' }],
      },
    ],
    healthy: [],
    poison: ['poison 1', 'poison 2'],
    ...{ targetCalls: [], faults: [], lostLeases: [], finishes: [] },
    eventFinishes: [{ worker: 'w1', eventId: 'evt_1', attempts: 1, takeovers: 0, result: 'success', at: 3 }],
    final: await collect({ db1: databases.db1.url, db2: databases.db2.url }),
  };
}

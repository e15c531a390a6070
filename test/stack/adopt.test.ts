// `sluice migrate` by an owner who is not a superuser, on databases that the requirements' own SQL has filled.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { withClient } from '../../src/migrate/sql.ts';
import {
  creditMoneyBack,
  deleteDuplicates,
  fillAsRequired,
  nameCreditedPayments,
  OwnPair,
  one,
  SERVERS,
  type Server,
} from './adopt_support.ts';

/** 100,000 take minutes on two servers: SLUICE_ADOPT_ROWS=100000. */
const ROWS = Number(process.env.SLUICE_ADOPT_ROWS ?? 10_000);

for (const [name, start] of Object.entries(SERVERS))
  describe(`an owner on ${name}`, () => {
    let server: Server | undefined;
    let reason = '';
    before(async () => {
      const started = await start();
      if (typeof started === 'string') reason = started;
      else server = started;
    });
    after(() => server?.stop());

    test('is told what it may not do, and needs a script of a superuser, no more', async (context) => {
      if (server === undefined) return context.skip(reason);
      const pair = await OwnPair.make(server, 'empty');
      const before = [await pair.shapeOf(pair.db1), await pair.shapeOf(pair.db2)];
      const refused = pair.migrate();
      assert.equal(refused.status, 1);
      assert.match(
        refused.stderr,
        /^error: DB1 \(intake\): the roles anon, .* are missing, and owner may not make all of them\n/,
      );
      assert.match(refused.stderr, /\nNeither database was changed\.\nhint: .*`npx sluice migrate --roles`/);
      assert.doesNotMatch(refused.stderr, /\n\s+at /);
      assert.deepEqual([await pair.shapeOf(pair.db1), await pair.shapeOf(pair.db2)], before);

      const script = pair.migrate('--roles');
      assert.equal(script.status, 0, script.stderr);
      await pair.asSuperuser((client) => client.query(script.stdout));
      const plan = pair.migrate('--plan');
      assert.equal(plan.status, 0, plan.stdout);
      assert.match(plan.stdout, /pgmq is (put in place as plain SQL|created)/);
      const done = pair.migrate('--seed');
      assert.equal(done.status, 0, done.stderr);
      assert.equal(pair.migrate().stdout, 'db1: up to date\ndb2: up to date\n');
      assert.match(pair.migrate('--plan').stdout, /^DB1 .*\n {2}up to date\n\nDB2 .*\n {2}up to date\n$/);
      assert.notEqual(
        (await one(pair.db1, `select claim_resource_and_queue('demo_concert_2026', 'ann') as slot`)).slot,
        null,
      );
      await pair.asSuperuser((client) => client.query(script.stdout));
    });

    test('sees in a plan what stands in the way on either database, and nothing is changed', async (context) => {
      if (server === undefined) return context.skip(reason);
      const pair = await OwnPair.make(server, 'planned');
      await fillAsRequired(pair.db2, 100);
      const before = [await pair.shapeOf(pair.db1), await pair.shapeOf(pair.db2)];
      const plan = pair.migrate('--plan');
      assert.equal(plan.status, 1);
      for (const what of [
        'table public.webhook_events',
        'type public.webhook_event_status',
        'table public.calls',
        'table audit.audit_logs',
        'function webhook.claim_next_event',
      ])
        assert.ok(plan.stdout.includes(`in the way: there is a ${what} that is not of Sluice`), what);
      assert.ok(plan.stdout.includes('left alone: table clinics'));
      assert.ok(plan.stdout.includes('left alone: function open_clinics()'));
      const json = JSON.parse(pair.migrate('--plan', '--json').stdout);
      assert.deepEqual(
        json.databases.map((one: { side: string; obstacles: unknown[] }) => [
          one.side,
          one.obstacles.length > 0,
        ]),
        [
          ['db1', false],
          ['db2', true],
        ],
      );
      const refused = pair.migrate();
      assert.equal(refused.status, 1);
      assert.match(refused.stderr, /Neither database was changed/);
      assert.deepEqual([await pair.shapeOf(pair.db1), await pair.shapeOf(pair.db2)], before);
    });

    test(`adopts a ledger with ${ROWS} events and calls, once its duplicates are gone, also when killed halfway`, async (context) => {
      if (server === undefined) return context.skip(reason);
      const pair = await OwnPair.make(server, 'adopted');
      await fillAsRequired(pair.db2, ROWS);
      await withClient(pair.db2, (client) =>
        client.query(
          'grant select on clinics to anon; grant execute on function open_clinics() to authenticated',
        ),
      );
      const before = [await pair.shapeOf(pair.db1), await pair.shapeOf(pair.db2)];
      const refused = pair.migrate('--adopt');
      assert.equal(refused.status, 1);
      assert.match(
        refused.stderr,
        /public\.webhook_events has 6 duplicates of \(webhook_id, event_id\): \S+ evt_10 \(2 rows\), /,
      );
      assert.match(refused.stderr, /public\.calls has 2 duplicates of \(site_id, signature_hash\)/);
      assert.match(
        refused.stderr,
        /public\.credit_ledger has no column object_id of type text: the payment intent, /,
      );
      assert.deepEqual(
        [await pair.shapeOf(pair.db1), await pair.shapeOf(pair.db2)],
        before,
        'and nothing is changed',
      );

      await deleteDuplicates(pair.db2);
      await nameCreditedPayments(pair.db2);
      const shape = await pair.shapeOf(pair.db2);
      const plan = pair.migrate('--plan', '--adopt');
      assert.equal(plan.status, 0, plan.stdout);
      assert.match(plan.stdout, /public\.calls: column id is of another type: it is kept as id_before/);
      assert.match(plan.stdout, /public\.credit_ledger: \(provider, event_id\) stops being unique by itself/);
      assert.equal(await pair.shapeOf(pair.db2), shape, 'a plan changes nothing');
      const rowsBefore = await counts(pair.db2);
      for (const said of [
        /db2: public\.webhook_events/,
        /db1: applied \d+_bridge\.sql/,
        /db2: applied \d+_webhooks\.sql/,
      ])
        await pair.migrateUntil(said, '--adopt');
      const done = pair.migrate('--adopt');
      assert.equal(done.status, 0, done.stderr);
      assert.deepEqual(await counts(pair.db2), rowsBefore, 'all rows are kept');
      assert.equal(pair.migrate('--adopt').stdout, 'db1: up to date\ndb2: up to date\n');
      assert.deepEqual(
        await one(
          pair.db2,
          `select has_table_privilege('anon', 'clinics', 'select') as clinics,
             has_function_privilege('authenticated', 'open_clinics()', 'execute') as function,
             has_table_privilege('anon', 'webhook_events', 'select') as events`,
        ),
        { clinics: true, function: true, events: false },
        'what is not ours keeps its rights',
      );
    });

    test('works on with the adopted tables, in the way of Sluice and in that of the requirements', async (context) => {
      if (server === undefined) return context.skip(reason);
      const pair = await OwnPair.make(server, 'used');
      await fillAsRequired(pair.db2, 60);
      await deleteDuplicates(pair.db2);
      await creditMoneyBack(pair.db2);
      await nameCreditedPayments(pair.db2);
      const done = pair.migrate('--adopt');
      assert.equal(done.status, 0, done.stderr);
      await useAdopted(pair.db2);
      await useAdoptedCredits(pair.db2);
    });

    test('adopts events of providers with statuses in words, and refuses what Sluice could not work with', async (context) => {
      if (server === undefined) return context.skip(reason);
      const pair = await OwnPair.make(server, 'words');
      await withClient(pair.db2, (client) =>
        client.query(`
          create table webhook_events (
            provider varchar(40) not null, event_id varchar(200) not null, event_type text, received_at timestamp default now(),
            processed_at timestamp, status text not null default 'RECEIVED', payload_hash text, clinic text not null,
            constraint known_status check (status in ('RECEIVED', 'PROCESSED', 'SKIPPED', 'FAILED', 'ODD')));
          create unique index events_once on webhook_events (provider, event_id);
          create index open_events on webhook_events (received_at) where status = 'RECEIVED';
          insert into webhook_events (provider, event_id, status, clinic)
          select 'stripe', 'evt_' || s, s, 'c' from unnest('{RECEIVED,PROCESSED,SKIPPED,FAILED,ODD}'::text[]) s`),
      );
      const refused = pair.migrate('--adopt');
      assert.equal(refused.status, 1);
      assert.match(refused.stderr, /webhook_events\.clinic is not null and has no default/);
      assert.match(refused.stderr, /a status that Sluice does not know: ODD/);
      await withClient(pair.db2, (client) =>
        client.query(
          `delete from webhook_events where status = 'ODD'; alter table webhook_events alter clinic drop not null`,
        ),
      );
      const done = pair.migrate('--adopt');
      assert.equal(done.status, 0, done.stderr);
      const { rows } = await withClient(pair.db2, (client) =>
        client.query(
          `select provider, event_id, status::text, next_attempt_at is not null as due, clinic from webhook_events order by event_id`,
        ),
      );
      assert.deepEqual(
        rows.map((row) => Object.values(row)),
        [
          ['stripe', 'evt_FAILED', 'failed', true, 'c'],
          ['stripe', 'evt_PROCESSED', 'success', false, 'c'],
          ['stripe', 'evt_RECEIVED', 'pending', true, 'c'],
          ['stripe', 'evt_SKIPPED', 'skipped', false, 'c'],
        ],
      );
    });
  });

async function counts(url: string): Promise<unknown> {
  return one(
    url,
    `select (select count(*)::int from webhook_events) as events,
       (select md5(string_agg(event_id || webhook_id || payload, ',' order by payload -> 'n')) from webhook_events) as content,
       (select count(*)::int from calls) as calls, (select md5(string_agg(phone, ',' order by phone)) from calls) as phones,
       (select md5(string_agg(user_id || amount || event_id, ',' order by event_id)) from credit_ledger) as credits,
       (select count(*)::int from audit.audit_logs) as audited, (select count(*)::int from webhook_side_effects) as effects`,
  );
}

async function useAdopted(url: string): Promise<void> {
  await withClient(url, async (client) => {
    const statuses = await client.query(
      `select status::text, count(*)::int, count(next_attempt_at)::int as due from webhook_events group by 1 order by 1`,
    );
    assert.deepEqual(
      statuses.rows.map((row) => Object.values(row)),
      [
        ['dead_letter', 10, 0],
        ['failed', 10, 10],
        ['pending', 20, 20],
        ['success', 20, 0],
      ],
      'what a worker had is pending again',
    );
    const claimed = await client.query('select event_id from webhook.claim_next_event()');
    assert.deepEqual(claimed.rows, [{ event_id: 'evt_0' }], 'the oldest first');
    await client.query(
      `update webhook_events set status = 'pending', attempts = 0 where status = 'dead_letter'`,
    );
    assert.equal(
      (
        await client.query(
          `select count(*)::int from webhook_events where status = 'pending' and next_attempt_at <= now()`,
        )
      ).rows[0].count,
      29,
    );
    await client.query(
      `insert into webhook_events (webhook_id, event_id, payload, status, received_at)
       values ('00000000-0000-4000-8000-000000000001', 'evt_1', '{}', 'pending', now())
       on conflict (webhook_id, event_id) do nothing`,
    );
    await client.query(`insert into audit.audit_logs (table_name, operation) values ('clinics', 'delete')`);
    const audit = await client.query(
      'select actor, action, subject, details from audit_page(null, 10) order by action',
    );
    assert.deepEqual(
      audit.rows.map((row) => Object.values(row)),
      [
        ['unknown', 'insert', 'clinics', {}],
        ['unknown', 'unknown', 'unknown', {}],
        ['00000000-0000-4000-8000-000000000009', 'update', 'clinics', { id: 7 }],
      ],
    );
    const [known, fresh] = ['md5(2::text)', `repeat('a', 64)`];
    const calls = await client.query(
      `select outcome from calls.record_calls(array['clinic', 'clinic'], array[null, 'c1'], array['ring', 'ring'], array['{}', '{}'],
         array[now(), now()], array[${known}, ${fresh}]) order by ordinal`,
    );
    assert.deepEqual(
      calls.rows.map(({ outcome }) => outcome),
      ['duplicate', 'recorded'],
    );
    await client.query(
      `select webhook.add_endpoint('shop', 'stripe', '{STRIPE_WEBHOOK_SECRET}', 'queued', '{}', 'test')`,
    );
  });
}

/** Events about payments that were credited before change what is new, and nothing else. */
async function useAdoptedCredits(url: string): Promise<void> {
  await withClient(url, async (client) => {
    const told = async (id: string, type: string, object: Record<string, unknown>) => {
      await client.query(
        `insert into webhook_events (webhook_id, provider, event_id, event_type, payload)
         select e.webhook_id, 'stripe', $1, $2, jsonb_build_object('api_version', '2025-03-31', 'data', jsonb_build_object('object', $3::jsonb))
         from webhook_endpoints e where e.name = 'shop'`,
        [id, type, JSON.stringify({ currency: 'eur', ...object })],
      );
      const { rows } = await client.query(
        `select p.status, p.error from webhook_events e cross join webhook.process_event(e.id) p where e.event_id = $1`,
        [id],
      );
      return [rows[0].status, rows[0].error];
    };
    const balance = async (user: string) =>
      (await client.query('select sum(amount)::int from credit_ledger where user_id = $1', [user])).rows[0]
        .sum;
    const [user9, user11] = [await balance('user 9'), await balance('user 11')];
    const charge = { amount: 1000, amount_captured: 1000, captured: true, status: 'succeeded' };
    assert.deepEqual(
      await told('evt_new_1', 'charge.succeeded', {
        ...{ id: 'ch_9', payment_intent: 'pi_9', metadata: { user_id: 'user 9' } },
        ...charge,
      }),
      ['skipped', 'already known'],
    );
    assert.equal(await balance('user 9'), user9, 'what was credited is not credited again');
    assert.deepEqual(
      await told('evt_new_2', 'charge.refunded', {
        ...{ id: 'ch_11', payment_intent: 'pi_11', amount_refunded: 400, metadata: {} },
        ...charge,
      }),
      ['success', null],
    );
    assert.equal(await balance('user 11'), (user11 as number) - 400, 'what is new counts');
    const state = await client.query(
      `select state::text, captured::int, refunded::int from payments where object_id = 'pi_9'`,
    );
    assert.deepEqual(Object.values(state.rows[0]), ['partially_refunded', 1000, 300]);

    // These debits of 300 were disputes, which Stripe closes now.
    const nowSec = Math.floor(Date.now() / 1_000);
    const moved = (id: string, amount: number, created: number) => ({
      ...{ id, amount, created, currency: 'eur', type: 'adjustment' },
    });
    const closed = (payment: string, status: string, ...balance_transactions: object[]) =>
      told(`evt_closed_${payment}`, 'charge.dispute.closed', {
        ...{ id: `dp_${payment}`, payment_intent: payment, amount: 300, status, balance_transactions },
      });
    await closed('pi_19', 'lost', moved('txn_1', -300, nowSec - 3_600));
    await closed('pi_29', 'won', moved('txn_2', -300, nowSec - 3_600), moved('txn_3', 300, nowSec + 1));
    assert.deepEqual(
      [await balance('user 19'), await balance('user 29')],
      [700, 1000],
      'a dispute that was debited before is not debited again, and its money returns',
    );
    const back = await client.query(
      `select captured::int, refunded::int, adopted::int, adopted_until = '2026-01-04' as is_last from payments where object_id = 'pi_back'`,
    );
    assert.deepEqual(
      Object.values(back.rows[0]),
      [1000, 100, 100, true],
      'what was credited after a debit is money that came back',
    );
  });
}

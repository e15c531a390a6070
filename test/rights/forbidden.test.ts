// What is forbidden, really tried: everything in the catalog as each role, ways up from a role of the API, and calls with
// real arguments through PostgREST. Each is refused, and nothing changes.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { assertRefused, callRest, type RestCall } from '../access/rest.ts';
import { putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { startTestPostgrest, type TestPostgrest } from '../support/postgrest.ts';
import { openSession, type Session } from '../support/sessions.ts';
import { sqlBeside } from './matrix.ts';
import { placesInDatabase } from './sweep.ts';

const SIDES = ['db1', 'db2'] as const;
type Side = (typeof SIDES)[number];
type Attempt = { role: string; statement: string; expected: string; happened: string };

const ID = '00000000-0000-4000-8000-000000000001';

/** Refused to anon and to authenticated; with arguments that would work. */
const CALLS: Record<Side, [name: string, body: unknown][]> = {
  db1: [
    ['claim_batch', { p_pool_ids: ['open'], p_user_ids: ['eve'], p_request_ids: ['r'] }],
    ['get_claim', { p_claim_id: ID }],
    ['intake_queue_send', { p_payload: { pool_id: 'open' } }],
    ['intake_queue_read', { p_visibility_timeout: 60, p_batch_size: 10 }],
    ['intake_queue_delete', { p_msg_ids: [1] }],
    ['intake_route_to_dlq', { p_msg_id: 1, p_payload: {}, p_read_ct: 1 }],
    ['bridge_take', { p_lanes: [0], p_wanted: [10], p_lease_sec: 30 }],
    ['bridge_take_suspect', { p_lanes: [0], p_lease_sec: 30 }],
    ['bridge_lanes', {}],
    ['list_dead_letters', {}],
    ['replay_dead_letters', { p_msg_ids: [1], p_actor: 'eve' }],
    ['discard_dead_letters', { p_msg_ids: [1], p_actor: 'eve' }],
    ['allow_hook_host', { p_host: '127.0.0.1', p_actor: 'eve' }],
    ['reap_orphaned_slots', { p_stale_threshold: '0 seconds' }],
    ['expire_holds', {}],
    ['snapshot_engine_metrics', {}],
    ['audit_page', {}],
    ['claim_search', { p_user_id: 'ann' }],
  ],
  db2: [
    ['finalize_transaction', { p_payload: { resource_id: ID, pool_id: 'open', user_id: 'eve' } }],
    ['finalize_batch', { p_payloads: [{ resource_id: ID, claim_id: ID, pool_id: 'open', user_id: 'eve' }] }],
    ['tickets_page', {}],
    ['ticket_of_claim', { p_claim_id: ID }],
    ['audit_page', {}],
    ['ledger_sample', {}],
  ],
};

const WRITES: Record<Side, RestCall[]> = {
  db1: [
    { method: 'POST', path: 'inventory_slots', body: [{ pool_id: 'open' }] },
    { method: 'PATCH', path: 'inventory_slots?pool_id=eq.open', body: { status: 'CONSUMED' } },
    { method: 'DELETE', path: 'inventory_slots?pool_id=eq.open' },
    { method: 'PATCH', path: 'engine_config?pool_id=eq.open', body: { max_per_user: 1000 } },
    { method: 'PATCH', path: 'claims?user_id=eq.ann', body: { user_id: 'eve' } },
    { method: 'GET', path: 'claims?select=user_id' },
  ],
  db2: [
    {
      method: 'POST',
      path: 'confirmed_tickets',
      body: [{ resource_id: ID, pool_id: 'open', user_id: 'eve' }],
    },
    { method: 'PATCH', path: 'confirmed_tickets?user_id=eq.ann', body: { user_id: 'eve' } },
    { method: 'DELETE', path: 'confirmed_tickets?user_id=eq.ann' },
    { method: 'POST', path: 'credit_ledger', body: [{ user_id: 'eve', amount: 1_000_000, currency: 'usd' }] },
    { method: 'GET', path: 'webhook_bodies?select=*' },
    { method: 'GET', path: 'call_sites?select=*' },
  ],
};

/** Ways to more rights, for a caller who can run SQL as a role of the API. */
const WAYS_UP = [
  'set role postgres',
  'set session authorization postgres',
  'alter role current_user superuser',
  'create role mine superuser',
  'grant postgres to current_user',
  'create table public.mine (x int)',
  'create function public.mine() returns int language sql as $$ select 1 $$',
  'create schema mine',
  'create extension pgtap',
  'create event trigger mine on ddl_command_start execute function pg_catalog.pg_notify()',
  `alter system set log_statement = 'all'`,
  'alter database postgres set search_path = public',
  `copy (select 1) to program 'true'`,
  `copy (select 1) to '/tmp/mine'`,
  `select pg_read_file('postgresql.conf')`,
  `select pg_ls_dir('.')`,
  `select lo_import('/etc/passwd')`,
  'select rolpassword from pg_authid',
  'select pg_reload_conf()',
  'select pg_terminate_backend(pid) from pg_stat_activity where usename = $$postgres$$',
  'set session_replication_role = replica',
  'create subscription mine connection $$host=x$$ publication p',
  'select pg_logical_emit_message(true, $$x$$, $$y$$) from pg_create_logical_replication_slot($$mine$$, $$pgoutput$$)',
];

describe('what is forbidden', () => {
  let databases: TestDatabases;
  const session = {} as Record<Side, Session>;
  const rest = {} as Record<Side, TestPostgrest>;

  before(async () => {
    databases = await startDatabases();
    for (const side of SIDES) {
      session[side] = await openSession(databases[side].url);
      rest[side] = await startTestPostgrest(databases[side]);
    }
    await putOnSale(session.db1.client, 'open', 10);
    await session.db1.claim('open', 'ann', 'first');
    await session.db1.rows(`select pgmq.send('intake_dlq', '{"pool_id": "open"}')`);
    await session.db2.rows('select public.finalize_transaction($1)', [
      { resource_id: randomUUID(), pool_id: 'open', user_id: 'ann' },
    ]);
  });
  after(async () => {
    for (const side of SIDES) {
      await rest[side]?.stop();
      await session[side]?.close();
    }
    await databases?.stop();
  });

  /** Everything both databases hold, as one value. */
  const state = async (): Promise<string> => {
    const hash = createHash('sha256');
    for (const side of SIDES)
      for (const [where, row] of await placesInDatabase(side, session[side]))
        if (!/ (sessions|settings)$/.test(where)) hash.update(`${where}\0${row}\0`);
    return hash.digest('hex');
  };

  for (const side of SIDES) {
    test(`in ${side} each role can do what the catalog says, and is refused everything else`, async () => {
      const [, result] = (await session[side].client.query(sqlBeside('./attempts.sql'))) as unknown as {
        rows: Attempt[];
      }[];
      const attempts = result?.rows ?? [];
      assert.deepEqual(
        attempts.filter(({ expected, happened }) => expected !== happened),
        [],
      );
      const refused = attempts.filter(({ happened }) => happened === 'refused').length;
      assert(
        refused > 300 && attempts.length - refused > 30,
        `${refused} of ${attempts.length} were refused`,
      );
    });

    for (const role of ['anon', 'authenticated', 'service_role']) {
      test(`${role} finds no way up in ${side}`, async () => {
        const before = await state();
        const caller = await openSession(databases[side].authenticatorUrl);
        try {
          await caller.client.query(`set role ${role}`);
          for (const statement of WAYS_UP)
            await assert.rejects(caller.client.query(statement), { code: '42501' }, statement);
        } finally {
          await caller.close();
        }
        assert.equal(await state(), before, 'nothing has changed');
      });
    }

    for (const role of ['anon', 'authenticated']) {
      test(`${role} is refused through PostgREST of ${side}, and nothing changes`, async () => {
        const token = role === 'anon' ? undefined : await rest[side].token(role, randomUUID());
        const calls: RestCall[] = [
          ...CALLS[side].map(([name, body]) => ({ method: 'POST', path: `rpc/${name}`, body })),
          ...WRITES[side],
        ];
        const before = await state();
        for (const call of calls) {
          const answer = await callRest(rest[side], { ...call, token });
          assertRefused(answer, `${call.method} ${call.path}`);
          assert.equal(answer.code, '42501', `${call.path} is known, and refused`);
        }
        assert.equal(await state(), before, 'nothing has changed');
      });
    }
  }

  test('what service_role may do is done with the same arguments, and the state tells', async () => {
    for (const [side, name] of [
      ['db1', 'intake_queue_send'],
      ['db2', 'finalize_transaction'],
    ] as const) {
      const body = CALLS[side].find(([each]) => each === name)?.[1];
      const before = await state();
      const token = await rest[side].token('service_role');
      const answer = await callRest(rest[side], { method: 'POST', path: `rpc/${name}`, body, token });
      assert(answer.status < 300, `${name}: ${answer.status} ${JSON.stringify(answer.body)}`);
      assert.notEqual(await state(), before, name);
    }
  });

  test('a right that is granted by mistake is noticed as an attempt that gets through', async () => {
    await session.db1.client.query('begin');
    await session.db1.client.query('grant usage on schema pgmq to anon; grant select on pgmq.meta to anon');
    const results = (await session.db1.client.query(
      sqlBeside('./attempts.sql').replace('create function', 'create or replace function'),
    )) as unknown as { rows: Attempt[] }[];
    const through = results
      .flatMap(({ rows }) => rows)
      .filter(
        ({ role, happened, statement }) =>
          role === 'anon' && happened === 'allowed' && /pgmq/.test(statement),
      );
    await session.db1.client.query('rollback');
    assert.deepEqual(
      through.map(({ statement }) => statement),
      ['select from pgmq.meta limit 1'],
    );
  });
});

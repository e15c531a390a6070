import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { checkHealth, JOBS } from '#core/console/health.ts';
import type { IntakeLook } from '#core/console/sample.ts';
import type { SecretFault } from '#core/webhook/secrets.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import {
  judgeDatabase,
  judgeHealth,
  judgeInbox,
  judgeQueue,
  judgeSecrets,
  judgeWebhooks,
} from '../../src/doctor/judge.ts';
import type { Look } from '../../src/doctor/look.ts';
import { parseRights } from '../../src/doctor/rights.ts';
import type { SecretUse } from '../../src/webhook/secret_users.ts';
import { bury } from '../admin/support.ts';
import { ADMIN_KEY, claim, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { PROJECT } from '../support/dev.ts';
import { sluice } from '../work/support.ts';
import { runHere } from './support.ts';

const bad = (findings: readonly Finding[]) =>
  findings.filter(({ status }) => status === 'warn' || status === 'fail');
const shortly = (findings: readonly Finding[]) => findings.map(({ check, status }) => `${status} ${check}`);

describe('sluice doctor', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let env: Record<string, string>;
  const doctor = async (more: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await runHere(['doctor', '--json'], { ...env, ...more });
    assert.notEqual(stdout, '', stderr);
    return { code, ...(JSON.parse(stdout) as { ok: boolean; checks: Finding[] }) };
  };

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    await putOnSale(db1, 'p', 5);
    env = {
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
      SLUICE_URL: server.url,
      SLUICE_ADMIN_KEY: ADMIN_KEY,
      SLUICE_TICKET_SECRET: 'a secret for the links of tickets',
      SLUICE_LOG: 'silent',
    };
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });

  it('finds nothing that fails in new databases, and warns that no worker runs yet', async () => {
    const { code, ok, checks } = await doctor();
    assert.deepEqual([code, ok], [0, true]);
    assert.deepEqual(
      shortly(bad(checks)).filter((line) => !line.includes('cron job')),
      ['warn Bridge workers', 'warn Webhook workers', 'warn Scheduler'],
    );
    for (const check of [
      'DB1 intake: rights',
      'DB2 ledger: migrations',
      'DB1 intake: clock',
      'pgmq',
      'queue',
      'server',
    ])
      assert.ok(
        shortly(checks).includes(`ok ${check}`),
        `${check} is not ok: ${JSON.stringify(checks, null, 1)}`,
      );
    for (const { status, check, todo } of checks)
      assert.equal(todo !== undefined, status === 'warn' || status === 'fail', check);
  });

  it('is a table without colour in a pipe', async () => {
    const { code, stdout } = await sluice(['doctor'], env).ended;
    assert.equal(code, 0);
    assert.match(stdout, /^ +CHECK +FOUND$/m);
    assert.match(stdout, /^ok +DB1 intake: rights +as granted by the migrations, and no others$/m);
    assert.match(stdout, /^warn {2}Bridge workers\n {6}none is connected.*\n {6}→ start `sluice work`$/m);
    assert.ok(!stdout.includes('\u001b'));
  });

  it('fails when anon may do more than the migrations grant, or service_role less', async () => {
    await db1.query(
      'grant execute on function public.claim_batch(text[], text[], text[], boolean[], boolean, jsonb, integer[], text[]) to anon',
    );
    await db1.query('grant select on public.claims to authenticated');
    await db1.query('revoke execute on function public.get_claim(uuid, bytea) from service_role');
    try {
      const { code, checks } = await doctor();
      assert.equal(code, 1);
      const rights = checks.find(({ check }) => check === 'DB1 intake: rights');
      assert.equal(rights?.status, 'fail');
      assert.match(rights?.found ?? '', /anon may execute claim_batch/);
      assert.match(rights?.found ?? '', /authenticated may select claims/);
      assert.match(rights?.found ?? '', /service_role may not execute public.get_claim\(uuid, bytea\)/);
    } finally {
      await db1.query(
        'revoke execute on function public.claim_batch(text[], text[], text[], boolean[], boolean, jsonb, integer[], text[]) from anon',
      );
      await db1.query('revoke select on public.claims from authenticated');
      await db1.query('grant execute on function public.get_claim(uuid, bytea) to service_role');
    }
    assert.equal((await doctor()).code, 0);
  });

  it('tells of dead letters, a missing migration and a wrong key', async () => {
    await bury(db1, 'p', 2);
    const table = 'supabase_migrations.schema_migrations';
    const { rows } = await db1.query(`select * from ${table} order by version desc limit 1`);
    await db1.query(`delete from ${table} where version = $1`, [rows[0].version]);
    try {
      const missing = await doctor({ SLUICE_ADMIN_KEY: 'wrong' });
      assert.equal(missing.code, 1);
      assert.deepEqual(shortly(bad(missing.checks)), ['fail DB1 intake: migrations', 'fail server']);
    } finally {
      await db1.query(`insert into ${table} (version, name, statements) values ($1, $2, $3)`, [
        rows[0].version,
        rows[0].name,
        rows[0].statements,
      ]);
    }
    const letters = (await doctor()).checks.find(({ check }) => check === 'dead letters');
    assert.deepEqual(
      [letters?.status, letters?.found, letters?.todo],
      ['warn', '2 wait', '`sluice dlq list`'],
    );
  });

  it('warns when one address makes most claims and no proxy is declared, and says so where it cannot look', async () => {
    const addresses = async (more: Record<string, string> = {}) =>
      (await doctor(more)).checks.find(({ check }) => check === 'addresses');
    assert.equal((await addresses())?.status, 'ok');
    assert.equal((await addresses({ SLUICE_ADMIN_KEY: 'wrong' }))?.status, 'skip');
    const forwarded = { 'x-forwarded-for': '203.0.113.7' };
    for (let index = 0; index < 120; index++)
      await claim(server.url, 'no-such-pool', { user_id: 'ann' }, forwarded);
    const found = await addresses();
    assert.equal(found?.status, 'warn');
    assert.match(found?.found ?? '', /^one made most claims in 1 minute /);
    assert.match(found?.todo ?? '', /SLUICE_TRUSTED_PROXIES/);
  });

  it('works for a role with the rights of the server, and fails where row policies would hide rows from it', async () => {
    const db2 = await openClient(databases.db2.url);
    const asApp = (url: string) => url.replace(/\/\/[^@]*@/, '//app:app@');
    const urls = { DB1_URL: asApp(databases.db1.url), DB2_URL: asApp(databases.db2.url) };
    try {
      for (const client of [db1, db2])
        await client.query(`create role app login password 'app' in role service_role`);
      const blind = await doctor(urls);
      assert.equal(blind.code, 1);
      assert.ok(shortly(blind.checks).includes('fail DB2 ledger: role'));
      for (const client of [db1, db2]) await client.query('alter role app bypassrls');
      const { code, checks } = await doctor(urls);
      assert.equal(code, 0, JSON.stringify(bad(checks)));
      assert.ok(shortly(checks).includes('warn DB1 intake: migrations, rights'));
      assert.ok(shortly(checks).includes('ok queue'));
    } finally {
      await db2.end();
    }
  });

  it('advises about the server by what it answers: its databases, the key, or that it is not there', async (t) => {
    const url = 'postgres://absent@127.0.0.1:1/x';
    const cut = await startTestServer({ db1: { url }, db2: { url } });
    t.after(() => cut.stop());
    for (const [more, advice] of [
      [{ SLUICE_URL: cut.url }, /^see the databases above/],
      [{ SLUICE_ADMIN_KEY: 'another-key-of-some-length' }, /^set SLUICE_OPERATOR_KEY to your key/],
      [{ SLUICE_URL: 'http://127.0.0.1:1' }, /^start `sluice serve`/],
    ] as const) {
      const { checks } = await doctor(more);
      const found = checks.find(({ check }) => check === 'server');
      assert.equal(found?.status, 'fail');
      assert.match(found?.todo ?? '', advice);
    }
  });

  it('fails, and goes on, when a database or the server does not answer', async () => {
    const { code, checks } = await doctor({
      DB2_URL: 'postgres://absent@127.0.0.1:1/x',
      SLUICE_URL: 'http://127.0.0.1:1',
    });
    assert.equal(code, 1);
    assert.deepEqual(shortly(bad(checks)), ['fail DB2 ledger', 'fail server']);
    const unset = await runHere(['doctor'], { SLUICE_DIR: '/nonexistent' });
    assert.deepEqual([unset.code, unset.stdout], [1, '']);
    assert.match(unset.stderr, /^error: DB1_URL and DB2_URL are not set/);
  });
});

describe('what the doctor thinks', () => {
  const facts = {
    version: '18.1',
    version_num: 180_001,
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    synchronous_standby_names: '',
    standbys: [],
    isolation: 'read committed',
    isolation_set_for: [],
    is_standby: false,
    role: 'postgres',
    sees_all_rows: true,
  };
  const healthy: Look = {
    url: 'postgres://h/db',
    facts,
    isDenied: false,
    missing: [],
    unknown: [],
    edited: [],
    applied: 3,
    rights: [],
    untriedPools: [],
    refusingPools: [],
    hookedPools: [],
  };

  it('of a database: old, a standby, not durable, of another version', () => {
    assert.deepEqual(bad(judgeDatabase('db1', healthy)), []);
    const cases: [Look, string][] = [
      [{ ...healthy, facts: { ...facts, version_num: 140_009 } }, 'fail DB1 intake'],
      [{ ...healthy, facts: { ...facts, is_standby: true } }, 'fail DB1 intake'],
      [{ ...healthy, facts: { ...facts, synchronous_commit: 'off' } }, 'warn DB1 intake: durability'],
      [{ ...healthy, facts: { ...facts, isolation: 'serializable' } }, 'warn DB1 intake: isolation'],
      [{ ...healthy, facts: { ...facts, sees_all_rows: false } }, 'fail DB1 intake: role'],
      [{ ...healthy, isDenied: true }, 'warn DB1 intake: migrations, rights'],
      [{ ...healthy, unknown: ['2999'] }, 'warn DB1 intake: migrations'],
      [{ ...healthy, edited: ['1_setup.sql'] }, 'fail DB1 intake: migrations'],
      [
        {
          ...healthy,
          rights: [{ kind: 'extra', role: 'service_role', privilege: 'execute', object: 'f()' }],
        },
        'warn DB1 intake: rights',
      ],
    ];
    for (const [seen, expected] of cases)
      assert.deepEqual(shortly(bad(judgeDatabase('db1', seen))), [expected]);
  });

  it('of queues by their age, and of dead letters by their number', () => {
    const inbox: IntakeLook['inbox'] = {
      accepted: 9,
      waiting: 0,
      oldest_sec: null,
      dead_letters: 0,
      doors_age_sec: 2,
    };
    const orders = { held: 0, paying: 0, past_bound: 0, past_bound_sec: null, to_close: 0 };
    const look = {
      enqueued: 1,
      queue_depth: 1,
      oldest_msg_sec: null,
      dlq_depth: 0,
      inbox,
      orders,
      pools: [],
    };
    const queue = (oldest_msg_sec: number | null, dlq_depth = 0) =>
      shortly(judgeQueue({ ...look, oldest_msg_sec, dlq_depth, bridge_workers: 0 }));
    const inboxOf = (change: Partial<typeof inbox>) =>
      shortly(bad(judgeInbox({ ...look, inbox: { ...inbox, ...change }, bridge_workers: 0 })));
    assert.deepEqual(inboxOf({}), []);
    assert.deepEqual(inboxOf({ oldest_sec: 60 }), ['warn inbox']);
    assert.deepEqual(inboxOf({ dead_letters: 1 }), ['warn inbox dead letters']);
    assert.deepEqual(inboxOf({ doors_age_sec: 121 }), ['warn copy of endpoints and sites']);
    assert.deepEqual(inboxOf({ doors_age_sec: null }), ['warn copy of endpoints and sites']);
    assert.deepEqual(queue(59), ['ok queue', 'ok dead letters']);
    assert.deepEqual(queue(60), ['warn queue', 'ok dead letters']);
    assert.deepEqual(queue(600, 1), ['fail queue', 'warn dead letters']);
    const events = (oldest_sec: number | null, dead_letters: number, change = {}) => {
      const webhooks = {
        ...{
          backlog: 1,
          oldest_sec,
          dead_letters,
          payments_without_user: 0,
          silent_disputes: 0,
          recorded: 9,
        },
        ...change,
      };
      return shortly(judgeWebhooks({ webhooks }));
    };
    const noMoney = ['ok payments without a user', 'ok disputes without amounts'];
    assert.deepEqual(events(null, 0), ['ok webhook events', 'ok webhook dead letters', ...noMoney]);
    assert.deepEqual(events(61, 2), ['warn webhook events', 'warn webhook dead letters', ...noMoney]);
    assert.equal(events(null, 0, { payments_without_user: 3 })[2], 'warn payments without a user');
    assert.equal(events(null, 0, { silent_disputes: 1 })[3], 'warn disputes without amounts');
  });

  it('of jobs that have not run: the frequent ones should have', async () => {
    const job = (name: string, schedule: string) => ({
      name,
      schedule,
      is_active: true,
      last_status: null,
      last_start_ms: null,
      last_message: null,
    });
    const inbox = { accepted: 0, waiting: 0, oldest_sec: null, dead_letters: 0, doors_age_sec: null };
    const vitals = { version: '18', now_ms: 0, connections: {}, extensions: {}, is_stand_in: true, inbox };
    const jobs = [
      job('expire_holds', '* * * * *'),
      job('reap_orphaned_slots', '*/2 * * * *'),
      job('retention', '17 * * * *'),
    ];
    const answer = (name: string) => Promise.resolve([{ [name]: { ...vitals, jobs } } as never]);
    const health = await checkHealth({
      intakes: [{ call: answer }],
      db2: () => Promise.reject(new Error('away')),
      now: () => 0,
    });
    const found = judgeHealth(health.filter(({ kind }) => kind === 'job'));
    assert.deepEqual(shortly(found), [
      'warn cron job expire_holds',
      'warn cron job reap_orphaned_slots',
      'ok cron job retention',
      'warn cron job drain_queue_answer',
      'warn cron job drain_queue_trigger',
      'warn cron job metrics_snapshot',
      'warn cron job rebuild_lost_pools',
      'warn cron job seal_audit',
    ]);
    assert.match(found.at(-1)?.found ?? '', /^not scheduled/);
  });

  it('of jobs by a list that is the one of the migrations', () => {
    for (const database of ['DB1', 'DB2'] as const) {
      const folder = join(PROJECT, database.toLowerCase(), 'supabase/migrations');
      const migrations = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
      const scheduled = [...migrations.join('\n').matchAll(/cron\.schedule\(\s*'(\w+)'/g)].map(
        ([, name]) => name,
      );
      assert.deepEqual(Object.keys(JOBS[database]).sort(), scheduled.sort());
    }
  });

  it('of secrets that are not set, too short or not on the list', () => {
    const good: SecretUse = { user: 'stripe-eu', secret: 'A', read: { value: 'a secret of some length' } };
    const bad = (secret: string, fault: SecretFault): SecretUse => ({ ...good, secret, read: { fault } });
    const [unset, short, unlisted] = [bad('B', 'not_set'), bad('C', 'too_short'), bad('D', 'not_allowed')];
    assert.equal(judgeSecrets([good]).status, 'ok');
    for (const [uses, status, found] of [
      [[good, unset], 'warn', 'not set here: B (stripe-eu)'],
      [[good, unset, short], 'fail', 'too short: C (stripe-eu)'],
      [[unlisted, unset, short], 'fail', 'not on the list: D (stripe-eu)'],
    ] as const) {
      const finding = judgeSecrets(uses);
      assert.deepEqual([finding.status, finding.found], [status, found]);
    }
    assert.equal(judgeSecrets([]).status, 'skip');
  });

  it('of rights, by what the migration says', () => {
    const { schemas, grants } = parseRights(`
      -- grant all on everything to anon;
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('public', 'elsewhere');
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('public', 'intake', 'webhook');
      grant execute on function public.f(text, int[]), public.g() to anon, service_role;
      grant execute on procedure webhook.p(int) to service_role;
      grant usage on sequence intake.s to service_role;
      grant select, insert on public.t, public.u to service_role;`);
    assert.deepEqual(schemas, ['public', 'intake', 'webhook']);
    assert.deepEqual(
      grants.map(({ role, privilege, object }) => `${role} ${privilege} ${object}`),
      [
        'anon execute public.f(text, int[])',
        'service_role execute public.f(text, int[])',
        'anon execute public.g()',
        'service_role execute public.g()',
        'service_role execute webhook.p(int)',
        'service_role select public.t',
        'service_role insert public.t',
        'service_role select public.u',
        'service_role insert public.u',
      ],
    );
  });
});

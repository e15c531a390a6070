import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import type { Finding } from '../../src/doctor/finding.ts';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { runHere } from './support.ts';

describe('sluice doctor finds', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let env: Record<string, string>;

  const doctor = async (more: Record<string, string> = {}) => {
    const { code, stdout, stderr } = await runHere(['doctor', '--json'], { ...env, ...more });
    assert.notEqual(stdout, '', stderr);
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    return { code, of: (check: string) => checks.find((finding) => finding.check === check), checks };
  };

  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    env = {
      DB1_URL: databases.db1.url,
      DB2_URL: databases.db2.url,
      SLUICE_DIR: '/nonexistent',
      SLUICE_LOG: 'silent',
    };
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await databases?.stop();
  });

  it('a handler that is disabled, with its fault', async () => {
    await db2.query(
      `select webhook.register_handlers('[{"name": "lame", "provider": "p", "event_type": "x", "fault": "has no apply"}]')`,
    );
    const { code, of } = await doctor();
    await db2.query(`select webhook.remove_handler('lame', 'test')`);
    const finding = of('Handler lame');
    assert.deepEqual([code, finding?.status], [1, 'fail']);
    assert.match(JSON.stringify(finding), /disabled, so that its events wait: has no apply/);
    assert.equal((await doctor()).of('Handler lame'), undefined);
  });

  /** What opens the ledger or the intake to the wrong people, how it is closed again, and what must be told. */
  const OPENED: { name: string; side: 1 | 2; open: string; close: string; told: RegExp }[] = [
    {
      name: 'a ledger without row security, which shows all tickets to every user',
      side: 2,
      open: 'alter table public.confirmed_tickets disable row level security',
      close: 'alter table public.confirmed_tickets enable row level security',
      told: /row security of confirmed_tickets is off/,
    },
    {
      name: 'row security that is off in the intake',
      side: 1,
      open: 'alter table public.claims disable row level security',
      close: 'alter table public.claims enable row level security',
      told: /row security of claims is off/,
    },
    {
      name: 'a policy that no migration made',
      side: 2,
      open: 'create policy oops on public.confirmed_tickets for select to authenticated using (true)',
      close: 'drop policy oops on public.confirmed_tickets',
      told: /policy oops on confirmed_tickets is not ours/,
    },
    {
      name: 'a policy on a table that has none',
      side: 1,
      open: 'create policy oops on public.claims using (true)',
      close: 'drop policy oops on public.claims',
      told: /policy oops on claims is not ours/,
    },
    {
      name: 'our policy with another condition',
      side: 2,
      open: 'alter policy own_tickets on public.confirmed_tickets using (true)',
      close:
        'alter policy own_tickets on public.confirmed_tickets using ((select auth.uid())::text = user_id and verified)',
      told: /policy own_tickets on confirmed_tickets was changed/,
    },
    {
      name: 'our policy for other people',
      side: 2,
      open: 'alter policy own_tickets on public.confirmed_tickets to public',
      close: 'alter policy own_tickets on public.confirmed_tickets to authenticated',
      told: /policy own_tickets on confirmed_tickets was changed/,
    },
    {
      name: 'a role that row security does not hold for',
      side: 2,
      open: 'alter role authenticated bypassrls',
      close: 'alter role authenticated nobypassrls',
      told: /row security does not hold for authenticated/,
    },
    {
      name: 'a grant on a column',
      side: 2,
      open: 'grant select (user_id) on public.confirmed_tickets to anon',
      close: 'revoke select (user_id) on public.confirmed_tickets from anon',
      told: /anon may select confirmed_tickets\(user_id\)/,
    },
  ];

  for (const { name, side, open, close, told } of OPENED) {
    it(name, async () => {
      const client = side === 1 ? db1 : db2;
      const check = side === 1 ? 'DB1 intake: rights' : 'DB2 ledger: rights';
      await client.query(open);
      try {
        const found = await doctor();
        const finding = found.of(check);
        assert.deepEqual([found.code, finding?.status], [1, 'fail'], JSON.stringify(finding));
        assert.match(finding?.found ?? '', told);
      } finally {
        await client.query(close);
      }
      const closed = (await doctor()).of(check);
      assert.equal(closed?.status, 'ok', JSON.stringify(closed));
    });
  }

  it('a policy of ours that is gone: buyers see no ticket', async () => {
    await db2.query('drop policy own_tickets on public.confirmed_tickets');
    try {
      const finding = (await doctor()).of('DB2 ledger: rights');
      assert.equal(finding?.status, 'fail');
      assert.match(finding?.found ?? '', /policy own_tickets on confirmed_tickets is missing/);
    } finally {
      await db2.query(`create policy own_tickets on public.confirmed_tickets for select to authenticated
        using ((select auth.uid())::text = user_id and verified)`);
    }
    assert.equal((await doctor()).of('DB2 ledger: rights')?.status, 'ok');
  });

  it('a cron job that is switched off or gone, with what that means and how to put it right', async () => {
    await db1.query(`update cron.job set active = false where jobname = 'expire_holds'`);
    const { rows } = await db1.query(`delete from cron.job where jobname = 'metrics_snapshot' returning *`);
    try {
      const found = await doctor();
      const off = found.of('cron job expire_holds');
      assert.equal(off?.status, 'warn');
      assert.match(off?.found ?? '', /^switched off: holds do not end$/);
      assert.match(off?.todo ?? '', /cron\.alter_job\(jobid, active => true\).*'expire_holds'/);
      const gone = found.of('cron job metrics_snapshot');
      assert.equal(gone?.status, 'warn');
      assert.match(gone?.found ?? '', /^not scheduled: /);
      await db1.query(
        /\bselect cron\.alter_job.*?'expire_holds'/.exec(off?.todo ?? '')?.[0] ?? 'select 1 from nowhere',
      );
    } finally {
      await db1.query(
        'insert into cron.job overriding system value select * from json_populate_record(null::cron.job, $1)',
        [JSON.stringify(rows[0])],
      );
    }
    const mended = await doctor();
    assert.match(mended.of('cron job expire_holds')?.found ?? '', /has not run yet/);
    assert.equal(mended.of('cron job retention')?.status, 'ok');
  });

  it('swapped addresses, and advises nothing that would change a database', async () => {
    const found = await doctor({ DB1_URL: databases.db2.url, DB2_URL: databases.db1.url });
    assert.equal(found.code, 1);
    for (const check of ['DB1 intake: address', 'DB2 ledger: address']) {
      assert.equal(found.of(check)?.status, 'fail', check);
      assert.match(found.of(check)?.found ?? '', /swapped/);
    }
    const advice = JSON.stringify(found.checks);
    assert.doesNotMatch(advice, /sluice migrate|revoke|grant what|run `sluice doctor` again/);
  });

  it('one database in both places', async () => {
    const found = await doctor({ DB2_URL: databases.db1.url });
    assert.equal(found.code, 1);
    assert.equal(found.of('DB1 intake: rights')?.status, 'ok');
    const finding = found.of('DB2 ledger: address');
    assert.equal(finding?.status, 'fail');
    assert.match(finding?.found ?? '', /DB2_URL leads to the intake/);
    assert.doesNotMatch(JSON.stringify(found.checks), /sluice migrate|revoke|another version/);
  });

  it('a secret that is not set, also of the last of many call sites', async () => {
    const add = `select calls.add_site(p_site_id => $1, p_secret_names => $2, p_require_signature => false,
      p_kinds => null, p_actor => 'test')`;
    for (let n = 0; n < 100; n++) await db2.query(add, [`branch-${100 + n}`, []]);
    await db2.query(`select webhook.allow_secret('SECRET_OF_THE_LAST', 'test')`);
    await db2.query(add, ['the-last', ['SECRET_OF_THE_LAST']]);
    const unset = (await doctor()).of('secrets');
    assert.equal(unset?.status, 'warn', JSON.stringify(unset));
    assert.match(unset?.found ?? '', /SECRET_OF_THE_LAST \(the-last\)/);
    const short = (await doctor({ SECRET_OF_THE_LAST: 'set' })).of('secrets');
    assert.deepEqual([short?.status, short?.found], ['fail', 'too short: SECRET_OF_THE_LAST (the-last)']);
    const set = { SECRET_OF_THE_LAST: 'set to something long' };
    assert.equal((await doctor(set)).of('secrets')?.status, 'ok');
    await db2.query(`select webhook.remove_secret('SECRET_OF_THE_LAST', 'test')`);
    const removed = (await doctor(set)).of('secrets');
    assert.deepEqual(
      [removed?.status, removed?.found],
      ['fail', 'not on the list: SECRET_OF_THE_LAST (the-last)'],
    );
  });

  for (const whom of ['role authenticated', 'database postgres'])
    it(`another isolation level than read committed, set for the ${whom}: claims are refused there`, async () => {
      await db1.query(`alter ${whom} set default_transaction_isolation = 'repeatable read'`);
      try {
        const finding = (await doctor()).of('DB1 intake: isolation');
        assert.equal(finding?.status, 'warn', JSON.stringify(finding));
        assert.match(finding?.found ?? '', new RegExp(`is set for ${whom}$`));
      } finally {
        await db1.query(`alter ${whom} reset default_transaction_isolation`);
      }
      assert.equal((await doctor()).of('DB1 intake: isolation')?.status, 'ok');
    });

  it('an address that asks for another isolation level', async () => {
    const url = new URL(databases.db1.url);
    url.searchParams.set('options', '-c default_transaction_isolation=serializable');
    const finding = (await doctor({ DB1_URL: url.href })).of('DB1 intake: isolation');
    assert.equal(finding?.status, 'warn', JSON.stringify(finding));
    assert.match(finding?.found ?? '', /begins transactions at serializable/);
  });

  it('a pool whose validation refuses most of its claims', async () => {
    assert.match((await doctor()).of('validation')?.found ?? '', /none of the newest/);
    await putOnSale(db1, 'strict', 3);
    const refuse = (user: string) =>
      db1.query(
        `select intake.free_claims(array_agg(claim_id), 'refused', 'refused by validation: status 409')
         from public.claims where pool_id = 'strict' and user_id = $1`,
        [user],
      );
    for (const user of ['ann', 'bob', 'cyd'])
      await db1.query(`select public.claim_resource_and_queue('strict', $1)`, [user]);
    await refuse('ann');
    const some = (await doctor()).of('validation');
    assert.deepEqual([some?.status, some?.found], ['ok', 'refused of the newest claims: strict 1 of 3']);
    await refuse('bob');
    const most = (await doctor()).of('validation');
    assert.equal(most?.status, 'warn');
    assert.match(most?.found ?? '', /strict 2 of 3/);
    assert.match(most?.todo ?? '', /sluice claims find --pool strict --state refused/);
  });

  it('a pool with hooks that workers cannot sign, and a secret that is not one', async () => {
    const check = 'hook signatures';
    assert.equal((await doctor()).of(check)?.status, 'skip');
    await putOnSale(db1, 'hooked', 1);
    await db1.query(
      `update engine_config set commit_webhook_url = 'https://example.com/' where pool_id = 'hooked'`,
    );
    try {
      const unsigned = (await doctor()).of(check);
      assert.equal(unsigned?.status, 'warn');
      assert.match(unsigned?.found ?? '', /^hooked: .*SLUICE_HOOK_SECRET is not set/);
      const SLUICE_HOOK_SECRET = `whsec_${Buffer.alloc(32, 'k').toString('base64')}`;
      assert.equal((await doctor({ SLUICE_HOOK_SECRET })).of(check)?.status, 'ok');
      const malformed = await doctor({ SLUICE_HOOK_SECRET: 'whsec_dG9vIHNob3J0' });
      assert.deepEqual([malformed.code, malformed.of(check)?.status], [1, 'fail']);
      assert.doesNotMatch(JSON.stringify(malformed.checks), /dG9vIHNob3J0/);
    } finally {
      await db1.query(`delete from engine_config where pool_id = 'hooked'`);
    }
  });

  it('tickets without links, and a secret for them that can be guessed', async () => {
    const check = 'ticket links';
    const missing = await doctor({ SLUICE_TICKET_SECRET: '' });
    assert.equal(missing.of(check)?.status, 'warn');
    assert.match(missing.of(check)?.todo ?? '', /openssl rand/);
    const short = await doctor({ SLUICE_TICKET_SECRET: 'guessable' });
    assert.deepEqual([short.code, short.of(check)?.status], [1, 'fail']);
    assert.doesNotMatch(JSON.stringify(short.checks), /guessable/);
    const [now, before] = ['n'.repeat(32), 'b'.repeat(32)];
    const rotated = (await doctor({ SLUICE_TICKET_SECRET: `${now}, ${before}` })).of(check);
    assert.deepEqual([rotated?.status, rotated?.found], ['ok', 'SLUICE_TICKET_SECRET is set, with 1 older']);
  });

  it('a pool whose claims are never tried', async () => {
    await putOnSale(db1, 'once', 1);
    await db1.query(`update engine_config set max_retries = 1 where pool_id = 'once'`);
    try {
      const finding = (await doctor()).of('pools');
      assert.equal(finding?.status, 'warn');
      assert.match(finding?.found ?? '', /once: max_retries 1/);
      assert.match(finding?.todo ?? '', /sluice pools set once --max-retries/);
    } finally {
      await db1.query(`update engine_config set max_retries = 10 where pool_id = 'once'`);
    }
    assert.equal((await doctor()).of('pools')?.status, 'ok');
  });
});

describe('sluice migrate', () => {
  it('names swapped addresses, and changes nothing', async () => {
    const databases = await startDatabases();
    try {
      const { code, stdout, stderr } = await runHere(['migrate'], {
        DB1_URL: databases.db2.url,
        DB2_URL: databases.db1.url,
      });
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^error: DB1_URL leads to the ledger.*swapped/);
      assert.doesNotMatch(stderr, /reset/);
      const { stderr: same } = await runHere(['migrate'], {
        DB1_URL: databases.db1.url,
        DB2_URL: `${databases.db1.url}?application_name=x`,
      });
      assert.match(same, /^error: DB2_URL leads to the intake/);
    } finally {
      await databases.stop();
    }
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { copyOperators } from '../../src/server/operator_copy.ts';
import { caller } from '../fleet/support.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { addOperator } from './support.ts';

describe('a rule that is changed past the product', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  before(async () => {
    databases = await startDatabases({ seed: false });
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await databases?.stop();
  });

  const last = async (db: pg.Client, count: number) =>
    (
      await db.query(
        `select * from (select id, actor, action, subject, details from audit.audit_logs order by id desc limit $1) l order by id`,
        [count],
      )
    ).rows;

  it('by service_role leaves a row with who it was and what was before and after', async () => {
    const api = await openClient(databases.db1.authenticatorUrl);
    await api.query('set role service_role');
    await api.query(`insert into public.engine_config (pool_id, max_per_user) values ('gig', 2)`);
    await api.query(
      `update public.engine_config set max_per_user = 9, is_active = false where pool_id = 'gig'`,
    );
    await api.query(`update public.engine_config set max_per_user = 9 where pool_id = 'gig'`);
    await api.query(`delete from public.engine_config where pool_id = 'gig'`);
    await api.end();
    const rows = await last(db1, 3);
    assert.deepEqual(
      rows.map(({ actor, action, subject, details: { did } }) => [actor, action, subject, did]),
      ['insert', 'update', 'delete'].map((did) => [
        'authenticator as service_role',
        'rule_change',
        'pool gig',
        did,
      ]),
    );
    assert.deepEqual(rows[1].details.before, { max_per_user: 2, is_active: true });
    assert.deepEqual(rows[1].details.after, { max_per_user: 9, is_active: false });
    assert.equal(rows[2].details.before.max_per_user, 9);
    assert.deepEqual(rows[2].details.after, {});
  });

  it('in psql leaves a row, in each table of rules', async () => {
    const changes: [pg.Client, string, string][] = [
      [db1, `insert into public.engine_config (pool_id) values ('night')`, 'pool night'],
      [db1, `insert into intake.hook_allowed_hosts (host) values ('10.0.0.1')`, 'hook host 10.0.0.1'],
      [db2, `insert into webhook.secret_names (name) values ('MY_SECRET')`, 'secret name MY_SECRET'],
      [
        db2,
        `insert into public.call_sites (site_id, secret_names, require_signature) values ('s', '{}', false)`,
        'call site s',
      ],
      [
        db2,
        `insert into public.webhook_endpoints (name, provider, secret_names) values ('shop', 'stripe', '{MY_SECRET}')`,
        'webhook endpoint shop',
      ],
      [
        db2,
        `insert into public.webhook_handlers (provider, event_type, kind, name) values ('x', 'y', 'sql', 'webhook.note')`,
        'webhook handler webhook.note',
      ],
      [
        db2,
        `update public.payment_rules set names_user = not names_user
         where ctid = (select min(ctid) from public.payment_rules where event_type = 'charge.refunded')`,
        'payment rule charge.refunded',
      ],
    ];
    for (const [db, sql, subject] of changes) {
      await db.query(sql);
      const [row] = await last(db, 1);
      assert.deepEqual([row.actor, row.action, row.subject], ['postgres', 'rule_change', subject], sql);
    }
  });

  it('twice in one transaction leaves two rows, and none when it is rolled back', async () => {
    const count = async () => (await db1.query('select count(*)::int as n from audit.audit_logs')).rows[0].n;
    const before = await count();
    await db1.query(`begin; update public.engine_config set max_per_user = 1 where pool_id = 'night';
      update public.engine_config set max_per_user = 2 where pool_id = 'night'; commit`);
    assert.equal(await count(), before + 2);
    await db1.query(
      `begin; update public.engine_config set max_per_user = 7 where pool_id = 'night'; rollback`,
    );
    assert.equal(await count(), before + 2);
  });

  it('by a function of the product leaves the row of that function alone', async () => {
    await db1.query(`select public.pool_create('show', 3, '{"max_per_user": 2}', 'Ada')`);
    await db1.query(`select public.pool_change('show', '{"max_per_user": 3}', 0, 'Ada')`);
    await db2.query(`select webhook.add_endpoint('two', 'stripe', '{MY_SECRET}', 'queued', '{}', 'Ada')`);
    await db2.query(`select webhook.change_endpoint('two', '{"is_active": false}', 'Ada')`);
    await db2.query(`select calls.add_site('t', '{MY_SECRET}', true, null, 'Ada')`);
    await db2.query(`select webhook.allow_secret('OTHER', 'Ada')`);
    const actions = (rows: { action: string; actor: string }[]) =>
      rows.map(({ action, actor }) => `${actor} ${action}`);
    assert.deepEqual(actions(await last(db1, 2)), ['Ada pool_create', 'Ada pool_change']);
    assert.deepEqual(actions(await last(db2, 4)), [
      'Ada webhook_endpoint_add',
      'Ada webhook_endpoint_change',
      'Ada call_site_add',
      'Ada secret_name_allow',
    ]);
  });
});

describe('a rule that is changed in one transaction with a function of the product', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  before(async () => {
    databases = await startDatabases({ db2: false, seed: false });
    db1 = await openClient(databases.db1.url);
    await db1.query(`select public.pool_create('gig', 1, '{"max_per_user": 1}', 'Ada')`);
  });
  after(async () => {
    await db1?.end();
    await databases?.stop();
  });

  const told = async (sql: string) => {
    const { rows: before } = await db1.query('select coalesce(max(id), 0) as id from audit.audit_logs');
    await db1.query(`begin; ${sql}; commit`);
    const { rows } = await db1.query(
      `select actor, action, coalesce(changed, jsonb_build_array(details)) as changed from audit.audit_logs
       where id > $1 and subject = 'pool gig' order by id`,
      [before[0].id],
    );
    return rows.map(({ actor, action, changed }) => [
      actor,
      action,
      ...changed.map(({ before, after }: Record<string, unknown>) => [before, after]),
    ]);
  };
  const byAda = (n: number) => `select public.pool_change('gig', '{"max_per_user": ${n}}', 0, 'Ada')`;
  const byHand = (sets: string) => `update public.engine_config set ${sets} where pool_id = 'gig'`;

  it('after it has a row of its own, with what was before and after', async () => {
    assert.deepEqual(await told(`${byAda(2)}; ${byHand(`commit_rpc_name = 'theirs', max_per_user = 9`)}`), [
      ['Ada', 'pool_change', [{ max_per_user: 1 }, { max_per_user: 2 }]],
      [
        'postgres',
        'rule_change',
        [
          { max_per_user: 2, commit_rpc_name: 'finalize_transaction' },
          { max_per_user: 9, commit_rpc_name: 'theirs' },
        ],
      ],
    ]);
  });

  it('before it stands in the row of the function, beside what that one changed', async () => {
    assert.deepEqual(await told(`${byHand(`commit_rpc_name = 'finalize_transaction'`)}; ${byAda(3)}`), [
      [
        'Ada',
        'pool_change',
        [{ commit_rpc_name: 'theirs' }, { commit_rpc_name: 'finalize_transaction' }],
        [{ max_per_user: 9 }, { max_per_user: 3 }],
      ],
    ]);
  });

  it('is told once, and nothing is left for the next transaction', async () => {
    const { rows } = await db1.query('select from audit.untold');
    assert.equal(rows.length, 0);
  });
});

describe('the list of operators', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  before(async () => {
    databases = await startDatabases({ seed: false });
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    await addOperator(db1, 'Ada', 'viewer');
  });
  after(async () => {
    await db1?.end();
    await db2?.end();
    await databases?.stop();
  });

  const rowsOf = async (db: pg.Client) =>
    (
      await db.query(
        `select actor, action, details, changed from audit.audit_logs where subject = 'operator Ada' order by id`,
      )
    ).rows;

  it('that is changed in psql leaves a row in the log, without a hash of a key', async () => {
    await db1.query(
      `update audit.operators set role = 'admin', key_hash = sha256('stolen') where name = 'Ada'`,
    );
    await db1.query(`select public.operator_used('Ada')`);
    const [added, changed, ...more] = await rowsOf(db1);
    assert.deepEqual([added.action, added.changed[0].did], ['operator_add', 'insert']);
    assert.deepEqual(
      [changed.actor, changed.action, changed.details.did],
      ['postgres', 'rule_change', 'update'],
    );
    assert.equal(changed.details.before.role, 'viewer');
    assert.equal(changed.details.after.role, 'admin');
    assert.match(changed.details.after.key_hash, /^[0-9a-f]{16}$/);
    assert.deepEqual(more, [], 'when Ada was last here is not a rule');
  });

  it('as DB2 has it is what DB1 has after the next copy, whatever service_role has put there', async (t) => {
    const copy = () => copyOperators(caller(t, databases.db1.url), caller(t, databases.db2.url));
    await copy();
    const api = await openClient(databases.db2.authenticatorUrl);
    await api.query('set role service_role');
    const forged = ['Ada', 'Eve'].map((name) => ({
      name,
      role: 'admin',
      key_hash: '00'.repeat(32),
      is_revoked: false,
      version: 2_147_483_647,
    }));
    await api.query('select public.copy_operators($1, $2)', [JSON.stringify(forged), '9999-01-01']);
    await api.end();
    await db1.query(`select audit.revoke_operator('Ada', 'owner')`);
    await copy();
    const { rows } = await db2.query('select name, is_revoked from public.known_operators()');
    assert.deepEqual(rows, [{ name: 'Ada', is_revoked: true }]);
    const found = (await rowsOf(db2)).map(({ actor, details: { did, after } }) => [
      actor,
      did,
      after.is_revoked,
    ]);
    assert.deepEqual(found, [
      ['postgres', 'insert', false],
      ['authenticator as service_role', 'update', undefined],
      ['postgres', 'update', true],
    ]);
    await db1.query('delete from audit.operators');
    await copy();
    assert.deepEqual(
      (await db2.query('select from public.known_operators()')).rows,
      [],
      'none, where DB1 has none',
    );
  });
});

describe('who wrote a row of the log', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  before(async () => {
    databases = await startDatabases({ db2: false, seed: false });
    db1 = await openClient(databases.db1.url);
  });
  after(async () => {
    await db1?.end();
    await databases?.stop();
  });

  it('is what the database saw, whatever name the caller gives', async () => {
    await addOperator(db1, 'Ada', 'admin');
    const api = await openClient(databases.db1.authenticatorUrl);
    await api.query(`set role service_role; set sluice.audit_exception = 'import'`);
    await api.query(`select public.pool_create('gig', 1, '{}', 'Ada')`);
    await api.end();
    await db1.query(`select public.pool_change('gig', '{"max_per_user": 2}', 0, 'Ada')`);
    const { rows } = await db1.query(
      `select actor, written_by from public.audit_page() where subject = 'pool gig' and action <> 'rule_change' order by id`,
    );
    assert.deepEqual(rows, [
      { actor: 'Ada', written_by: 'authenticator as service_role' },
      { actor: 'Ada', written_by: 'postgres' },
    ]);
    await db1.query(
      `insert into audit.audit_logs (actor, action, subject, written_by) values ('Ada', 'test', 't', 'Ada')`,
    );
    const given = await db1.query(`select written_by from audit.audit_logs where action = 'test'`);
    assert.deepEqual(given.rows, [{ written_by: 'postgres' }], 'it is not given');
  });
});

describe('users in the audit log', () => {
  let databases: TestDatabases;
  before(async () => {
    databases = await startDatabases({ db2: false, seed: false });
  });
  after(() => databases?.stop());

  it('have pseudonyms, the same for the same user, which say nothing once the key is gone', async () => {
    const db1 = await openClient(databases.db1.url);
    const write = async (details: object) =>
      (
        await db1.query(
          `insert into audit.audit_logs (actor, action, subject, details) values ('a', 'test', 't', $1) returning details`,
          [JSON.stringify(details)],
        )
      ).rows[0].details;
    const one = await write({
      user_id: 'ann',
      letter: { user_id: 'ann', deep: [{ user_id: 'bob' }, 7] },
      n: null,
    });
    assert.match(one.user_id, /^user:[0-9a-f]{32}$/);
    assert.equal(one.letter.user_id, one.user_id);
    assert.notEqual(one.letter.deep[0].user_id, one.user_id);
    assert.deepEqual([one.letter.deep[1], one.n], [7, null]);
    assert.deepEqual(await write(one), one, 'a pseudonym stays what it is');
    // A caller that names users by numbers.
    const numbered = await write({ user_id: 4711, amount: 4711, items: [{ user_id: 4711 }] });
    assert.match(numbered.user_id, /^user:[0-9a-f]{32}$/);
    assert.deepEqual(numbered.items, [{ user_id: numbered.user_id }]);
    assert.equal(numbered.amount, 4711);
    const { rows } = await db1.query(`select * from audit.audit_logs l where l::text like '%ann%'`);
    assert.equal(rows.length, 0);
    await db1.query(`delete from audit.user_keys where user_id = 'ann'`);
    assert.notEqual((await write({ user_id: 'ann' })).user_id, one.user_id);
    await db1.end();
  });
});

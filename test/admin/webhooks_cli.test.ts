import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { SENTENCES } from '#core/rules.ts';
import { progressLine, startProgress } from '../../src/commands/progress.ts';
import { openClient } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { allowSecrets } from '../webhook/world.ts';
import { sluice } from '../work/support.ts';
import { auditRows, statuses, storeEvents, webhooksHere } from './webhook_support.ts';

const SECRET = 'a secret of the command line';

describe('sluice webhooks', () => {
  let databases: TestDatabases;
  let db2: pg.Client;
  const webhooks = (...args: string[]) => webhooksHere(databases.db2.url, args);
  const json = async (...args: string[]) => JSON.parse((await webhooks(...args, '--json')).stdout);

  before(async () => {
    databases = await startDatabases({ db1: false });
    db2 = await openClient(databases.db2.url);
    await allowSecrets(db2, ['OLD', 'NEW', 'X']);
    Object.assign(process.env, { OLD: SECRET, NEW: SECRET, X: SECRET });
  });
  after(async () => {
    await db2?.end();
    await databases?.stop();
  });

  it('adds an endpoint, rotates its secret in two steps, switches it off and on', async () => {
    assert.equal((await webhooks('endpoints', 'list')).stdout, 'No endpoints.\n');
    const options = [
      '--provider',
      'stripe',
      '--secret-name',
      'OLD',
      '--max-attempts',
      '3',
      '--mode',
      'inline',
    ];
    const { code, stdout, stderr } = await webhooks('endpoints', 'add', 'shop', ...options);
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^NAME +TENANT +TAKES +ACCOUNTS +MODE +ON OUTAGE +ACTIVE +SECRETS +ATTEMPTS +WEBHOOK ID\nshop +stripe +live +- +inline +refuse +on +OLD +3 /,
    );
    const taken = await webhooks('endpoints', 'add', 'shop', ...options);
    assert.deepEqual([taken.code, taken.stderr.split('\n')[0]], [1, 'there is an endpoint shop already']);
    const rotated = await json('endpoints', 'rotate', 'shop', '--secret-name', 'NEW', '--reason', 'leaked');
    assert.deepEqual(rotated.endpoints[0].secret_names, ['NEW', 'OLD']);
    const ended = await json('endpoints', 'rotate', 'shop', '--secret-name', 'NEW', '--only');
    assert.deepEqual(ended.endpoints[0].secret_names, ['NEW']);
    assert.equal((await json('endpoints', 'disable', 'shop')).endpoints[0].is_active, false);
    assert.equal((await json('endpoints', 'enable', 'shop')).endpoints[0].is_active, true);
    assert.equal((await json('endpoints', 'change', 'shop', '--lease-sec', '5')).endpoints[0].lease_sec, 5);
    const { rows } = await db2.query(
      `select actor, count(*)::int from audit.audit_logs where action <> 'rule_change' group by actor`,
    );
    assert.deepEqual(rows, [{ actor: 'owner (grace)', count: 6 }]);
  });

  it('gives a second endpoint a tenant of its own, or lets it share one, and says which events are for it', async () => {
    const add = (name: string, ...more: string[]) =>
      json('endpoints', 'add', name, '--provider', 'stripe', '--secret-name', 'OLD', ...more);
    const accounts = ['--livemode', 'both', '--account', 'acct_1', '--account', 'acct_2'];
    const { tenant, livemode, accounts: taken } = (await add('eu', ...accounts)).endpoints[0];
    assert.deepEqual([tenant, livemode, taken], ['stripe:eu', 'both', ['acct_1', 'acct_2']]);
    assert.equal((await add('old-shop', '--tenant', 'stripe')).endpoints[0].tenant, 'stripe');
    const [own] = (await json('endpoints', 'change', 'eu', '--own-account', '--livemode', 'test')).endpoints;
    assert.deepEqual([own.livemode, own.accounts], ['test', []]);
    const rest = ['--provider', 'stripe', '--secret-name', 'OLD'];
    for (const [args, said] of [
      [['--tenant', 'stripe:none'], /^the tenant stripe:none does not exist/],
      [['--tenant', 'twilio'], /^The tenant twilio is not one of stripe\./],
      [['--livemode', 'sometimes'], /livemode/],
    ] as const) {
      const { code, stderr } = await webhooks('endpoints', 'add', 'third', ...rest, ...args);
      assert.notEqual(code, 0);
      assert.match(stderr, said);
    }
  });

  it('names only secrets that are on the list, set and long enough, and shows who uses which', async () => {
    const add = (name: string) =>
      webhooks('endpoints', 'add', 'guarded', '--provider', 'twilio', '--secret-name', name);
    const faults = [
      ['HOME', /^HOME is not on the list of secrets, which the owner of DB2 keeps/],
      ['WHATSAPP_APP_SECRET', /^WHATSAPP_APP_SECRET is not set\./],
      ['X', /^X is too short to be a secret\./],
    ] as const;
    for (const [name, fault] of faults) {
      const { code, stderr } = await add(name);
      assert.deepEqual([code, fault.test(stderr)], [1, true], stderr);
    }
    const rotated = await webhooks('endpoints', 'rotate', 'shop', '--secret-name', 'HOME');
    assert.deepEqual([rotated.code, /^HOME is not on the list/.test(rotated.stderr)], [1, true]);
    assert.equal(
      (await webhooks('secrets', 'allow', 'SHOP_SECRET_2')).stdout,
      'SHOP_SECRET_2 may be used now.\n',
    );
    assert.equal(
      (await webhooks('secrets', 'allow', 'SHOP_SECRET_2')).stdout,
      'SHOP_SECRET_2 was on the list already.\n',
    );
    const { secret_names: listed } = await json('secrets', 'list');
    const used = listed.filter(({ used_by }: { used_by: string[] }) => used_by.length > 0);
    assert.deepEqual(used, [
      { name: 'NEW', used_by: ['shop'], fault: null },
      { name: 'OLD', used_by: ['eu', 'old-shop'], fault: null },
    ]);
    assert.match((await webhooks('secrets', 'list')).stdout, /^NAME +USED BY +TROUBLE HERE\n/);
    const removed = await webhooks('secrets', 'remove', 'SHOP_SECRET_2');
    assert.equal(removed.stdout, 'SHOP_SECRET_2 is not used any more.\n');
    assert.equal((await webhooks('secrets', 'allow', 'whsec_hunter2')).code, 2);
  });

  it('lets the owner alone write the list of secrets', async () => {
    await db2.query(`create role clerk login password 'clerk' bypassrls in role service_role`);
    const url = new URL(databases.db2.url);
    Object.assign(url, { username: 'clerk', password: 'clerk' });
    const { code, stderr } = await webhooksHere(url.href, ['secrets', 'allow', 'HOME']);
    assert.deepEqual([code, stderr.split('\n')[0]], [1, 'only the owner of DB2 changes the list of secrets']);
    assert.equal((await webhooksHere(url.href, ['secrets', 'list'])).code, 0);
  });

  it('replays what a filter finds in batches, skips the question only with --yes, and says 1 the second time', async () => {
    const ids = Array.from({ length: 1_100 }, (_, at) => `b-${String(at).padStart(4, '0')}`);
    await storeEvents(db2, ids, { provider: 'many' });
    await storeEvents(db2, ['b-success'], { provider: 'many', status: 'success' });
    const filter = ['--provider', 'many', '--limit', '2000'];
    const refused = await webhooks('replay', ...filter);
    assert.deepEqual([refused.code, refused.stdout], [2, '']);
    assert.match(refused.stderr, /no terminal to ask at: replay 1100 events\? Add --yes/);
    const dry = await json('replay', ...filter, '--dry-run');
    assert.equal(dry.results.length, 1_100);
    assert.ok(dry.results.every((row: { outcome: string }) => row.outcome === 'would_replay'));
    assert.deepEqual(await auditRows(db2, 'webhook_replay'), []);
    const done = await json('replay', ...filter, '--yes', '--reason', 'mended');
    assert.equal(done.results.length, 1_100);
    const audit = await auditRows(db2, 'webhook_replay');
    assert.equal(audit.length, 1_100);
    assert.ok(audit.every(({ actor, reason }) => actor === 'owner (grace)' && reason === 'mended'));
    const again = await webhooks('replay', ...filter, '--status', 'pending', '--yes', '--limit', '1');
    assert.equal(again.code, 1);
    assert.match(again.stdout, /b-0000 +in_flight/);
    assert.equal((await statuses(db2))['b-success'], 'success');
  });

  it('needs no --yes for one event by its name, and tells of one that was processed', async () => {
    await storeEvents(db2, ['one-dead'], { provider: 'single' });
    await storeEvents(db2, ['one-done'], { provider: 'single', status: 'success' });
    const dead = await webhooks('replay', '--event-id', 'one-dead', '--idempotency-key', 'key-2');
    assert.equal(dead.code, 0, dead.stderr);
    assert.match(dead.stdout, /one-dead +replayed/);
    assert.equal((await auditRows(db2, 'webhook_replay')).at(-1)?.idempotency_key, 'key-2');
    const done = await webhooks('replay', '--event-id', 'one-done');
    assert.equal(done.code, 1);
    assert.match(done.stdout, /one-done +already_processed/);
    const none = await webhooks('replay', '--event-id', 'one-missing');
    assert.deepEqual([none.code, none.stdout], [1, 'No such events.\n']);
    const skipped = await webhooks('skip', '--event-id', 'one-dead', '--reason', 'spam');
    assert.equal(skipped.code, 0, skipped.stderr);
  });

  it('replays and skips events by their uuids, and refuses ids together with a filter', async () => {
    const [first, second, third] = await storeEvents(db2, ['u-1', 'u-2', 'u-3'], { provider: 'by-uuid' });
    const one = await webhooks('replay', first?.id ?? '', '--reason', 'mended');
    assert.equal(one.code, 0, one.stderr);
    assert.match(one.stdout, /u-1 +replayed/);
    const two = await json('skip', second?.id ?? '', third?.id ?? '', '--yes');
    assert.deepEqual(
      two.results.map((row: { outcome: string }) => row.outcome),
      ['skipped', 'skipped'],
    );
    for (const more of [
      ['--provider', 'by-uuid'],
      ['--limit', '5'],
    ]) {
      const both = await webhooks('replay', first?.id ?? '', ...more);
      assert.deepEqual([both.code, both.stderr], [2, 'give ids or filters, not both\n']);
    }
  });

  it('lists, replays and skips by type, error, time and what is in the payload', async () => {
    const provider = 'searched';
    await storeEvents(db2, ['s-1'], {
      provider,
      type: 'charge.failed',
      error: 'Timeout of the CRM',
      payload: { a: [{ b: 7 }] },
    });
    await storeEvents(db2, ['s-2'], {
      provider,
      type: 'charge.refunded',
      error: 'no user',
      payload: { a: [{ b: 8 }] },
    });
    await storeEvents(db2, ['s-3'], {
      provider,
      type: 'invoice.paid',
      error: 'no user',
      receivedAt: '2020-01-02',
    });
    const found = async (...filter: string[]) =>
      (await json('list', '--provider', provider, ...filter)).events.map(
        (event: { event_id: string }) => event.event_id,
      );
    assert.deepEqual(await found('--type', 'charge.failed'), ['s-1']);
    assert.deepEqual(await found('--type', 'charge.*'), ['s-2', 's-1']);
    assert.deepEqual(await found('--type', 'charge.%'), []);
    assert.deepEqual(await found('--error', 'timeout'), ['s-1']);
    assert.deepEqual(await found('--error', 'no user', '--since', '2021-01-01'), ['s-2']);
    assert.deepEqual(await found('--path', '$.a[*] ? (@.b > 7)'), ['s-2']);
    assert.deepEqual(await found('--path', '$.a[0].b == 7'), ['s-1']);
    assert.deepEqual(await found('--path', '$.nothing'), []);
    for (const action of ['list', 'replay', 'skip']) {
      const bad = await webhooks(action, '--path', '$.a[');
      assert.deepEqual([bad.code, bad.stdout], [1, '']);
      assert.match(bad.stderr, /path is not a JSON path, such as \$\.data\.object\.id/);
    }
    const replayed = await json('replay', '--provider', provider, '--error', 'TIMEOUT', '--yes');
    assert.deepEqual(
      replayed.results.map((row: { event_id: string }) => row.event_id),
      ['s-1'],
    );
    const skipped = await json('skip', '--path', '$.a[*] ? (@.b == 8)', '--yes');
    assert.deepEqual(
      skipped.results.map((row: { event_id: string }) => row.event_id),
      ['s-2'],
    );
    assert.equal((await statuses(db2))['s-3'], 'dead_letter');
  });

  it('touches nothing without an id or a filter, whatever other options are given', async () => {
    await storeEvents(db2, ['untouched'], { provider: 'unnamed' });
    const others = ['--yes', '--json', '--reason', 'r', '--limit', '1000000'];
    for (const action of ['replay', 'skip']) {
      const { code, stdout, stderr } = await webhooks(action, ...others);
      assert.deepEqual([code, stdout, stderr], [2, '', `${action} needs ids or a filter\n`]);
    }
    assert.equal((await statuses(db2)).untouched, 'dead_letter');
  });

  it('lists and shows, with the address from what npm start left or from DATABASE_URL', async () => {
    const [event] = await storeEvents(db2, ['shown'], { provider: 'lister' });
    const { code, stdout } = await sluice(['webhooks', 'list', '--provider', 'lister'], {
      DATABASE_URL: databases.db2.url,
    }).ended;
    assert.equal(code, 0);
    assert.match(stdout, /^ID +PROVIDER +EVENT +TYPE +STATUS +ATTEMPTS +RECEIVED +BACKFILLED +ERROR\n/);
    assert.match(
      stdout,
      new RegExp(`${event?.id} +lister +shown +unknown +dead_letter +5 +2\\S+Z +it broke\n`),
    );
    const dir = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
    try {
      writeFileSync(join(dir, 'env'), `DB1_URL=x\nDB2_URL=${databases.db2.url}\n`);
      const unknown = '00000000-0000-4000-8000-000000000000';
      const shown = await sluice(['webhooks', 'show', event?.id ?? '', unknown], { SLUICE_DIR: dir }).ended;
      assert.equal(shown.code, 1);
      assert.equal(JSON.parse(shown.stdout).event_id, 'shown');
      assert.match(shown.stderr, /The event 00000000\S* does not exist/);
      const named = await sluice(['webhooks', 'show', 'shown', 'unknown'], { SLUICE_DIR: dir }).ended;
      assert.deepEqual([named.code, JSON.parse(named.stdout).id], [1, event?.id]);
      assert.equal(named.stderr, 'The event unknown does not exist.\n');
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('refuses a secret where its name belongs, and does not repeat it', async () => {
    const add = ['endpoints', 'add', 'leaky', '--provider', 'stripe'];
    for (const args of [
      [...add, '--secret-name', 'whsec_hunter2'],
      [...add, '--secret-name', 'GOOD', '--verify-token-name', 'whsec_hunter2'],
      ['endpoints', 'rotate', 'shop', '--secret-name', 'whsec_hunter2'],
    ]) {
      const { code, stderr } = await webhooks(...args);
      assert.equal(code, 2);
      assert.match(stderr, /never the secret itself/);
      assert.doesNotMatch(stderr, /hunter2/);
    }
  });

  it('says which rule an endpoint breaks in a sentence', async () => {
    const bare = ['--provider', 'hmac', '--secret-name', 'X'];
    const { code, stderr } = await sluice(['webhooks', 'endpoints', 'add', 'bare', ...bare], {
      DB2_URL: databases.db2.url,
      X: SECRET,
    }).ended;
    assert.equal(code, 1);
    assert.match(stderr, /^error: The request is not valid\.\nhint: The provider hmac needs a scheme/);
  });

  it('has a sentence for every rule of the tables that operators write to', async () => {
    const { rows } = await db2.query(
      `select conname from pg_constraint
       where contype = 'c' and conrelid in ('public.webhook_endpoints'::regclass, 'public.call_sites'::regclass)`,
    );
    assert.deepEqual([...new Set(rows.map(({ conname }) => conname))].sort(), Object.keys(SENTENCES).sort());
  });

  it('prunes payloads of events that have ended and keeps their keys', async () => {
    await storeEvents(db2, ['old-1', 'old-2'], { status: 'success', receivedAt: '2020-01-01' });
    await storeEvents(db2, ['old-dead'], { status: 'dead_letter', receivedAt: '2020-01-01' });
    assert.equal((await webhooks('prune', '--days', '30')).code, 2);
    assert.deepEqual(await json('prune', '--days', '30', '--yes'), { pruned: 2 });
    const { rows } = await db2.query(
      `select event_id, payload is null as pruned from public.webhook_events where event_id like 'old-%' order by 1`,
    );
    assert.deepEqual(rows, [
      { event_id: 'old-1', pruned: true },
      { event_id: 'old-2', pruned: true },
      { event_id: 'old-dead', pruned: false },
    ]);
    assert.equal((await auditRows(db2, 'webhook_prune')).length, 1);
  });

  it('says 2 to what it does not understand, and 1 with a hint when it cannot reach DB2', async () => {
    const calls = [
      [],
      ['burn'],
      ['show'],
      ['list', '--limit', '5000'],
      ['list', '--status', 'lost'],
      ['replay'],
      ['replay', '--limit', '5'],
      ['replay', '--since', 'yesterday'],
      ['replay', '--event-id', ''],
      ['skip', '--provider', 'x', '--idempotency-key', 'k'],
      ['endpoints', 'add', 'x', '--secret-name', 'X'],
      ['endpoints', 'add', 'x', '--provider', 'unknown', '--secret-name', 'X'],
      ['endpoints', 'add', 'x', '--provider', 'stripe', '--secret-name', 'whsec_abc'],
      ['endpoints', 'rotate', 'x'],
      ['endpoints', 'burn', 'x'],
      ['prune', '--days', '0', '--yes'],
    ];
    for (const args of calls) {
      const { code, stderr } = await webhooks(...args);
      assert.equal(code, 2, `${args}: ${stderr}`);
    }
    const { code, stderr } = await sluice(['webhooks', 'burn'], {}).ended;
    assert.deepEqual([code, stderr], [2, 'webhooks cannot burn\nhint: see `sluice webhooks --help`\n']);
    const away = await sluice(['webhooks', 'list'], { DB2_URL: 'postgres://u:p@127.0.0.1:1/x' }).ended;
    assert.equal(away.code, 1);
    assert.match(away.stderr, /^error: The database cannot be reached\.\nhint: .*DB2_URL/m);
    const unset = await sluice(['webhooks', 'list'], { SLUICE_DIR: '/nonexistent' }).ended;
    assert.match(unset.stderr, /^error: DB2_URL is not set/);
  });
});

describe('the progress line', () => {
  it('tells share, rate and what is left', () => {
    assert.equal(
      progressLine(500, 2_000, 'events', 2),
      '[########......................] 500 of 2000 events, 250/s, 6 s left',
    );
    assert.equal(progressLine(10, 10, 'events', 1), `[${'#'.repeat(30)}] 10 of 10 events, 10/s`);
  });

  it('is for terminals: a pipe gets none of it', () => {
    let written = '';
    const run = (isTTY: boolean) => {
      const write = (text: string) => {
        written += text;
        return true;
      };
      const progress = startProgress(2, 'events', { isTTY, write } as never);
      progress.advance(2);
      progress.end();
    };
    run(false);
    assert.equal(written, '');
    run(true);
    assert.match(written, /2 of 2 events/);
  });
});

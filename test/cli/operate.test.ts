import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { startProxy } from '../client/proxy.ts';
import { ADMIN_KEY, claim, openClient, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { sluice } from '../work/support.ts';
import { runHere } from './support.ts';

describe('the operator at the command line', () => {
  let databases: TestDatabases;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let db1: pg.Client;
  let env: Record<string, string>;
  const run = (...args: string[]) => runHere(args, env);
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };

  before(async () => {
    databases = await startDatabases();
    server = await startTestServer(databases);
    db1 = await openClient(databases.db1.url);
    env = { SLUICE_URL: server.url, SLUICE_ADMIN_KEY: ADMIN_KEY };
  });
  after(async () => {
    await db1?.end();
    await server?.stop();
    await databases?.stop();
  });

  it('creates a pool with rules and slots, and cannot create it twice', async () => {
    assert.match((await run('pools', 'list')).stdout, /^No pools\./);
    const made = await json(
      'pools',
      'create',
      'night',
      '--slots',
      '5',
      '--max-per-user',
      '2',
      '--reason',
      'a test',
    );
    assert.deepEqual([made.status, made.capacity, made.available, made.max_per_user], ['open', 5, 5, 2]);
    const again = await run('pools', 'create', 'night', '--slots', '5');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /^error: There is a pool of this name\.\nhint: /);
    const { rows } = await db1.query(
      "select actor, action, subject, reason from audit.audit_logs where action <> 'rule_change'",
    );
    assert.deepEqual(rows, [
      { actor: 'admin', action: 'pool_create', subject: 'pool night', reason: 'a test' },
    ]);
  });

  it('keeps a pool of many slots closed until all of them are there', async () => {
    const { capacity, is_active } = await json('pools', 'create', 'large', '--slots', '50001');
    assert.deepEqual([capacity, is_active], [50_001, true]);
    const { rows } = await db1.query(
      `select details -> 'rules' ->> 'is_active' as open, details -> 'after' ->> 'is_active' as opened,
         details ->> 'add_slots' as added
       from audit.audit_logs where subject = 'pool large' order by id`,
    );
    assert.deepEqual(rows, [
      { open: 'false', opened: null, added: null },
      { open: null, opened: null, added: '1' },
      { open: null, opened: 'true', added: '0' },
    ]);
    assert.equal((await json('pools', 'create', 'shut', '--closed')).status, 'closed');
  });

  it('closes, opens, changes and adds to pools', async () => {
    const unasked = await run('pools', 'close', 'night');
    assert.deepEqual([unasked.code, unasked.stdout], [2, '']);
    assert.match(unasked.stderr, /^no terminal to ask at: Close night\? .* Add --yes\nhint: /);
    assert.equal((await json('pools', 'close', 'night', '--yes')).status, 'closed');
    assert.equal((await claim(server.url, 'night', { user_id: 'ann' })).json.error.code, 'closed');
    assert.equal((await json('pools', 'open', 'night')).status, 'open');
    const set = await json(
      'pools',
      'set',
      'night',
      '--max-per-user',
      'none',
      '--require-auth',
      'no',
      '--hold-sec',
      '60',
    );
    assert.deepEqual([set.max_per_user, set.require_auth, set.hold_sec], [null, false, 60]);
    assert.equal((await json('pools', 'add-slots', 'night', '3')).capacity, 8);
    const table = (await run('pools', 'list')).stdout;
    assert.match(table, /^POOL +STATUS +CAPACITY +FREE +HELD +SOLD +OPENS$/m);
    assert.match(table, /^night +open +8 +8 +0 +0 +-$/m);
    assert.match((await run('pools', 'show', 'night')).stdout, /^hold_sec +60$/m);
    const refused = await run('pools', 'set', 'night', '--opens-at', 'tomorrow');
    assert.equal(refused.code, 2);
    assert.match(
      refused.stderr,
      /^--opens-at is "tomorrow"; say a time with its zone, such as 2026-03-01T18:00:00Z/,
    );
    for (const wrong of ['2026-03-01', '2026-03-01T18:00:00', '2026-13-01T18:00:00Z'])
      assert.equal((await run('pools', 'set', 'night', '--closes-at', wrong)).code, 2, wrong);
    const timed = await json('pools', 'set', 'night', '--closes-at', '2126-03-01T19:00:00+01:00');
    assert.equal(timed.closes_at.slice(0, 19), '2126-03-01T18:00:00');
    assert.match((await run('pools', 'show', 'nowhere')).stderr, /^error: This pool does not exist/);
  });

  it('adds slots once, however often it is told to under one request id', async () => {
    const more = () => json('pools', 'add-slots', 'night', '2', '--request-id', 'more-1');
    assert.deepEqual([(await more()).capacity, (await more()).capacity], [10, 10]);
    const other = await run('pools', 'add-slots', 'night', '3', '--request-id', 'more-1');
    assert.equal(other.code, 1);
    assert.match(other.stderr, /request_id/);
    // Without the id it is another wish each time.
    assert.equal((await json('pools', 'add-slots', 'night', '2')).capacity, 12);
    const made = () => json('pools', 'create', 'once', '--slots', '2', '--request-id', 'once-1');
    assert.deepEqual([(await made()).capacity, (await made()).capacity], [2, 2]);
  });

  it('asks again when an answer is lost or cut off, and no slot is there twice', async (t) => {
    const proxy = await startProxy(server.url);
    t.after(() => proxy.close());
    proxy.faults.push('lose_answer', 'cut_answer');
    const { code, stdout, stderr } = await runHere(['pools', 'add-slots', 'once', '5', '--json'], {
      ...env,
      SLUICE_URL: proxy.url,
    });
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(JSON.parse(stdout).capacity, 7);
    assert.equal(new Set(proxy.seen.map((body) => JSON.parse(body).request_id)).size, 1);
    assert.equal(proxy.seen.length, 3);
  });

  it('hands over the request id with which to go on when no answer comes', async (t) => {
    const proxy = await startProxy(server.url);
    t.after(() => proxy.close());
    const add = (...more: string[]) =>
      runHere(['pools', 'add-slots', 'once', '5', ...more], { ...env, SLUICE_URL: proxy.url });
    proxy.faults.push(...Array<'cut_answer'>(9).fill('cut_answer'));
    const lost = await add();
    assert.equal(lost.code, 1);
    assert.match(lost.stderr, /^error: .*cut off/m);
    const [, id = ''] = /with --request-id (\S+) goes on/.exec(lost.stderr) ?? [];
    proxy.faults.length = 0;
    assert.match((await add('--request-id', id)).stdout, /^capacity +12$/m);
  });

  it('refuses an answer that is not from a Sluice server', async (t) => {
    const proxy = await startProxy(server.url);
    t.after(() => proxy.close());
    proxy.faults.push({ status: 200, body: '<html>' });
    const { code, stderr } = await runHere(['pools', 'list'], { ...env, SLUICE_URL: proxy.url });
    assert.equal(code, 1);
    assert.match(stderr, /^error: the server answered 200\nhint: is SLUICE_URL the Sluice server\?\n$/);
  });

  it('finds a claim, shows its way, and releases it once', async () => {
    const { claim_id: id } = (await claim(server.url, 'night', { user_id: 'ann', request_id: 'r-1' })).json;
    const found = await run('claims', 'find', '--user', 'ann');
    assert.match(found.stdout, new RegExp(`^${id} +night +ann +queued +2\\S+Z +-$`, 'm'));
    assert.equal((await json('claims', 'find', '--request', 'r-1', '--pool', 'night')).items[0].claim_id, id);
    assert.equal((await run('claims', 'find', '--user', 'unknown')).stdout, 'No such claims.\n');
    const shown = (await run('claims', 'show', id)).stdout;
    assert.match(shown, /^state +queued$/m);
    assert.match(shown, /^2\S+Z +claimed +.*resource_id=/m);
    assert.match(shown, /^2\S+Z +queued +.*msg_id=1/m);
    assert.equal((await run('claims', 'release', id)).code, 2);
    const released = await json('claims', 'release', id, '--reason', 'asked by phone', '--yes');
    assert.deepEqual(released.results, [{ claim_id: id, outcome: 'released' }]);
    const unknown = '00000000-0000-4000-8000-000000000000';
    const more = await run('claims', 'release', id, unknown, '--yes');
    assert.equal(more.code, 1);
    assert.match(more.stdout, new RegExp(`^${id} +released\n${unknown} +unknown_claim$`, 'm'));
    const way = (await run('claims', 'show', id)).stdout;
    assert.equal(way.match(/^2\S+Z +claim_release +.*reason=asked by phone/gm)?.length, 1, way);
    assert.match((await run('claims', 'show', unknown)).stderr, /The claim \S+ does not exist/);
  });

  it('says 2 to what it does not understand', async () => {
    const calls = [
      ['pools', 'list', 'night'],
      ['pools', 'close'],
      ['pools', 'open', 'night', '--hold-sec', '1'],
      ['pools', 'set', 'night'],
      ['pools', 'set', 'night', '--batch-size', 'none'],
      ['pools', 'set', 'night', '--require-auth', 'maybe'],
      ['pools', 'add-slots', 'night', '-5'],
      ['pools', 'create', 'x', '--slots', '1000001'],
      ['pools', 'open', 'night', '--request-id', 'x'],
      ['claims'],
      ['claims', 'find'],
      ['claims', 'show'],
      ['claims', 'release', 'not-an-id'],
    ];
    for (const args of calls) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 2, `${args}: ${stderr}`);
      assert.match(stderr, /hint: see `sluice (pools|claims)( [a-z-]+)? --help`/);
    }
  });

  it('tells the numbers once, and follows them', async () => {
    const { code, stdout } = await run('status');
    assert.equal(code, 0);
    assert.match(stdout, /^DB1 intake ok \d+ ms {3}DB2 ledger ok \d+ ms$/m);
    assert.match(stdout, /^claims +1 +[\d.]+\/s$/m);
    assert.match(stdout, /^night +12 +12 +0 +0$/m);
    assert.ok(!stdout.includes('\u001b'));
    assert.equal((await json('status')).pools.length, 4);
    const watching = sluice(['status', '--watch'], env);
    await watching.said(/queue 0 .*\n.*queue 0 .*db2 ok\n/);
    watching.child.kill('SIGINT');
    assert.equal((await watching.ended).code, 0);
    const unread = sluice(['status', '--watch'], env);
    await unread.said(/queue 0 /);
    unread.child.stdout?.destroy();
    assert.equal((await unread.ended).code, 0, 'it ends when its reader has left');
  });

  it('tells of a wrong key and of a server that is away', async () => {
    const wrong = await runHere(['status'], { ...env, SLUICE_ADMIN_KEY: 'wrong' });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /^error: the server refused the key\nhint: set SLUICE_OPERATOR_KEY /);
    assert.equal(wrong.stdout, '');
    const away = await runHere(['pools', 'list'], { ...env, SLUICE_URL: 'http://127.0.0.1:1' });
    assert.match(away.stderr, /^error: no server answers at /);
  });

  it('sees an outage of the ledger', async () => {
    await databases.db2.stop('immediate');
    const { code, stdout } = await run('status');
    assert.equal(code, 1);
    assert.match(stdout, /DB2 ledger DOWN/);
    assert.match(stdout, /^tickets +- +-$/m);
  });

  it('shows the order of a claim as the server has it', async () => {
    assert.equal((await run('pools', 'create', 'pairs', '--slots', '4', '--max-quantity', '2')).code, 0);
    const { claims } = (await claim(server.url, 'pairs', { user_id: 'ann', quantity: 2 })).json;
    const [{ claim_id: first }] = claims;
    const shown = (await run('claims', 'show', first)).stdout;
    assert.match(shown, new RegExp(`^order +\\{.*"order_id":"${first}".*\\}$`, 'm'));
  });
});

import assert from 'node:assert/strict';
import test from 'node:test';
import { readCells } from '../../src/fleet/addresses.ts';
import { runHere } from '../cli/support.ts';
import { ADMIN_KEY, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabase } from '../support/databases.ts';
import { furnishPool, query } from './support.ts';

test('SLUICE_CELLS is a list of names and addresses, with several hosts each; DB1_URL alone is a fleet of one', () => {
  const a = 'postgres://me@one:1,two:2/intake?application_name=x,y';
  const b = 'postgresql://me@three/intake';
  const cells = [
    { name: 'a', url: a },
    { name: 'b-2', url: b },
  ];
  assert.deepEqual(readCells({ SLUICE_CELLS: `a=${a}, b-2=${b}` }), cells);
  assert.deepEqual(readCells({ SLUICE_CELLS: `a=${a},b-2=${b}`, DB1_URL: 'postgres://other' }), cells);
  assert.deepEqual(readCells({ DB1_URL: a }), [{ name: 'main', url: a }]);
  assert.deepEqual(readCells({}), []);
  for (const wrong of [
    `a=${a},db2=${b}`,
    `a=${a},a=${b}`,
    `a=${a},b=${a}`,
    a,
    `A=${a}`,
    `x,a=${a}`,
    'a=mysql://x',
  ])
    assert.throws(() => readCells({ SLUICE_CELLS: wrong }), /SLUICE_CELLS cannot be read/, wrong);
});

/** `sluice` over the cells of an object: their names, in their order, and their addresses. */
const over =
  (cells: Record<string, { url: string }>, env: Record<string, string> = {}) =>
  (line: string) =>
    runHere(line.split(' '), { SLUICE_CELLS: listOf(cells), USER: 'ann', ...env });

const listOf = (cells: Record<string, { url: string }>): string =>
  Object.entries(cells)
    .map(([name, { url }]) => `${name}=${url}`)
    .join(',');

test('the number of a cell that has left is not given again', async (t) => {
  const all = await Promise.all([1, 2, 3, 4].map(() => startDatabases({ db2: false })));
  t.after(() => Promise.all(all.map((one) => one.stop())));
  const [a, b, c, d] = all.map(({ db1 }) => db1) as [TestDatabase, TestDatabase, TestDatabase, TestDatabase];
  const add = async (cells: Record<string, { url: string }>, name: string) =>
    JSON.parse((await over(cells)(`cells add ${name} --json`)).stdout).number;
  assert.equal(await add({ a, b }, 'a'), 0);
  assert.equal(await add({ a, b }, 'b'), 1);
  assert.match((await over({ a, b })('cells drain b')).stdout, /Cell b is empty/);
  assert.equal(await add({ a, c }, 'c'), 2);
  // A database that is made anew under an old name is another cell.
  assert.equal(await add({ a, c, b: d }, 'b'), 3);
  assert.equal(await add({ a, b: d }, 'b'), 3, 'a second time it is the same');
  const known = await query(a.url, 'select numbers from public.cell_here()');
  assert.deepEqual(known, [{ numbers: { a: 0, b: 3, c: 2 } }]);
});

test('a fleet that began with an import is migrated, and an import that was killed half way keeps others from it', async (t) => {
  const [first, second] = await Promise.all([startDatabases(), startDatabases({ db2: false })]);
  t.after(() => Promise.all([first.stop(), second.stop()]));
  const [a, b] = [first.db1, second.db1];
  const DB2_URL = first.db2.url;
  const importInto = ({ url }: { url: string }) =>
    query(url, `insert into audit.audit_logs (actor, action, subject) values ('ann', 'import', 'export 1')`);
  await importInto(first.db2);
  const half = await over({ a, b }, { DB2_URL })('migrate');
  assert.deepEqual([half.code, /an import has not finished/.test(half.stderr)], [1, true], half.stderr);
  await importInto(a);
  const whole = await over({ a, b }, { DB2_URL })('migrate');
  assert.equal(whole.code, 0, whole.stderr);
  // The cell that was imported may leave the fleet.
  for (const name of ['a', 'b']) await over({ a, b })(`cells add ${name}`);
  const left = await over({ b }, { DB2_URL })('migrate');
  assert.equal(left.code, 0, left.stderr);
});

test('a drained cell is empty when nothing of it would be lost, and says what would be', async (t) => {
  const all = await Promise.all([1, 2].map(() => startDatabases({ db2: false })));
  t.after(() => Promise.all(all.map((one) => one.stop())));
  const [a, b] = all.map(({ db1 }) => db1) as [TestDatabase, TestDatabase];
  const sluice = over({ a, b });
  for (const name of ['a', 'b']) await sluice(`cells add ${name}`);
  const delivery = `'[{"kind": "event", "door": "stripe", "received_at": "2026-02-24T10:00:00Z"}]'`;
  for (const cause of [
    `public.inbox_accept(${delivery})`,
    `pgmq.send('event_inbox_dlq', ${delivery}::jsonb -> 0)`,
    `pgmq.send('intake_queue', '{}')`,
    `pgmq.send('intake_dlq', '{}')`,
  ])
    await query(b.url, `select ${cause}`);
  // Operators stand in cell a, so a key in cell b opens nothing.
  for (const { url } of [a, b])
    await query(url, `select audit.add_operator('zoe', 'viewer', sha256('key'), 'ann')`);
  const full = await sluice('cells drain b');
  assert.equal(full.code, 1);
  for (const left of [
    'claims on their way to the ledger',
    'dead letters of claims',
    'deliveries in the inbox',
    'dead letters of the inbox',
  ])
    assert(full.stdout.includes(`${left}: 1;`), full.stdout);
  assert.doesNotMatch(full.stdout, /empty|people/);
  await query(b.url, 'delete from pgmq.q_event_inbox');
  await query(b.url, 'delete from pgmq.q_intake_queue');
  for (const letters of ['event_inbox_dlq', 'intake_dlq'])
    await query(b.url, 'select pgmq.purge_queue($1)', [letters]);
  const empty = await sluice('cells drain b');
  assert.deepEqual([empty.code, empty.stdout], [0, 'Cell b is empty.\n']);
  await sluice('cells add b');

  const home = await over({ b, a })('cells drain a');
  assert.deepEqual(
    [home.code, /people with a key: 1; the operators stand in this cell/.test(home.stdout)],
    [1, true],
    home.stdout,
  );
  await sluice('operators revoke zoe --yes');
  assert.match((await sluice('cells drain a')).stdout, /Cell a is empty/);
});

test('commands about inboxes, private hosts, retention and Stripe are about all cells', async (t) => {
  const [first, second] = await Promise.all([startDatabases(), startDatabases({ db2: false })]);
  t.after(() => Promise.all([first.stop(), second.stop()]));
  const [a, b] = [first.db1, second.db1];
  const sluice = over({ a, b }, { DB2_URL: first.db2.url });
  for (const name of ['a', 'b']) await sluice(`cells add ${name}`);

  const ids: number[] = [];
  for (const { url } of [a, b]) {
    const message = `{"kind": "event", "door": "stripe", "received_at": "2026-02-24T10:00:00Z", "ids": ["evt"]}`;
    await query(url, 'select public.inbox_accept(jsonb_build_array($1::jsonb))', [message]);
    const [dead] = await query<{ id: string }>(url, `select pgmq.send('event_inbox_dlq', $1::jsonb) as id`, [
      message,
    ]);
    ids.push(Number(dead?.id));
  }
  const waiting = JSON.parse((await sluice('webhooks inbox --json')).stdout).deliveries;
  assert.deepEqual(
    waiting.map(({ cell }: { cell: string }) => cell),
    ['a', 'b'],
  );
  assert.match((await sluice('webhooks inbox list --dead')).stdout, /CELL[\s\S]* a [\s\S]* b /);
  assert.match((await sluice('webhooks list')).stderr, /2 waiting for DB2, [^;]*; 2 that DB2 refused/);
  const ended = await sluice(`webhooks inbox discard ${ids[1]} --json`);
  assert.deepEqual(
    JSON.parse(ended.stdout).results,
    [{ msg_id: ids[1], outcome: 'discarded' }],
    ended.stderr,
  );

  const hosts = async (line: string) => (await sluice(`hosts ${line}`)).stdout;
  const inEach = () =>
    Promise.all([a, b].map(({ url }) => query(url, 'select * from public.hook_allowed_hosts()')));
  assert.match(await hosts('allow shop:80'), /may have hooks now/);
  assert.deepEqual(await inEach(), Array(2).fill([{ hook_allowed_hosts: 'shop:80' }]));
  await query(b.url, `select public.allow_hook_host('till:80', 'ann')`);
  assert.equal(await hosts('list'), 'shop:80\ntill:80 (only in cell b)\n');
  assert.deepEqual(JSON.parse(await hosts('list --json')), {
    hosts: ['shop:80', 'till:80'],
    only_in: { 'till:80': ['b'] },
  });
  assert.match(await hosts('allow till:80'), /may have hooks now/);
  assert.match(await hosts('remove shop:80'), /has no hooks any more/);
  assert.equal(await hosts('list'), 'till:80\n');

  const [{ what } = {}] = await query<{ what: string }>(b.url, 'select what from public.retention_rules()');
  await query(b.url, `select public.set_retention($1, 7, 'ann')`, [what]);
  const rules = async () =>
    JSON.parse((await sluice('retention list --json')).stdout).rules.filter(
      (rule: { what: string }) => rule.what === what,
    );
  const seven = (await rules()).find((rule: { keep_days: number }) => rule.keep_days === 7);
  assert.deepEqual(seven?.in, ['cell b']);
  await sluice(`retention set ${what} 7`);
  assert.deepEqual(
    (await rules()).map((rule: { keep_days: number; in?: string[] }) => [rule.keep_days, rule.in]),
    [[7, undefined]],
  );

  await query(a.url, `select public.pool_create('packed', 1, '{"is_active": false}', 'ann')`);
  await query(a.url, `select public.pool_pack('packed', 'b', 'ann')`);
  for (const how of ['', ' --stripe'])
    assert.match((await sluice(`reconcile${how}`)).stderr, /a pool is between two cells/, how);

  // What cannot be found may be in the cell that is away.
  await b.stop('immediate');
  const unsure = await sluice(`webhooks inbox discard ${ids[1]}`);
  assert.deepEqual([unsure.code, /Cell b does not answer/.test(unsure.stderr)], [1, true], unsure.stderr);
  const part = await sluice('webhooks inbox --json');
  assert.equal(JSON.parse(part.stdout).deliveries.length, 1);
  assert.match(part.stderr, /cell b does not answer/);
});

test('an operator adds cells, places a pool, moves it and drains a cell', async (t) => {
  const [first, second] = await Promise.all([startDatabases(), startDatabases({ db2: false })]);
  t.after(() => Promise.all([first.stop(), second.stop()]));
  const SLUICE_CELLS = `a=${first.db1.url},b=${second.db1.url}`;
  const DB2_URL = first.db2.url;
  const sluice = (line: string, env = {}) =>
    runHere(line.split(' '), { SLUICE_CELLS, DB2_URL, USER: 'ann', ...env });

  const before = await sluice('cells list');
  assert.equal(before.code, 1);
  assert.match(before.stdout, /a +not joined.*\nb +not joined/);
  assert.equal((await sluice('cells add c')).code, 1);
  assert.match((await sluice('cells add a')).stdout, /Cell a is number 0/);
  assert.match((await sluice('cells add b')).stdout, /Cell b is number 1/);
  assert.match((await sluice('cells add b')).stdout, /number 1/, 'a second time it is the same');
  assert.equal(
    (await sluice('cells add a', { SLUICE_CELLS: `a=${second.db1.url},b=${first.db1.url}` })).code,
    1,
  );
  assert.equal((await sluice('cells list')).code, 0);

  const server = await startTestServer(first, { cells: readCells({ SLUICE_CELLS }) });
  t.after(() => server.stop());
  const api = { SLUICE_URL: server.url, SLUICE_ADMIN_KEY: ADMIN_KEY };
  const made = await sluice('pools create shows --slots 5 --cell b --json', api);
  assert.equal(JSON.parse(made.stdout).cell, 'b', made.stderr);
  assert.match((await sluice('pools list', api)).stdout, /shows +b +open/);
  assert.match((await sluice('status', api)).stdout, /cell a ok {3}cell b ok/);

  const open = await sluice('pools move shows --to a');
  assert.equal(open.code, 1);
  assert.match(open.stderr, /cannot be moved: it is open[\s\S]*pools close/);
  await sluice('pools close shows --yes', api);
  assert.match((await sluice('pools move shows --to a')).stdout, /lives in cell a now, closed/);
  assert.match((await sluice('pools move shows --to a')).stdout, /already/);
  assert.match((await sluice('pools move nothing --to a')).stderr, /unknown pool nothing/);
  assert.equal((await sluice('pools move shows')).code, 2);
  assert.equal((await sluice('pools move shows --to c')).code, 1);

  await furnishPool(second.db1.url, 'resting');
  await query(second.db1.url, `select public.pool_create('selling', 1, '{}', 'test')`);
  const drained = await sluice('cells drain b');
  assert.equal(drained.code, 1);
  assert.match(drained.stdout, /resting → a\n/);
  assert.match(drained.stdout, /selling stays: .*it is open/);
  assert.match((await sluice('pools create fresh --slots 1 --json', api)).stdout, /"cell":"a"/);
  const refused = await sluice('pools create named --slots 1 --cell b', api);
  assert.match(refused.stderr, /Cell b takes no new pools: it is draining/);
  await query(second.db1.url, `select public.pool_change('selling', '{"is_active": false}', 0, 'test')`);
  assert.match((await sluice('cells drain b')).stdout, /Cell b is empty/);
  assert.match((await sluice('pools move shows --to b')).stderr, /cell b is draining/);

  for (const { db1 } of [first, second]) await query(db1.url, 'select public.seal_audit()');
  const heads = JSON.parse((await sluice('audit heads --json')).stdout);
  assert.deepEqual(Object.keys(heads), ['cell a', 'cell b', 'db2']);
  assert.equal((await sluice('audit check')).code, 0);
  await query(
    second.db1.url,
    `set session_replication_role = replica; update audit.audit_logs set actor = 'eve' where id = (select min(log_id) from audit.seals)`,
  );
  const damaged = await sluice('audit check');
  assert.deepEqual(
    [damaged.code, /^cell b: row \d+: changed$/m.test(damaged.stdout)],
    [1, true],
    damaged.stdout,
  );

  // Tickets of no ledger: the pool was furnished by hand.
  const compared = JSON.parse((await sluice('reconcile --json')).stdout).differences;
  assert.deepEqual(
    new Set(compared.map(({ kind }: { kind: string }) => kind)),
    new Set(['claim_without_ticket']),
  );
  const doctor = await sluice('doctor --json', api);
  const checks: { check: string; status: string }[] = JSON.parse(doctor.stdout).checks;
  const statusOf = (name: string) => checks.find(({ check }) => check === name)?.status;
  assert.deepEqual(['cell a', 'cell b', 'places of pools'].map(statusOf), ['ok', 'warn', 'ok']);
  assert.match((await sluice('export /tmp/never')).stderr, /SLUICE_CELLS names several/);

  await second.db1.stop('immediate');
  const away = await sluice('cells list --json');
  assert.deepEqual(
    JSON.parse(away.stdout).items.map(({ state }: { state: string }) => state),
    ['joined', 'away'],
  );
  assert.match((await sluice('cells add a')).stderr, /cell b does not answer/);
});

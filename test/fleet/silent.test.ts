// A cell that does not answer what it was asked: the others are heard, and every answer says what it lacks.

import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { openServerCell } from '../../src/fleet/cells.ts';
import { type Answered, Fleet } from '../../src/fleet/fleet.ts';
import { createLog } from '../../src/log.ts';
import { startProxy } from '../bridge/proxy.ts';
import { openEvents } from '../console/support.ts';
import { ADMIN_KEY, ask, assertRefusal, bearer, startTestServer } from '../server/support.ts';
import { query, startFleet, type TestFleet } from './support.ts';

const OPERATOR = bearer(ADMIN_KEY);
/** Over a page of an export together, and not alone. */
const CLAIMS_IN_EACH = 600;
const ROWS_ON_A_PAGE = 1_000;

/** A server, and the proxy by which it reaches cell b. */
async function startDoor(t: test.TestContext, fleet: TestFleet) {
  const proxy = await startProxy(fleet.b.url);
  const [a] = fleet.cells;
  assert(a !== undefined);
  const cells = [a, { name: 'b', url: proxy.url }];
  const server = await startTestServer({ db1: fleet.a, db2: fleet.db2 }, { cells });
  t.after(() => server.stop().then(() => proxy.close()));
  return { url: server.url, proxy };
}

test('what waits for a cell waits no longer when the cell is found away', async (t) => {
  const { cells, b } = await startFleet(t, { withLedger: false });
  const opened = cells.map((cell) => openServerCell(cell, false, undefined, createLog()));
  const fleet = new Fleet(opened, createLog());
  await fleet.start();
  t.after(() => fleet.stop().then(() => Promise.all(opened.map((cell) => cell.end()))));
  let answered: Answered<unknown, string> | undefined;
  // The connection of this question is not the one that is watched: nothing tells it that its server has gone.
  const silence = new Promise<string>(() => undefined);
  const asking = fleet
    .all(({ name }) => (name === 'b' ? silence : Promise.resolve('an answer')))
    .then((all) => {
      answered = all;
    });
  await b.stop('immediate');
  while (!fleet.away.includes('b')) await delay(50);
  await turn();
  assert.deepEqual(answered?.away, ['b']);
  assert.deepEqual(
    answered?.answers.map(([, answer]) => answer),
    ['an answer'],
  );
  await asking;
});

test('a cell that gives no sample hides no other, and its outage alone is kept', async (t) => {
  const fleet = await startFleet(t);
  const { url } = await startDoor(t, fleet);
  const holder = new pg.Client({ connectionString: fleet.b.url });
  holder.on('error', () => undefined);
  await holder.connect();
  const events = await openEvents(`${url}/admin/live`, OPERATOR);
  t.after(() => events.leave());
  const isWhole = ({ db1, cells = [] }: Sample): boolean => db1.ok && cells.every(({ ok }) => ok);
  while (!isWhole((await events.next('sample')).data));
  // It is watched by a function that needs no sample, so the fleet does not find it away.
  await holder.query('begin; lock table audit.samples in access exclusive mode');
  let partly: Sample;
  do partly = (await events.next('sample')).data;
  while (partly.db1.ok && partly.cells?.every(({ name, ok }) => name !== 'b' || ok));
  assert.equal(partly.db1.ok, true);
  assert.deepEqual(partly.cells, [
    { name: 'a', ok: true },
    { name: 'b', ok: false },
  ]);
  const outages = () =>
    query(fleet.db2.url, `select subject from audit.marks where kind = 'outage' order by subject`);
  while ((await outages()).length === 0) await delay(100);
  assert.deepEqual(await outages(), [{ subject: 'cell b' }]);
  await holder.end();
  while (!isWhole((await events.next('sample')).data));
});

test('an answer that lacks a cell says so, also while the cell is not known to be away', async (t) => {
  const fleet = await startFleet(t);
  const { url, proxy } = await startDoor(t, fleet);
  const create = (cell: string) =>
    ask(`${url}/admin/pools`, {
      ...{ method: 'POST', headers: OPERATOR, body: { pool_id: `in_${cell}`, cell, slots: 5 } },
    });
  for (const cell of ['a', 'b']) assert.equal((await create(cell)).status, 201);
  for (const [text, path, more] of [
    ['pool_list', '/admin/pools', { items: 1 }],
    ['claim_search', '/admin/claims', { items: 0 }],
    ['pool_total', '/admin/totals/pools', {}],
    ['list_dead_letters', '/admin/dlq', {}],
  ] as const) {
    const cut = proxy.cutReplyTo(text);
    const { status, json, headers } = await ask(`${url}${path}`, { headers: OPERATOR });
    await cut;
    assert.deepEqual([status, headers['x-sluice-cells-away']], [200, 'b'], path);
    if ('items' in more) assert.equal(json.items.length, more.items, path);
    const whole = await ask(`${url}${path}`, { headers: OPERATOR });
    assert.deepEqual([whole.status, whole.headers['x-sluice-cells-away']], [200, undefined], path);
  }
  // What asks no cell lacks none.
  await fleet.b.stop('immediate');
  while ((await ask(`${url}/readyz`)).json.cells.b !== 'away') await delay(50);
  const tickets = await ask(`${url}/admin/tickets`, { headers: OPERATOR });
  assert.deepEqual([tickets.status, tickets.headers['x-sluice-cells-away']], [200, undefined]);
});

test('a file that lacks a cell breaks off, and is not begun while one is missing', async (t) => {
  const fleet = await startFleet(t);
  const { url, proxy } = await startDoor(t, fleet);
  for (const [{ url: cell }, name] of [
    [fleet.a, 'a'],
    [fleet.b, 'b'],
  ] as const) {
    await query(cell, `select public.pool_create($1, $2, '{}', 'test')`, [`in_${name}`, CLAIMS_IN_EACH]);
    await query(
      cell,
      `select public.claim_resource_and_queue($1, 'user ' || n, 'request ' || n) from generate_series(1, $2::int) n`,
      [`in_${name}`, CLAIMS_IN_EACH],
    );
  }
  const path = `${url}/admin/export/claims`;
  const whole = await ask(path, { headers: OPERATOR });
  const ids = whole.text
    .split('\r\n')
    .slice(1, -1)
    .map((line) => line.slice(0, line.indexOf(',')));
  assert.equal(ids.length, 2 * CLAIMS_IN_EACH);
  // The second page begins behind this one.
  const cut = proxy.cutReplyTo(ids[ROWS_ON_A_PAGE - 1] ?? '');
  await assert.rejects(ask(path, { headers: OPERATOR }), /aborted|hang up|ECONNRESET/);
  await cut;
  const lost = proxy.cutReplyTo('pool_list');
  assertRefusal(await ask(`${url}/admin/export/pools`, { headers: OPERATOR }), 503, 'cell_unavailable');
  await lost;
});

interface Sample {
  readonly db1: { readonly ok: boolean };
  readonly cells?: readonly { readonly name: string; readonly ok: boolean }[];
}

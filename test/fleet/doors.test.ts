import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { CellAddress } from '../../src/fleet/addresses.ts';
import { movePool } from '../../src/fleet/move.ts';
import { ADMIN_KEY, ask, assertRefusal, bearer, claim, startTestServer } from '../server/support.ts';
import { startDatabases } from '../support/databases.ts';
import { caller, furnishPool, query, startFleet, type TestFleet } from './support.ts';

const OPERATOR = bearer(ADMIN_KEY);

async function startDoor(t: test.TestContext, fleet: TestFleet, cells = fleet.cells) {
  const server = await startTestServer({ db1: fleet.a, db2: fleet.db2 }, { cells });
  t.after(() => server.stop());
  return server.url;
}

const create = (url: string, body: object) =>
  ask(`${url}/admin/pools`, { method: 'POST', headers: OPERATOR, body: { slots: 20, ...body } });

async function eventually(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await delay(50);
}

test('each door sends a pool to its cell, and an id leads back to it', async (t) => {
  const fleet = await startFleet(t);
  const [one, two] = [await startDoor(t, fleet), await startDoor(t, fleet)];
  assert.equal((await create(one, { pool_id: 'in_a', cell: 'a' })).json.cell, 'a');
  assert.equal((await create(one, { pool_id: 'in_b', cell: 'b' })).json.cell, 'b');
  assert.equal((await create(one, { pool_id: 'in_c', cell: 'c' })).status, 422);
  assertRefusal(await create(two, { pool_id: 'in_b', cell: 'a' }), 409, 'pool_elsewhere');
  assertRefusal(await create(two, { pool_id: 'in_b' }), 409, 'pool_exists');

  for (const [pool, cell, other] of [
    ['in_a', fleet.a, fleet.b],
    ['in_b', fleet.b, fleet.a],
  ] as const) {
    // The other door has not heard of the pool yet: a miss is looked up.
    const made = await claim(two, pool, {
      user_id: 'ann',
      request_id: 'r',
      secret: 'a secret of sixteen'.replaceAll(' ', '_'),
    });
    assert.equal(made.status, 201, made.text);
    const again = await claim(one, pool, {
      user_id: 'ann',
      request_id: 'r',
      secret: 'a secret of sixteen'.replaceAll(' ', '_'),
    });
    assert.deepEqual([again.status, again.json.claim_id], [200, made.json.claim_id]);
    const id = made.json.claim_id;
    const count = (url: string) =>
      query(url, 'select count(*)::int as n from public.claims where claim_id = $1', [id]);
    assert.deepEqual([await count(cell.url), await count(other.url)], [[{ n: 1 }], [{ n: 0 }]]);
    const [digits] = await query(cell.url, 'select intake.pool_digits($1) as digits', [pool]);
    assert.equal(id.slice(15, 18), digits?.digits);
    assert.equal((await ask(`${one}/v1/pools/${pool}`)).json.capacity, 20);
    const details = { method: 'POST', headers: OPERATOR, body: { title: pool } };
    const path = `/admin/pools/${pool}/details`;
    assert.equal((await ask(`${two}${path}`, details)).json.title, pool);
    assert.equal((await ask(`${one}${path}`, { headers: OPERATOR })).json.title, pool);
    const headers = { 'x-claim-secret': 'a_secret_of_sixteen' };
    assert.equal((await ask(`${one}/v1/claims/${id.toUpperCase()}`, { headers })).json.pool_id, pool);
    assert.equal(
      (await ask(`${two}/admin/claims/${id}`, { headers: OPERATOR })).json.claim.cell,
      pool.slice(-1),
    );
    assert.equal(
      (await ask(`${two}/v1/claims/${id}`, { method: 'DELETE', headers })).json.status,
      'released',
    );
  }
  assertRefusal(await claim(one, 'nowhere', { user_id: 'ann' }), 404, 'unknown_pool');
  assertRefusal(await ask(`${one}/v1/pools/nowhere`), 404, 'unknown_pool');
  assertRefusal(await ask(`${one}/v1/claims/00000000-0000-7000-8000-000000000000`), 404, 'unknown_claim');
  const found = await ask(`${one}/admin/claims?user_id=ann`, { headers: OPERATOR });
  assert.deepEqual(found.json.items.map(({ cell }: { cell: string }) => cell).sort(), ['a', 'b']);
  const listed = await ask(`${one}/admin/pools?limit=1`, { headers: OPERATOR });
  const next = await ask(`${one}/admin/pools?limit=1&after=${listed.json.next}`, { headers: OPERATOR });
  assert.deepEqual(
    [...listed.json.items, ...next.json.items].map(({ pool_id }) => pool_id),
    ['in_a', 'in_b'],
  );
});

test('a cell that is down costs its own pools only, and nothing is lost when it is back', async (t) => {
  const fleet = await startFleet(t);
  const url = await startDoor(t, fleet);
  for (const cell of ['a', 'b']) await create(url, { pool_id: `in_${cell}`, cell });
  const kept = await claim(url, 'in_b', { user_id: 'ann', request_id: 'kept' });
  await eventually(async () => (await query(fleet.a.url, 'select 1 from intake.pool_places')).length === 1);
  await fleet.b.stop('immediate');

  const own: number[] = [];
  for (let n = 0; n < 10; n++) {
    own.push((await claim(url, 'in_b', { user_id: `u${n}`, request_id: `r${n}` })).status);
    assert.equal((await claim(url, 'in_a', { user_id: `u${n}`, request_id: `r${n}` })).status, 201);
  }
  assert.deepEqual(new Set(own), new Set([503]));
  // What cannot be found may be in the cell that is away.
  for (const path of ['/v1/pools/nowhere', `/v1/claims/${kept.json.claim_id}`, '/v1/pools/in_b'])
    assert.equal((await ask(`${url}${path}`)).status, 503, path);
  assert.equal((await claim(url, 'nowhere', { user_id: 'x' })).status, 503);
  const ready = await ask(`${url}/readyz`);
  assert.deepEqual([ready.status, ready.json.cells], [200, { a: 'ready', b: 'away' }]);
  assert.equal((await ask(`${url}/admin/pools`, { headers: OPERATOR })).headers['x-sluice-cells-away'], 'b');
  // Until the door has found the cell away, it says that a database is.
  await eventually(async () => {
    const { status, json } = await create(url, { pool_id: 'in_b' });
    assert.equal(status, 503);
    return json.error.code === 'cell_unavailable';
  });
  assertRefusal(await create(url, { pool_id: 'fresh', cell: 'b' }), 503, 'cell_unavailable');
  const fresh = await create(url, { pool_id: 'fresh' });
  assert.deepEqual([fresh.status, fresh.json.cell], [201, 'a'], fresh.text);

  // A door that starts now knows from the copy in cell a where the pool lives.
  const late = await startDoor(t, fleet);
  assert.equal((await claim(late, 'in_a', { user_id: 'late', request_id: 'late' })).status, 201);
  assertRefusal(await claim(late, 'in_b', { user_id: 'late' }), 503, 'cell_unavailable');

  const back = await fleet.b.restart();
  const cells = [fleet.cells[0], { name: 'b', url: back.url }].filter((cell) => cell !== undefined);
  const again = await startDoor(t, fleet, cells);
  const same = await claim(again, 'in_b', { user_id: 'ann', request_id: 'kept' });
  assert.deepEqual([same.status, same.json.claim_id], [200, kept.json.claim_id]);
  if (back.url === fleet.b.url)
    await eventually(
      async () => (await claim(url, 'in_b', { user_id: 'u0', request_id: 'r0' })).status < 300,
    );
});

test('a lost cell that was taken out of the list costs its own pools and claims, which are there, but do not answer', async (t) => {
  const fleet = await startFleet(t);
  const third = await startDatabases({ db2: false });
  t.after(() => third.stop());
  await query(third.db1.url, `select public.cell_join('c', 2, 'test')`);
  const c = { name: 'c', url: third.db1.url };
  const [a] = fleet.cells as [CellAddress];
  const url = await startDoor(t, fleet, [...fleet.cells, c]);
  for (const cell of ['a', 'b']) await create(url, { pool_id: `in_${cell}`, cell });
  const lost = await claim(url, 'in_b', { user_id: 'ann' });
  const { claim_id: kept } = (await claim(url, 'in_a', { user_id: 'ann' })).json;
  await fleet.b.stop('immediate');

  for (const [left, cells] of [
    ['two', [a, c]],
    ['one', [a]],
    ['DB1_URL', undefined],
  ] as const) {
    const server = await startTestServer(
      { db1: fleet.a, db2: fleet.db2 },
      cells ? { cells: [...cells] } : {},
    );
    t.after(() => server.stop());
    const status = async (path: string, how = {}) =>
      (await ask(`${server.url}${path}`, { headers: OPERATOR, ...how })).status;
    assert.equal((await claim(server.url, 'in_b', { user_id: 'ann' })).status, 503, left);
    const post = { method: 'POST', body: { is_active: true } };
    const seen = [
      await status('/v1/pools/in_b'),
      await status('/admin/pools/in_b', post),
      await status(`/v1/claims/${lost.json.claim_id}`),
      await status(`/v1/claims/${lost.json.claim_id}`, { method: 'DELETE' }),
      await status(`/v1/claims/${kept}`),
      await status('/v1/claims/00000000-0000-7000-8000-000000000000'),
      await status('/v1/pools/nowhere'),
      (await claim(server.url, 'nowhere', { user_id: 'ann' })).status,
      (await claim(server.url, 'in_a', { user_id: `of ${left}` })).status,
    ];
    assert.deepEqual(seen, [503, 503, 503, 503, 200, 404, 404, 404, 201], left);
  }
});

test('a pool that has moved is opened and described at once, by a door that knew it where it was', async (t) => {
  const fleet = await startFleet(t);
  for (const pool of ['opened', 'described']) await furnishPool(fleet.a.url, pool);
  const url = await startDoor(t, fleet);
  const [source, target] = [caller(t, fleet.a.url), caller(t, fleet.b.url)];
  for (const poolId of ['opened', 'described'])
    await movePool({ poolId, source, target, to: 'b', actor: 'test', reason: null });
  const post = (path: string, body: object) =>
    ask(`${url}/admin/pools/${path}`, { method: 'POST', headers: OPERATOR, body });
  const opened = await post('opened', { is_active: true });
  assert.deepEqual([opened.status, opened.json.cell], [200, 'b'], opened.text);
  const described = await post('described/details', { title: 'night' });
  assert.deepEqual([described.status, described.json.title], [200, 'night'], described.text);
  assertRefusal(await post('nowhere', { is_active: true }), 404, 'unknown_pool');
});

test('a pool whose cell is lost while it is made is not made a second time elsewhere', async (t) => {
  const fleet = await startFleet(t);
  const url = await startDoor(t, fleet);
  // The other cell knows of it before it is answered.
  assert.equal((await create(url, { pool_id: 'made', cell: 'b' })).status, 201);
  assert.equal((await query(fleet.a.url, `select from intake.pool_places where cell = 'b'`)).length, 1);
  const holder = new pg.Client({ connectionString: fleet.b.url });
  holder.on('error', () => undefined);
  await holder.connect();
  await holder.query('begin; lock table public.engine_config in exclusive mode');
  const lost = create(url, { pool_id: 'unknown', cell: 'b' });
  await eventually(async () => {
    const { rowCount } = await holder.query(`select from pg_locks where not granted`);
    return rowCount !== 0;
  });
  await fleet.b.stop('immediate');
  assert.equal((await lost).status, 503);
  assert.equal((await create(url, { pool_id: 'unknown' })).status, 503);
  assert.equal((await create(url, { pool_id: 'other' })).json.cell, 'a');

  // It was not made: where the copy says so it can be, once the cell is back.
  const back = await fleet.b.restart();
  const cells = [fleet.cells[0], { name: 'b', url: back.url }].filter((cell) => cell !== undefined);
  const again = await startDoor(t, fleet, cells);
  assert.equal((await create(again, { pool_id: 'unknown' })).json.cell, 'b');
});

test('a door follows a pool that moves, and finds its claims again', async (t) => {
  const fleet = await startFleet(t);
  await furnishPool(fleet.a.url, 'night');
  const url = await startDoor(t, fleet);
  const [{ claim_id } = {}] = await query(
    fleet.a.url,
    `select claim_id from public.claims where user_id = 'user 3'`,
  );
  assert.equal((await ask(`${url}/v1/pools/night`)).json.status, 'closed');
  const move = {
    poolId: 'night',
    source: caller(t, fleet.a.url),
    target: caller(t, fleet.b.url),
    to: 'b',
    actor: 'test',
    reason: null,
  };
  const stopAt = (step: string) => {
    if (step === 'unpack') throw new Error('killed');
  };
  await assert.rejects(movePool({ ...move, onStep: stopAt }));
  assertRefusal(await claim(url, 'night', { user_id: 'x' }), 503, 'pool_moving');
  const lost = `${url}/v1/claims/${claim_id}`;
  assertRefusal(await ask(lost, { headers: OPERATOR }), 503, 'pool_moving');
  await movePool(move);
  assertRefusal(await claim(url, 'night', { user_id: 'x' }), 409, 'closed');
  assert.equal((await ask(lost, { headers: OPERATOR })).status, 200);
  await ask(`${url}/admin/pools/night`, { method: 'POST', headers: OPERATOR, body: { is_active: true } });
  assert.equal((await claim(url, 'night', { user_id: 'new' })).status, 201);
  assert.equal((await query(fleet.b.url, `select from public.claims where user_id = 'new'`)).length, 1);
  // Letters keep their ids on the way, and are replayed where they are now.
  const letters = await ask(`${url}/admin/dlq`, { headers: OPERATOR });
  assert.deepEqual(
    letters.json.messages.map(({ cell }: { cell: string }) => cell),
    ['b', 'b'],
  );
  const [{ msg_id }] = letters.json.messages;
  const replayed = await ask(`${url}/admin/dlq/replay`, {
    method: 'POST',
    headers: OPERATOR,
    body: { msg_ids: [msg_id, 999] },
  });
  assert.deepEqual(replayed.json.results.map(({ outcome }: { outcome: string }) => outcome).sort(), [
    'not_found',
    'replayed',
  ]);
});

test('a database that is not the cell it is said to be is not used', async (t) => {
  const fleet = await startFleet(t);
  await query(fleet.b.url, 'delete from intake.cells');
  const url = await startDoor(t, fleet);
  assert.deepEqual((await ask(`${url}/readyz`)).json.cells, { a: 'ready', b: 'away' });
  assert.equal((await create(url, { pool_id: 'x', cell: 'b' })).status, 503);
});

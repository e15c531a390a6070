// Erasing and exporting as people ask for it: on the command line, at the admin API, over several cells.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { userDatabases } from '#core/users/databases.ts';
import { eraseUser } from '#core/users/erase.ts';
import { readUser } from '#core/users/export.ts';
import { movePool } from '../../src/fleet/move.ts';
import { runHere } from '../cli/support.ts';
import { caller, query, startFleet } from '../fleet/support.ts';
import { ADMIN_KEY, ask, bearer, openClient, putOnSale, startTestServer } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { carry, claimFor, type Places } from './personal_history.ts';
import { rowsWith } from './personal_tables.ts';

describe('an erasure that is asked for', () => {
  let databases: TestDatabases;
  let places: Places;
  let env: Record<string, string>;
  before(async () => {
    databases = await startDatabases();
    const [db1, db2] = [await openClient(databases.db1.url), await openClient(databases.db2.url)];
    places = { db1, db2, db1Url: databases.db1.url, db2Url: databases.db2.url };
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url };
    await putOnSale(db1, 'gig', 20);
  });
  after(async () => {
    await places?.db1.end();
    await places?.db2.end();
    await databases?.stop();
  });

  it('changes nothing for what cannot be a user id', async () => {
    for (const id of ['', 'x'.repeat(201), `erased:${'0'.repeat(32)}`]) {
      const { code, stderr } = await runHere(['users', 'erase', id, '--yes'], env);
      assert.notEqual(code, 0, id);
      assert.match(stderr, /hint: /, id);
    }
    const { rows } = await places.db2.query('select from audit.erasures');
    assert.equal(rows.length, 0);
  });

  it('is refused without --yes where it cannot ask', async () => {
    const { code, stderr } = await runHere(['users', 'erase', 'ann'], env);
    assert.equal(code, 2);
    assert.match(stderr, /Add --yes/);
  });

  it('and an export are asked for at the admin API by admins, page by page and part by part', async (t) => {
    const { db1, db2 } = places;
    const id = 'ada/api?&@example.com';
    for (let n = 0; n < 3; n++) await claimFor(db1, 'gig', id);
    await carry(places);
    const server = await startTestServer(databases);
    t.after(() => server.stop());
    const post = (path: string, body: object) =>
      ask(`${server.url}/admin/users${path}`, { method: 'POST', headers: bearer(ADMIN_KEY), body });
    const exported = await post('/export', { user_id: id, reason: `${id} asked` });
    assert.equal(exported.status, 200, exported.text);
    const { found, next } = exported.json;
    assert.equal(next, null);
    const rowsIn = (place: string) => found.find((one: { place: string }) => one.place === place)?.rows ?? [];
    assert.equal(rowsIn('public.claims').length, 3);
    assert.equal(rowsIn('public.confirmed_tickets').length, 3);
    assert.equal(rowsIn('public.claims')[0].user_id, id);
    assert(!('secret_hash' in rowsIn('public.claims')[0]));
    for (const client of [db1, db2]) {
      const { rows } = await client.query(
        `select actor, reason from audit.audit_logs where action = 'user_export' order by id desc limit 1`,
      );
      assert.equal(rows[0].actor, 'admin');
      assert.match(rows[0].reason, /^user:[0-9a-f]{32} asked$/);
    }
    const unknown = await post('/export', { user_id: 'unknown@example.com' });
    assert.deepEqual(unknown.json, { found: [], next: null });
    assert.deepEqual(
      await rowsWith(db1, 'unknown@example.com'),
      {},
      'an export of an unknown user stores nothing about them',
    );
    assert.equal((await post('/export', { user_id: id, after: '{}' })).status, 422);
    assert.equal((await post('/erase', { user_id: id, namespace: 'all' })).status, 422);
    const erased = await post('/erase', { user_id: id });
    assert.equal(erased.status, 200, erased.text);
    assert.equal(erased.json.status, 'erased');
    assert.equal(erased.json.changed.db1['public.claims'], 3);
    for (const client of [db1, db2]) assert.deepEqual(await rowsWith(client, id), {});
    assert.equal((await post('/erase', { user_id: id })).json.status, 'nothing');
  });

  it('prints all that is known, as JSON', async () => {
    const { db1 } = places;
    await claimFor(db1, 'gig', 'exa.export@example.com', { verified: false });
    await carry(places);
    const { code, stdout, stderr } = await runHere(['users', 'export', 'exa.export@example.com'], env);
    assert.equal(code, 0, stderr);
    const { user_id, found } = JSON.parse(stdout);
    assert.equal(user_id, 'exa.export@example.com');
    const at = found.map(
      ({ database, place }: { database: string; place: string }) => `${database} ${place}`,
    );
    // The log has one row about the user: that of this export.
    const ofDb1 = ['db1 public.claims', 'db1 public.inventory_slots', 'db1 audit.audit_logs'];
    assert.deepEqual(at, [...ofDb1, 'db2 public.confirmed_tickets', 'db2 audit.audit_logs']);
    const verified = await runHere(['users', 'export', 'exa.export@example.com', '--verified'], env);
    const ofVerified: { place: string }[] = JSON.parse(verified.stdout).found;
    assert(
      ofVerified.every(({ place }) => place === 'audit.audit_logs'),
      verified.stdout,
    );
  });
});

describe('an export over several cells', () => {
  it('holds what is on its way between two of them, and ends unfinished where a pool moved meanwhile', async (t) => {
    const { a, b, db2, cells } = await startFleet(t);
    const [id, other] = ['moving.mo@example.com', 'other.olu@example.com'];
    const client = await openClient(a.url);
    await putOnSale(client, 'north', 6);
    for (const verified of [true, false]) await claimFor(client, 'north', id, { verified });
    await claimFor(client, 'north', other);
    await carry({ db1Url: a.url, db2Url: db2.url });
    await client.query(`update public.engine_config set is_active = false where pool_id = 'north'`);
    await client.end();
    const env = {
      SLUICE_CELLS: cells.map(({ name, url }) => `${name}=${url}`).join(','),
      DB2_URL: db2.url,
    };
    const claimsIn = async (place: string, ...more: string[]): Promise<Record<string, unknown>[]> => {
      const { code, stdout, stderr } = await runHere(['users', 'export', id, ...more], env);
      assert.equal(code, 0, stderr);
      assert(!stdout.includes(other), 'it holds nothing of other users');
      const { found } = JSON.parse(stdout) as { found: { place: string; rows: Record<string, unknown>[] }[] };
      return found.filter((one) => one.place === place).flatMap(({ rows }) => rows);
    };
    assert.equal((await claimsIn('public.claims')).length, 2);
    const move = {
      poolId: 'north',
      source: caller(t, a.url),
      target: caller(t, b.url),
      to: 'b',
      actor: 'ann',
      reason: null,
    };
    const killed = { ...move, onStep: (step: string) => assert.notEqual(step, 'carry') };
    await assert.rejects(movePool(killed));
    assert.deepEqual(await claimsIn('public.claims'), []);
    const packed = await claimsIn('intake.parcels');
    assert.deepEqual(
      packed.map(({ user_id, parcel }) => [user_id, parcel]),
      [
        [id, 'claims'],
        [id, 'claims'],
      ],
    );
    assert(packed.every((row) => !('secret_hash' in row)));
    const verified = await claimsIn('intake.parcels', '--verified');
    assert.deepEqual(
      verified.map((row) => row.verified),
      [true],
    );
    // The mover goes on while an export has read the first cell and not the second.
    const ports = userDatabases(
      caller(t, db2.url),
      cells.map(({ name, url }) => ({ name, call: caller(t, url) })),
    );
    let isMoved = false;
    const read = async () => {
      for await (const { database } of readUser(ports, {
        userId: id,
        namespace: 'both',
        actor: 'ann',
        reason: null,
      }))
        if (database === 'b' && !isMoved) {
          isMoved = true;
          await movePool(move);
        }
    };
    await assert.rejects(read(), /being moved/);
    assert.equal((await claimsIn('public.claims')).length, 2, 'asked again, all is there');
  });
});

describe('an erasure over several cells', () => {
  it('goes through all of them under one name, and not while one is away or a pool is between two', async (t) => {
    const { a, b, db2, cells } = await startFleet(t);
    const id = 'cell.cleo@example.com';
    for (const { url, name } of [
      { url: a.url, name: 'north' },
      { url: b.url, name: 'south' },
    ]) {
      const client = await openClient(url);
      await putOnSale(client, name, 3);
      await claimFor(client, name, id);
      await carry({ db1Url: url, db2Url: db2.url });
      await claimFor(client, name, id);
      await client.end();
    }
    const env = {
      SLUICE_CELLS: cells.map(({ name, url }) => `${name}=${url}`).join(','),
      DB2_URL: db2.url,
    };
    const away = { ...env, SLUICE_CELLS: `${env.SLUICE_CELLS},c=postgres://x:y@127.0.0.1:1/z` };
    const refused = await runHere(['users', 'erase', id, '--yes'], away);
    assert.equal(refused.code, 1);
    assert.deepEqual(await query(db2.url, 'select from audit.erasures'), [], 'nothing was begun');
    await query(
      b.url,
      `insert into intake.parcels (pool_id, version, seq, kind, body) values ('south', 9, 1, 'claims', '[]')`,
    );
    const moving = await eraseUser(
      {
        ...userDatabases(
          caller(t, db2.url),
          cells.map(({ name, url }) => ({ name, call: caller(t, url) })),
        ),
        now: Date.now,
        pause: (ms) => sleep(ms),
      },
      { userId: id, namespace: 'both', actor: 'ann', reason: null },
      500,
    );
    assert.equal(moving.status, 'working');
    assert.match(moving.waits_for ?? '', /a pool is on its way/);
    await query(a.url, `update public.engine_config set is_active = false`);
    await query(b.url, 'delete from intake.parcels');
    await assert.rejects(query(a.url, `select public.pool_pack('north', 'b', 'ann')`), {
      code: 'SL022',
      message: /being erased/,
    });
    const erased = await runHere(['users', 'erase', id, '--yes', '--json'], env);
    assert.equal(erased.code, 0, erased.stderr);
    const { replacement, changed } = JSON.parse(erased.stdout);
    assert.deepEqual(Object.keys(changed).toSorted(), ['a', 'b', 'db2']);
    for (const url of [a.url, b.url])
      assert.deepEqual(await query(url, 'select distinct user_id from public.claims'), [
        { user_id: replacement },
      ]);
    assert.deepEqual(await query(db2.url, 'select distinct user_id from public.confirmed_tickets'), [
      { user_id: replacement },
    ]);
  });
});

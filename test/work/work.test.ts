import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type pg from 'pg';
import { openClient, putOnSale } from '../server/support.ts';
import { startDatabases, type TestDatabases } from '../support/databases.ts';
import { claimMany, sluice, standing } from './support.ts';

describe('sluice work', () => {
  let databases: TestDatabases;
  let db1: pg.Client;
  let db2: pg.Client;
  let env: Record<string, string>;

  before(async () => {
    databases = await startDatabases();
    db1 = await openClient(databases.db1.url);
    db2 = await openClient(databases.db2.url);
    env = { DB1_URL: databases.db1.url, DB2_URL: databases.db2.url };
  });
  after(async () => {
    await Promise.all([db1?.end(), db2?.end()]);
    await databases?.stop();
  });

  it('drains 2,000 claims with two workers, each into one ticket, and says so', async () => {
    await putOnSale(db1, 'many', 2000);
    await claimMany(db1, 'many', 2000);
    const first = await sluice(['work', '--once', '--json', '--workers', '2', '--batch', '100'], env).ended;
    assert.equal(first.code, 0, first.stderr);
    assert.deepEqual(JSON.parse(first.stdout), { status: 'drained', total: 2000, committed: 2000 });
    assert.deepEqual(await standing(db1, db2, 'many'), {
      committed: 2000,
      consumed: 2000,
      queued: 0,
      dead: 0,
      tickets: 2000,
    });
    const second = await sluice(['work', '--once'], env).ended;
    assert.equal(second.stdout, 'drained: 0 deliveries\n');
  });

  it('ends with 1 and keeps the messages when the ledger is down', async () => {
    await putOnSale(db1, 'waiting', 3);
    await claimMany(db1, 'waiting', 3);
    const down = await sluice(['work', '--once', '--json'], { ...env, DB2_URL: 'postgres://127.0.0.1:1/x' })
      .ended;
    assert.equal(down.code, 1, down.stdout);
    assert.equal(JSON.parse(down.stdout).status, 'paused');
    const { queued, dead } = await standing(db1, db2, 'waiting');
    assert.deepEqual({ queued, dead }, { queued: 3, dead: 0 });
    await db1.query('delete from pgmq.q_intake_queue');
  });

  it('does not start with a page of metrics that no client could read', async () => {
    const { code, stderr } = await sluice(['work'], { ...env, SLUICE_METRICS_PORT: '1' }).ended;
    assert.equal(code, 1);
    assert.match(stderr, /no client could read \/metrics.*\n.*SLUICE_METRICS_TOKEN.*SLUICE_METRICS_OPEN=1/);
  });

  it('says which port of its metrics is taken', async (t) => {
    const other = createNetServer();
    await new Promise<void>((resolve) => other.listen(0, resolve));
    t.after(() => other.close());
    const { port } = other.address() as AddressInfo;
    const settings = { SLUICE_METRICS_PORT: String(port), SLUICE_METRICS_OPEN: '1' };
    const { code, stderr } = await sluice(['work'], { ...env, ...settings }).ended;
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^error: Port ${port} is taken\nhint: .*SLUICE_METRICS_PORT.*\n$`));
  });

  it('hands back on SIGTERM what it holds, without counting the attempt', async () => {
    const { server, asked } = await silentWebhook();
    const { port } = server.address() as AddressInfo;
    const host = `127.0.0.1:${port}`;
    await db1.query(`select public.allow_hook_host($1, 'test')`, [host]);
    await putOnSale(db1, 'held', 5, { validation_webhook_url: `http://${host}/validate` });
    await claimMany(db1, 'held', 5);
    const running = sluice(['work'], env);
    await asked;
    running.child.kill('SIGTERM');
    const { code, stderr } = await running.ended;
    server.closeAllConnections();
    server.close();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /"message":"workers stopped"/);
    const { rows } = await db1.query(
      `select intake.count_in(q.message, 'tried') as attempts, q.vt < now() + interval '5 seconds' as is_back
       from pgmq.q_intake_queue q where q.message ->> 'pool_id' = 'held'`,
    );
    assert.deepEqual(rows, Array(5).fill({ attempts: 0, is_back: true }));
    await db1.query('delete from pgmq.q_intake_queue');
  });

  it('leaves at once on a second signal, and the leases keep what it held for as long as --lease says', async () => {
    // A ledger that takes connections and says nothing.
    const mute = createNetServer();
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const { port } = mute.address() as AddressInfo;
    await putOnSale(db1, 'hurried', 2);
    await claimMany(db1, 'hurried', 2);
    const running = sluice(['work', '--workers', '1', '--lease', '3600'], {
      ...env,
      DB2_URL: `postgres://x:x@127.0.0.1:${port}/x`,
    });
    const taken = 'select 1 from pgmq.q_intake_queue where read_ct > 0';
    while ((await db1.query(taken)).rowCount === 0) assert.equal(running.child.exitCode, null);
    running.child.kill('SIGTERM');
    await running.said(/workers stopping/);
    running.child.kill('SIGTERM');
    const { code, stderr } = await running.ended;
    mute.close();
    assert.equal(code, 1, stderr);
    assert.match(stderr, /left in a hurry/);
    const { rows } = await db1.query(
      `select q.read_ct, q.vt > now() + interval '30 minutes' as is_leased from pgmq.q_intake_queue q`,
    );
    assert.deepEqual(rows, Array(2).fill({ read_ct: 1, is_leased: true }));
    await db1.query('delete from pgmq.q_intake_queue');
  });

  it('refuses invalid numbers with exit code 2, and says which', async () => {
    for (const args of [
      ['--workers', '0'],
      ['--workers', 'two'],
      ['--batch', '-1'],
      ['--batch', '10001'],
      ['--lease', '0'],
      ['--lease', '43201'],
    ]) {
      const { code, stderr } = await sluice(['work', ...args], env).ended;
      assert.equal(code, 2, stderr);
      assert.match(stderr, new RegExp(`${args[0]} is "${args[1]}"|ambiguous`));
    }
    assert.equal((await sluice(['work', '--nonsense'], env).ended).code, 2);
  });

  it('works for the stack that runs here, where nothing else is set', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-work-'));
    t.after(() => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, 'env'), `DB1_URL=${env.DB1_URL}\nDB2_URL=${env.DB2_URL}\n`);
    await putOnSale(db1, 'beside', 1);
    await claimMany(db1, 'beside', 1);
    const { code, stdout } = await sluice(['work', '--once', '--json'], { SLUICE_DIR: dir }).ended;
    assert.deepEqual([code, JSON.parse(stdout).status, JSON.parse(stdout).committed], [0, 'drained', 1]);
  });

  it('says in two lines that a database is away, as reconcile does', async () => {
    const away = { ...env, DB1_URL: 'postgres://x@127.0.0.1:1/x', SLUICE_LOG: 'silent' };
    for (const args of [['work', '--once'], ['reconcile']]) {
      const { code, stdout, stderr } = await sluice(args, away).ended;
      assert.deepEqual([code, stdout], [1, ''], args.join(' '));
      assert.match(
        stderr,
        /^error: connect ECONNREFUSED 127\.0\.0\.1:1\nhint: .*DB1_URL.*\n$/,
        args.join(' '),
      );
    }
  });

  it('says what is not set', async () => {
    const { code, stderr } = await sluice(['work'], {}).ended;
    assert.equal(code, 1);
    assert.match(stderr, /DB1_URL \(or SLUICE_CELLS\) and DB2_URL must both be set/);
  });
});

/** A hook that takes requests and never answers. */
async function silentWebhook(): Promise<{ server: Server; asked: Promise<void> }> {
  let tell = (): void => undefined;
  const asked = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const server = createServer(() => tell());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, asked };
}

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { StackError } from '../../src/failure.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { type Cluster, machineSettings, startCluster } from '../../src/stack/postgres.ts';
import { isAlive } from '../../src/stack/processes.ts';
import { giveToServer } from '../../src/stack/server_user.ts';
import { processesUnder } from '../support/dev.ts';

describe('a cluster', () => {
  let dir: string;
  let cluster: Cluster;

  const start = async (port?: number) => {
    cluster = await startCluster({
      dir: join(dir, 'one'),
      password: 'it is a "secret"',
      ...(port && { port }),
    });
    return cluster;
  };
  const query = (sql: string) => withClient(cluster.url, async (client) => (await client.query(sql)).rows);

  before(async () => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-postgres-')));
    giveToServer(dir);
    await start();
    await query('create table kept (a int)');
    await cluster.stop();
  });
  afterEach(() => cluster.stop('immediate'));
  after(() => rmSync(dir, { recursive: true }));

  test('keeps its data over a restart, and leaves no process when stopped', async () => {
    await start();
    await query('insert into kept values (1)');
    await cluster.stop();
    assert.deepEqual(processesUnder(dir), []);
    await start();
    assert.deepEqual(await query('select count(*)::int as n from kept'), [{ n: 1 }]);
  });

  test('is UTF-8, durable, on the loopback only, and asks for the password', async () => {
    await start();
    const [settings] = await query(
      `select current_setting('server_encoding') as encoding, current_setting('fsync') as fsync,
        current_setting('synchronous_commit') as sync, current_setting('listen_addresses') as address,
        current_setting('unix_socket_directories') as sockets, current_setting('TimeZone') as zone,
        current_setting('jit') as jit, current_setting('shared_buffers') as buffers`,
    );
    assert.deepEqual(settings, {
      encoding: 'UTF8',
      fsync: 'on',
      sync: 'on',
      address: '127.0.0.1',
      sockets: '',
      zone: 'UTC',
      jit: 'off',
      buffers: '256MB',
    });
    const wrong = cluster.url.replace(/:[^:@]*@/, ':guess@');
    await assert.rejects(
      withClient(wrong, async () => undefined),
      /password authentication failed/,
    );
    assert.equal(statSync(cluster.logFile).mode & 0o077, 0);
  });

  test('starts again after its postmaster was killed', async () => {
    await start();
    await query('insert into kept values (2)');
    process.kill(cluster.pid, 'SIGKILL');
    await cluster.exited;
    await start();
    assert.deepEqual(await query('select a from kept where a = 2'), [{ a: 2 }]);
  });

  test('a server left over on the same folder is ended before the new one starts', async () => {
    const left = await start();
    await start();
    assert.equal(isAlive(left.pid), false);
    assert.notEqual(cluster.pid, left.pid);
  });

  test('a crash of one backend is mended by the server itself', async () => {
    await start();
    await withClient(cluster.url, async (client) => {
      const { rows } = await client.query('select pg_backend_pid() as pid');
      const broken = new Promise((resolve) => client.once('end', resolve));
      process.kill(rows[0].pid, 'SIGKILL');
      await broken;
    });
    assert.equal(isAlive(cluster.pid), true);
  });

  test('a port that is taken fails with the end of the log', async () => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
    const address = squatter.address();
    assert.ok(address && typeof address === 'object');
    await assert.rejects(start(address.port), (error: StackError) => {
      assert.ok(error instanceof StackError);
      assert.match(error.message, /Address already in use/);
      assert.match(error.hint, /server\.log/);
      return true;
    });
    squatter.close();
  });

  test('an initdb that was cut short is begun again', async () => {
    const other = join(dir, 'two');
    mkdirSync(join(other, 'data.new'), { recursive: true });
    writeFileSync(join(other, 'data.new', 'half'), '');
    cluster = await startCluster({ dir: other, password: 'x' });
    assert.equal((await query('select 1 as one'))[0]?.one, 1);
  });
});

describe('settings by the machine', () => {
  const GB = 2 ** 30;

  test('give a cluster an eighth of the memory, at least 128 MB and at most 1 GB', () => {
    for (const [memory, buffers] of [
      [0.5 * GB, '128MB'],
      [1 * GB, '128MB'],
      [2 * GB, '256MB'],
      [3.9 * GB, '499MB'],
      [8 * GB, '1024MB'],
      [256 * GB, '1024MB'],
    ] as const)
      assert.deepEqual(machineSettings(memory), { shared_buffers: buffers });
  });

  test('know the memory of this machine', () => {
    const megabytes = Number.parseInt(machineSettings().shared_buffers, 10);
    assert.ok(megabytes >= 128 && megabytes <= 1_024, String(megabytes));
  });
});

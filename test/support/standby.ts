// A primary and its standby: two real servers of the embedded Postgres, the second copied from the first while it runs.

import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../../src/migrate/sql.ts';
import { type Cluster, startCluster } from '../../src/stack/postgres.ts';
import { giveToServer, makeServerDir, serverUser } from '../../src/stack/server_user.ts';
import { cleanUpOnExit, startDatabases, TEST_PASSWORD } from './databases.ts';

export interface Pair {
  readonly first: Cluster;
  readonly second: Cluster;
  /** Both hosts; the second, which begins as the standby, stands first. */
  readonly url: string;
  /** Makes the first wait for the second at each commit, or no longer. */
  synchronous(isOn: boolean): Promise<void>;
  /** Returns when the second has replayed what the first has committed. */
  caughtUp(): Promise<void>;
  /** Returns when the second takes changes. */
  promote(): Promise<void>;
  /** Stops every process of one of them, as a machine that hangs. */
  freeze(which: Cluster): void;
  thaw(which: Cluster): void;
  stop(): Promise<void>;
}

export async function startPair(side: 'db1' | 'db2'): Promise<Pair> {
  const databases = await startDatabases({ db1: side === 'db1', db2: side === 'db2' });
  const first = databases[side];
  try {
    const second = await startStandby(first);
    const forget = cleanUpOnExit(() => signalAll(second.pid, 'SIGKILL'));
    const { host, pathname, username, password } = new URL(first.url);
    const hosts = `127.0.0.1:${second.port},${host}`;
    return {
      first,
      second,
      url: `postgres://${username}:${password}@${hosts}${pathname}`,
      async synchronous(isOn) {
        await withClient(first.url, async (client) => {
          await client.query(`alter system set synchronous_standby_names = '${isOn ? '*' : ''}'`);
          await client.query('select pg_reload_conf()');
          // The setting takes effect when the server's processes see it.
          const wanted = `select current_setting('synchronous_standby_names') = '${isOn ? '*' : ''}' as yes`;
          while (!(await client.query(wanted)).rows[0].yes);
        });
      },
      caughtUp: () =>
        withClient(first.url, async (client) => {
          const lag =
            'select coalesce(max(pg_current_wal_flush_lsn() - replay_lsn), 1) <= 0 as none from pg_stat_replication';
          while (!(await client.query(lag)).rows[0].none) await pause(20);
        }),
      promote: () =>
        withClient(second.url, async (client) => {
          await client.query('select pg_promote(true, 60)');
        }),
      freeze: ({ pid }) => signalAll(pid, 'SIGSTOP'),
      thaw: ({ pid }) => signalAll(pid, 'SIGCONT'),
      async stop() {
        for (const { pid } of [first, second]) signalAll(pid, 'SIGCONT');
        await second.stop('immediate');
        forget();
        await databases.stop();
      },
    };
  } catch (error) {
    await databases.stop();
    throw error;
  }
}

async function startStandby(primary: Cluster): Promise<Cluster> {
  const dir = join(primary.dir, '..', 'standby');
  const data = join(dir, 'data');
  makeServerDir(dir);
  await withClient(primary.url, async (client) => {
    await client.query("select pg_backup_start('standby', true)");
    copyTree(join(primary.dir, 'data'), data);
    copyTree(join(primary.dir, 'extensions'), join(dir, 'extensions'));
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)');
    rmSync(join(data, 'postmaster.pid'));
    for (const [name, text] of [
      ['backup_label', rows[0].labelfile],
      ['standby.signal', ''],
    ]) {
      writeFileSync(join(data, name), text);
      giveToServer(join(data, name));
    }
  });
  return startCluster({
    dir,
    password: TEST_PASSWORD,
    extensionDir: join(dir, 'extensions'),
    settings: {
      primary_conninfo: `host=127.0.0.1 port=${primary.port} user=postgres password=${TEST_PASSWORD} application_name=second`,
      wal_retrieve_retry_interval: '100ms',
    },
  });
}

function copyTree(from: string, to: string): void {
  const cp = spawnSync('cp', ['-Rp', from, to], { ...serverUser, cwd: '/', encoding: 'utf8' });
  // A file of the running server may go while it is copied; the write-ahead log has what matters.
  if (cp.status !== 0 && !/No such file/.test(cp.stderr))
    throw new Error(`cannot copy ${from}: ${cp.stderr}`);
}

function signalAll(postmaster: number, signal: NodeJS.Signals): void {
  const { stdout } = spawnSync('pgrep', ['-P', String(postmaster)], { encoding: 'utf8' });
  for (const pid of [postmaster, ...stdout.trim().split('\n').filter(Boolean).map(Number)])
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
}

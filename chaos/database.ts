// A Postgres server that can be killed, stopped and started again on its data. Its port changes; the proxies follow it.

import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { withClient } from '../src/migrate/sql.ts';
import { startDatabases, type TestDatabase, type TestDatabases } from '../test/support/databases.ts';
import type { Disk } from './disk.ts';
import type { Random } from './random.ts';

/** A crash recovery on a busy machine takes seconds; a server that takes longer than this does not come back. */
const RECOVERY_MS = 60_000;
const POLL_MS = 50;
/** The backends that serve our own processes. */
const BACKENDS = `
  select a.pid
  from pg_catalog.pg_stat_activity a
  where a.application_name like 'sluice-%' and a.pid <> pg_catalog.pg_backend_pid()
  order by a.pid`;

export class Database {
  readonly side: 'db1' | 'db2';
  readonly #set: TestDatabases;
  readonly #disk: Disk | undefined;
  #running: TestDatabase;
  /** The processes of a server that stands still. */
  #frozen: number[] = [];

  private constructor(side: 'db1' | 'db2', set: TestDatabases, disk?: Disk) {
    this.side = side;
    this.#set = set;
    this.#disk = disk;
    this.#running = set[side];
  }

  /** With durability as Postgres has it by default, unless the settings say otherwise; on a disk of its own where there is one. */
  static async start(
    side: 'db1' | 'db2',
    settings: Record<string, string>,
    patch?: string,
    disk?: Disk,
  ): Promise<Database> {
    const other = side === 'db1' ? 'db2' : 'db1';
    const options = { [other]: false, settings, ...(disk && { parent: disk.dir }) };
    const database = new Database(side, await startDatabases(options), disk);
    if (patch !== undefined) {
      await withClient(database.url, (client) => client.query(patch)).catch(async (error: unknown) => {
        await database.stop();
        throw new Error(`the patch of ${side} cannot be applied`, { cause: error });
      });
    }
    return database;
  }

  get url(): string {
    return this.#running.url;
  }
  get port(): number {
    return this.#running.port;
  }
  get authenticatorUrl(): string {
    return this.#running.authenticatorUrl;
  }

  /** kill -9 of the postmaster: its children find out and end by themselves. */
  async killPostmaster(): Promise<void> {
    process.kill(this.#running.pid, 'SIGKILL');
    await this.#running.exited;
  }

  /** As `pg_ctl stop -m immediate`. */
  stopImmediately(): Promise<void> {
    return this.#running.stop('immediate');
  }

  /** Stops every process of the server where it is, the postmaster first: it starts no others then. */
  freeze(): void {
    const { pid } = this.#running;
    process.kill(pid, 'SIGSTOP');
    this.#frozen = [pid, ...childrenOf(pid)];
    for (const child of this.#frozen) signal(child, 'SIGSTOP');
  }

  /** What a frozen server wrote and never synced is lost. */
  losePower(): void {
    if (this.#disk === undefined) throw new Error(`${this.side} has no disk that can lose power`);
    this.#disk.losePower();
  }

  /** After a power cut: the old processes are gone, and the disk is back. */
  async dies(): Promise<void> {
    for (const pid of this.#frozen) signal(pid, 'SIGKILL');
    await this.#running.exited;
    await this.#disk?.comeBack();
    // Of a server that was never told to sync, an empty one may be left, and Postgres would ask a person about it.
    rmSync(join(this.#running.dir, 'data', 'postmaster.pid'), { force: true });
  }

  async startAgain(): Promise<void> {
    this.#running = await this.#running.restart();
  }

  /** kill -9 of one backend of ours: Postgres ends all sessions and recovers. */
  async killBackend(random: Random): Promise<void> {
    const deadline = Date.now() + RECOVERY_MS;
    for (;;) {
      const { rows } = await withClient(this.url, (client) => client.query<{ pid: number }>(BACKENDS));
      // A backend may have ended since, and another process may have its number by now.
      const victim = random.shuffled(rows).find(({ pid }) => isChildOf(pid, this.#running.pid));
      if (victim !== undefined) {
        process.kill(victim.pid, 'SIGKILL');
        return this.takesConnections();
      }
      if (Date.now() > deadline) throw new Error(`no process of ours connects to ${this.side}`);
      await pause(POLL_MS);
    }
  }

  async takesConnections(): Promise<void> {
    const deadline = Date.now() + RECOVERY_MS;
    for (;;) {
      // The look right after a kill can come before the server has noticed; a statement shows that it lives.
      await pause(POLL_MS);
      try {
        await withClient(this.url, (client) => client.query(BACKENDS));
        return;
      } catch (error) {
        if (Date.now() > deadline) throw new Error(`${this.side} does not come back`, { cause: error });
      }
    }
  }

  stop(): Promise<void> {
    return this.#set.stop();
  }
}

function childrenOf(pid: number): number[] {
  const ps = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  return ps.stdout.trim().split(/\s+/).filter(Boolean).map(Number);
}

/** A backend may have ended by itself meanwhile. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function isChildOf(pid: number, parent: number): boolean {
  const ps = spawnSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' });
  return Number(ps.stdout.trim()) === parent;
}

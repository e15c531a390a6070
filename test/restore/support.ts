// Two servers of Debian's Postgres, and the blocks of docs/restore.md that run on them as they stand.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { freePort } from '../../src/stack/ports.ts';
import { giveToServer, makeServerDir, serverUser } from '../../src/stack/server_user.ts';
import { openClient } from '../server/support.ts';
import { PROJECT } from '../support/dev.ts';

const BIN = '/usr/lib/postgresql/15/bin';
const SLUICE = join(PROJECT, 'bin', 'sluice.js');

export const PAGE = readFileSync(join(PROJECT, 'docs', 'restore.md'), 'utf8');
export const BLOCKS = new Map(
  [...PAGE.matchAll(/^<!-- walk: (\w+) -->\n```sh\n([\s\S]*?)^```/gm)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);

type SideName = 'db1' | 'db2';
type Side = { name: SideName; env: Record<string, string> };

export class TwoServers {
  readonly #dir: string;
  readonly #sides: readonly Side[];
  /** What an operator's commands know. */
  readonly env: Record<string, string>;

  private constructor(dir: string, sides: readonly Side[]) {
    this.#dir = dir;
    this.#sides = sides;
    this.env = Object.fromEntries(
      sides.map(({ name, env }) => [`${name.toUpperCase()}_URL`, env.DB_URL ?? '']),
    );
  }

  /** Migrated, archiving, and with a copy of each. */
  static async start(): Promise<TwoServers> {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-restore-'));
    giveToServer(dir);
    const sides = await Promise.all((['db1', 'db2'] as const).map((name) => startServer(dir, name)));
    const servers = new TwoServers(dir, sides);
    await servers.asOperator('npx sluice migrate');
    for (const step of ['prepare', 'backup'])
      for (const side of sides) await shell(block(step), side.env, serverUser);
    return servers;
  }

  stop(): void {
    for (const { env } of this.#sides)
      for (const folder of [env.PGDATA ?? '', `${env.PGDATA}.before`])
        if (existsSync(join(folder, 'postmaster.pid')))
          spawnSync(join(BIN, 'pg_ctl'), ['-D', folder, '-w', '-m', 'immediate', 'stop'], {
            ...serverUser,
            cwd: '/',
          });
    rmSync(this.#dir, { recursive: true, force: true });
  }

  get db1Url(): string {
    return this.env.DB1_URL ?? '';
  }

  get db2Url(): string {
    return this.env.DB2_URL ?? '';
  }

  /** What the script printed. `npx` is the command of this tree. */
  asOperator(script: string, more: Record<string, string> = {}): Promise<string> {
    const npx = `npx() { shift; '${process.execPath}' '${SLUICE}' "$@"; }`;
    return shell(`${npx}\n${script}`, { ...this.env, ...more });
  }

  /** Steps 3 to 5 of the page. What an earlier restore kept is moved away first, as the page says. */
  async restore(name: SideName, target: string): Promise<void> {
    const env = { ...this.#envOf(name), TARGET: target };
    await shell('rm -rf "$PGDATA.before"', env, serverUser);
    for (const step of ['save', 'restore', 'writes']) await shell(block(step), env, serverUser);
  }

  /** After `restore`: to another moment. `timeline` is another one than the page's, for a control. */
  restoreAgain(name: SideName, target: string, timeline?: string): Promise<string> {
    const { PGDATA = '' } = this.#envOf(name);
    const isUp = existsSync(join(PGDATA, 'postmaster.pid'));
    const again = isUp ? block('again') : block('again').replace(/^pg_ctl .*$/m, '');
    const other = timeline === undefined ? '' : `export TIMELINE=${timeline}`;
    const script = [again, other, block('restore'), block('writes')].join('\n');
    return shell(script, { ...this.#envOf(name), TARGET: target }, serverUser);
  }

  /** As each night, and after each restore. */
  newCopy(name: SideName): Promise<string> {
    return shell(block('backup'), this.#envOf(name), serverUser);
  }

  #envOf(name: SideName): Record<string, string> {
    return (this.#sides.find((one) => one.name === name) as Side).env;
  }

  withDb1<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
    return withClient(this.db1Url, use);
  }

  withDb2<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
    return withClient(this.db2Url, use);
  }
}

export function block(name: string): string {
  const text = BLOCKS.get(name);
  if (text === undefined) throw new Error(`docs/restore.md has no block ${name}`);
  return text;
}

export async function number(client: pg.Client, text: string): Promise<number> {
  return (await client.query(`select (${text})::int as n`)).rows[0].n;
}

export async function moment(client: pg.Client): Promise<string> {
  return (await client.query('select clock_timestamp()::text as now')).rows[0].now;
}

async function startServer(dir: string, name: SideName): Promise<Side> {
  const own = join(dir, name);
  makeServerDir(own);
  const port = await freePort();
  const PGDATA = join(own, 'data');
  const env = {
    PATH: `${BIN}:${process.env.PATH}`,
    HOME: own,
    PGDATA,
    BACKUPS: join(own, 'backups'),
    DB_URL: `postgres://postgres@127.0.0.1:${port}/postgres`,
  };
  await shell(
    `initdb -D "$PGDATA" -U postgres -A trust
     echo "port = ${port}
     listen_addresses = '127.0.0.1'
     unix_socket_directories = ''" >> "$PGDATA/postgresql.conf"
     pg_ctl -D "$PGDATA" -w -l "$PGDATA/server.log" start`,
    env,
    serverUser,
  );
  return { name, env };
}

/** Its output; throws with all of it where a line fails. */
async function shell(
  script: string,
  env: Record<string, string>,
  user: { uid?: number; gid?: number } = {},
): Promise<string> {
  const child = spawn('bash', ['-eu', '-c', script], {
    ...user,
    cwd: '/',
    env: { PATH: `${BIN}:${process.env.PATH ?? ''}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let all = '';
  const keep = (chunk: string): void => {
    all += chunk;
  };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    keep(chunk);
  });
  child.stderr.setEncoding('utf8').on('data', keep);
  // Not 'close': a server that was started keeps what it inherited open.
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  assert.equal(status, 0, `${script}\n${all}`);
  return stdout;
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openClient(url);
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

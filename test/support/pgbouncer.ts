// A real PgBouncer in transaction mode in front of test databases: a process of its own on a free port.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../src/stack/ports.ts';
import { giveToServer, serverUser } from '../../src/stack/server_user.ts';
import { ensureDebianPackages } from '../pgtap/debian_packages.ts';

export type Pooler = { urlOf(direct: string): string; stop(): Promise<void>; killNow(): void };

export type PoolerOptions = {
  /** Each with user and password, which PgBouncer logs in with. */
  urls: readonly string[];
  mode?: 'transaction' | 'session';
  /** Lets clients send what PgBouncer 1.18 would refuse at login, and drops it. */
  ignored?: readonly string[];
  /** Servers for each database and user. Few, so that each serves many clients. */
  servers?: number;
};

const PROGRAM = 'pgbouncer';
const READY_MS = 30_000;
const POLL_MS = 20;
const START_ATTEMPTS = 3;

/** Undefined, or the reason why PgBouncer is missing and cannot be installed. */
export function ensurePgbouncer(): Promise<string | undefined> {
  return ensureDebianPackages([PROGRAM]);
}

export async function startPgbouncer(options: PoolerOptions): Promise<Pooler> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-pgbouncer-'));
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const file = writeFiles(dir, port, options);
    // Debian puts it beside the programs of root.
    const env = { PATH: `${process.env.PATH}:/usr/sbin` };
    const child = spawn(PROGRAM, ['-q', file], { ...serverUser, cwd: '/', env, stdio: 'ignore' });
    const ended = once(child, 'exit').catch(() => undefined);
    if (await answers(child, port)) return poolerOf(child, ended, port, dir, options);
    if (attempt === START_ATTEMPTS) {
      rmSync(dir, { recursive: true });
      throw new Error('pgbouncer does not start');
    }
  }
}

function poolerOf(
  child: ChildProcess,
  ended: Promise<unknown>,
  port: number,
  dir: string,
  { urls }: PoolerOptions,
): Pooler {
  const killNow = (): void => {
    child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  return {
    urlOf(direct) {
      const at = urls.indexOf(direct);
      if (at < 0) throw new Error('the pooler does not know that database');
      const url = new URL(direct);
      url.port = String(port);
      url.pathname = `/${nameOf(at)}`;
      return url.href;
    },
    killNow,
    async stop() {
      killNow();
      await ended;
    },
  };
}

const nameOf = (at: number): string => `database_${at}`;

function writeFiles(dir: string, port: number, options: PoolerOptions): string {
  const { urls, mode = 'transaction', ignored = [], servers = 20 } = options;
  const databases = urls.map((text, at) => {
    const { hostname, port, pathname } = new URL(text);
    return `${nameOf(at)} = host=${hostname} port=${port} dbname=${pathname.slice(1)}`;
  });
  const users = new Set(urls.map((text) => `"${new URL(text).username}" "${new URL(text).password}"`));
  const [config, passwords] = [join(dir, 'pgbouncer.ini'), join(dir, 'users.txt')];
  writeFileSync(passwords, `${[...users].join('\n')}\n`);
  writeFileSync(
    config,
    `[databases]
${databases.join('\n')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${passwords}
pool_mode = ${mode}
default_pool_size = ${servers}
max_client_conn = 1000
; The next one in turn, so that a session that counts on its server is soon found out.
server_round_robin = 1
ignore_startup_parameters = ${['extra_float_digits', ...ignored].join()}
`,
  );
  for (const path of [dir, config, passwords]) giveToServer(path);
  return config;
}

async function answers(child: ChildProcess, port: number): Promise<boolean> {
  const untilMs = Date.now() + READY_MS;
  while (child.exitCode === null && Date.now() < untilMs) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
    });
    if (isOpen && child.exitCode === null) return true;
    await pause(POLL_MS);
  }
  child.kill('SIGKILL');
  return false;
}

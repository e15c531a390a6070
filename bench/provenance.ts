// Where a result comes from: without it a number says nothing.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../src/project_root.ts';

const BYTES_PER_GIB = 1024 ** 3;
export const PRODUCT = ['src', 'db1', 'db2', 'console', 'bin', 'packages', 'package.json'];
/** Of both where git does not answer: a run works there too, but cannot be kept. */
export const UNKNOWN = 'unknown';
/** Tests, and what is only read: a mended sentence makes no other product. */
const IS_LEFT_OUT = /(^|\/)tests?\/|\.test\.\w+$|(^|\/)README\.md$/;

export function machine(): Record<string, string | number> {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memory_gib: Math.round((totalmem() / BYTES_PER_GIB) * 10) / 10,
    kernel: `${platform()} ${release()}`,
    node: process.version,
  };
}

/** The commit measured; marked where the files differ from it. */
export function commit(root: string = PROJECT_ROOT): string {
  const head = git(root, ['rev-parse', 'HEAD'])?.trim();
  if (head === undefined) return UNKNOWN;
  return git(root, ['status', '--porcelain'])?.trim() === '' ? head : `${head} with changes`;
}

/**
 * One hash over the product's tracked files without their tests and READMEs, as they are in the working tree or as `commit` has them.
 * It is made of git's own hashes of the files, so that a clean tree and its commit have the same.
 */
export function productHash(root: string = PROJECT_ROOT, commit?: string): string {
  const lines = commit === undefined ? workingFiles(root) : committedFiles(root, commit);
  return lines === undefined ? UNKNOWN : createHash('sha256').update(lines.sort().join('\n')).digest('hex');
}

function workingFiles(root: string): string[] | undefined {
  const paths = git(root, ['ls-files', '-z', '--', ...PRODUCT])
    ?.split('\0')
    .filter((path) => path !== '' && !IS_LEFT_OUT.test(path) && existsSync(join(root, path)));
  const hashes = git(root, ['hash-object', '--stdin-paths'], paths?.join('\n'))?.trim().split('\n');
  return hashes && paths?.map((path, at) => `${hashes[at]} ${path}`);
}

function committedFiles(root: string, commit: string): string[] | undefined {
  return git(root, ['ls-tree', '-rz', commit, '--', ...PRODUCT])
    ?.split('\0')
    .flatMap((entry) => {
      const [, , hash, path] = /^(\d+) blob (\w+)\t(.*)$/.exec(entry) ?? [];
      return path === undefined || IS_LEFT_OUT.test(path) ? [] : [`${hash} ${path}`];
    });
}

/** Undefined where git fails. In CI's container the checkout belongs to another user, which git would else refuse to read. */
export function git(cwd: string, args: string[], input = ''): string | undefined {
  const all = ['-c', 'safe.directory=*', ...args];
  const { status, stdout } = spawnSync('git', all, { cwd, input, encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
}

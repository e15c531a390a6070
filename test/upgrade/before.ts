// The version before this one, as git has it: its files in a folder of their own, built, with the packages of this checkout.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { git, PRODUCT } from '../../bench/provenance.ts';
import { PROJECT } from '../support/dev.ts';

export type Before = { commit: string; root: string; remove(): void };

/**
 * The newest commit whose product files are others than those here: with changes that are not committed that is the last
 * commit, else the parent of the last one that changed the product. Undefined where git does not have it: in a copy without
 * history, and in a shallow clone.
 */
export function commitBefore(root: string = PROJECT): string | undefined {
  const isChanged = git(root, ['status', '--porcelain', '--', ...PRODUCT])?.trim() !== '';
  if (isChanged) return git(root, ['rev-parse', '--verify', '--quiet', 'HEAD'])?.trim();
  const last = git(root, ['log', '--first-parent', '-1', '--format=%H', '--', ...PRODUCT])?.trim();
  return last && git(root, ['rev-parse', '--verify', '--quiet', `${last}^1`])?.trim();
}

/** Not a worktree: that would write into the repository, and two runs would meet there. */
export function checkOutBefore(commit: string): Before {
  const root = mkdtempSync(join(tmpdir(), 'sluice-before-'));
  const remove = (): void => rmSync(root, { recursive: true, force: true });
  try {
    const archive = join(root, 'before.tar');
    if (git(PROJECT, ['archive', '--output', archive, commit]) === undefined)
      throw new Error(`git cannot take out ${commit}`);
    run('tar', ['-xf', archive, '-C', root], root);
    symlinkSync(join(PROJECT, 'node_modules'), join(root, 'node_modules'));
    run(process.execPath, [join(root, 'tools', 'build.js')], root);
    return { commit, root, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function run(command: string, args: string[], cwd: string): void {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`, { cause: error });
}

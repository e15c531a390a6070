// The folder of a stack: kept out of git while there are secrets in it, emptied by a reset.

import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { claimRunDir } from './run_files.ts';
import { removeReachableDir } from './server_user.ts';
import { layout } from './settings.ts';

const GIT_IGNORE = '.gitignore';
const EVERYTHING = '*\n';

/** Only in a folder that is ours alone: in a shared folder it would hide the user's files too. */
export function hideFromGit(dir: string): void {
  const ours = new Set(Object.values(layout(dir)).map((path) => basename(path)));
  if (readdirSync(dir).every((name) => ours.has(name))) writeFileSync(join(dir, GIT_IGNORE), EVERYTHING);
}

/** Leaves a file that we did not write. */
function unhideFromGit(dir: string): void {
  const file = join(dir, GIT_IGNORE);
  if (existsSync(file) && readFileSync(file, 'utf8') === EVERYTHING) rmSync(file);
}

/**
 * Removes everything a stack keeps in `dir`, and ends what a killed run left running. Refused while the stack runs. It
 * removes only names of ours: a SLUICE_DIR set by mistake to a home folder must not cost the user their files.
 */
export async function resetStack(dir: string): Promise<boolean> {
  if (!existsSync(dir)) return false;
  const paths = layout(dir);
  const runFiles = claimRunDir(paths.run);
  await runFiles.stopLeftovers();
  // The lock goes last. A directory of such a name is not ours, and throws.
  const { run, postgres, ...files } = paths;
  for (const file of Object.values(files)) rmSync(file, { force: true });
  removeReachableDir(postgres);
  rmSync(run, { recursive: true });
  unhideFromGit(dir);
  if (readdirSync(dir).length === 0) rmdirSync(dir);
  return true;
}

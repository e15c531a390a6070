import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { unhideFromGit } from './git_ignore.ts';
import { claimRunDir } from './run_files.ts';
import { removeReachableDir } from './server_user.ts';
import { layout } from './settings.ts';

/**
 * Removes everything a stack keeps in `dir`, and what a killed run left running. Refused while it runs. Only
 * names of ours are removed: a SLUICE_DIR set by mistake to somebody's home must not cost them their files.
 */
export async function resetStack(dir: string): Promise<boolean> {
  if (!existsSync(dir)) return false;
  const paths = layout(dir);
  const runFiles = claimRunDir(paths.run);
  await runFiles.stopLeftovers();
  removeReachableDir(paths.postgres);
  rmSync(paths.secrets, { force: true });
  rmSync(paths.env, { force: true });
  rmSync(paths.run, { recursive: true });
  unhideFromGit(dir);
  if (readdirSync(dir).length === 0) rmdirSync(dir);
  return true;
}

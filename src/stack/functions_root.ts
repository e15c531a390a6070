import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';
import { StackError } from '../failure.ts';

/** A package that the functions import: where it is installed, there are the others. */
const INSTALLED = '@supabase/supabase-js';
const FUNCTIONS = join('db1', 'supabase', 'functions');

/**
 * The folder to run the functions from. Deno strips no types below node_modules, so that those of an installed package are
 * copied to `copyDir`, anew at each start; those of a checkout run where they are.
 */
export function functionsRoot(projectRoot: string, copyDir: string): string {
  if (!projectRoot.split(sep).includes('node_modules')) return projectRoot;
  rmSync(copyDir, { recursive: true, force: true });
  mkdirSync(copyDir, { recursive: true });
  for (const name of ['package.json', 'deno.json', FUNCTIONS])
    cpSync(join(projectRoot, name), join(copyDir, name), { recursive: true });
  symlinkSync(packagesOf(projectRoot), join(copyDir, 'node_modules'));
  return copyDir;
}

function packagesOf(projectRoot: string): string {
  const entry = findInstalled(projectRoot);
  return entry.slice(0, entry.lastIndexOf(join(sep, ...INSTALLED.split('/'), sep)));
}

function findInstalled(projectRoot: string): string {
  try {
    return createRequire(join(projectRoot, 'package.json')).resolve(INSTALLED);
  } catch (error) {
    throw new StackError(
      `the optional npm package ${INSTALLED}, which the Edge Functions import, is not installed`,
      'install optional packages too (without --omit=optional)',
      error,
    );
  }
}

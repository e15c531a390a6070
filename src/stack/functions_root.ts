import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, sep } from 'node:path';

/** An optional package that the functions import: where it is installed, there are the others. */
export const FUNCTIONS_PACKAGE = '@supabase/supabase-js';
const FUNCTIONS = join('db1', 'supabase', 'functions');

/**
 * The folder to run the functions from; undefined where the package that they import is not installed. Deno strips no types
 * below node_modules, so that those of an installed package are copied to `copyDir`, anew at each start; those of a checkout
 * run where they are.
 */
export function functionsRoot(projectRoot: string, copyDir: string): string | undefined {
  const packages = packagesOf(projectRoot);
  if (packages === undefined) return undefined;
  if (!projectRoot.split(sep).includes('node_modules')) return projectRoot;
  rmSync(copyDir, { recursive: true, force: true });
  mkdirSync(copyDir, { recursive: true });
  for (const name of ['package.json', 'deno.json', FUNCTIONS])
    cpSync(join(projectRoot, name), join(copyDir, name), { recursive: true });
  symlinkSync(packages, join(copyDir, 'node_modules'));
  return copyDir;
}

function packagesOf(projectRoot: string): string | undefined {
  let entry: string;
  try {
    entry = createRequire(join(projectRoot, 'package.json')).resolve(FUNCTIONS_PACKAGE);
  } catch {
    // The caller says what is missing without it.
    return undefined;
  }
  return entry.slice(0, entry.lastIndexOf(join(sep, ...FUNCTIONS_PACKAGE.split('/'), sep)));
}

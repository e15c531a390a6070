import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The folder of the program: src/, or the folder of a build. What it reads beside itself has the same path below either,
 * because a build copies it along (tools/build.js).
 */
export const PROGRAM_ROOT = dirname(fileURLToPath(import.meta.url));

/** The checkout, or the installed package, that this program belongs to, wherever the command was called from. */
export const PROJECT_ROOT = folderWithPackage(PROGRAM_ROOT);

function folderWithPackage(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : folderWithPackage(dirname(folder));
}

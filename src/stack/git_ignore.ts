// Keeps what is secret out of git, whosever repository the folder stands in.

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { layout } from './settings.ts';

const NAME = '.gitignore';
const EVERYTHING = '*\n';

/** Only in a folder that is ours alone: in one that somebody shares with us it would hide their files too. */
export function hideFromGit(dir: string): void {
  const ours = new Set(Object.values(layout(dir)).map((path) => basename(path)));
  if (readdirSync(dir).every((name) => ours.has(name))) writeFileSync(join(dir, NAME), EVERYTHING);
}

/** Leaves one that somebody else wrote. */
export function unhideFromGit(dir: string): void {
  const file = join(dir, NAME);
  if (existsSync(file) && readFileSync(file, 'utf8') === EVERYTHING) rmSync(file);
}

// What a page says of tests: `file`, or `file`: *name of a test in it*. A test that was renamed or removed is found here.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../support/dev.ts';

export type Named = { file: string; test?: string };

/** Names cannot hold an asterisk or a backtick. Of a name that is put together in the code, its fixed part stands here. */
const NAMED = /`([^`]+)`(?:: \*([^*]+)\*)?/g;

export const namedIn = (cell = ''): Named[] =>
  [...cell.matchAll(NAMED)].map(([, file = '', test]) => (test === undefined ? { file } : { file, test }));

/** The text of a file of the tree, or undefined. */
export const inTree = (file: string): string | undefined =>
  existsSync(join(PROJECT, file)) ? readFileSync(join(PROJECT, file), 'utf8') : undefined;

/** What is named and not there. */
export function absent(
  named: readonly Named[],
  read: (file: string) => string | undefined = inTree,
): string[] {
  return named.flatMap(({ file, test }) => {
    const text = read(file);
    if (text === undefined) return [file];
    // In SQL a quote is written twice, in TypeScript behind a backslash.
    const spellings =
      test === undefined ? [] : [test, test.replaceAll("'", "''"), test.replaceAll("'", "\\'")];
    return test === undefined || spellings.some((one) => text.includes(one)) ? [] : [`${file}: ${test}`];
  });
}

/** The cells of each row of a page whose first cell matches. */
export const rowsOf = (page: string, first: RegExp): string[][] =>
  page
    .split('\n')
    .filter((line) => line.startsWith('| ') && first.test(line.slice(2)))
    .map((line) => line.replace(/^\| /, '').replace(/ ?\|$/, '').split(' | '));

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const PAGE = readFileSync(join(PROJECT, 'docs/requirements.md'), 'utf8');
/** The cells of a row: number, requirement, where, test, difference. */
const rowsOf = (page: string) =>
  page
    .split('\n')
    .filter((line) => /^\| [A-D]\d+ \|/.test(line))
    .map((line) => line.slice(2, -2).split(' | '));
const namesIn = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
/** What a page names and the tree does not have. */
const absentOf = (page: string, exists: (name: string) => boolean) =>
  rowsOf(page).flatMap(([number, , where, test]) =>
    [...namesIn(where), ...namesIn(test)].filter((name) => !exists(name)).map((name) => `${number}: ${name}`),
  );
const inTree = (name: string) => existsSync(join(PROJECT, name));

describe('the page of requirements', () => {
  it('names for every requirement a file and a test that exist', () => {
    assert.deepEqual(absentOf(PAGE, inTree), []);
    for (const [number, , where, test] of rowsOf(PAGE)) {
      assert.notEqual(namesIn(where).length, 0, `${number} names no file`);
      assert.notEqual(namesIn(test).length, 0, `${number} names no test`);
    }
  });

  it('numbers the requirements of each document without a gap', () => {
    for (const letter of ['A', 'B', 'C', 'D']) {
      const numbers = rowsOf(PAGE)
        .map(([number = '']) => number.trim())
        .filter((number) => number.startsWith(letter));
      assert.deepEqual(
        numbers,
        numbers.map((_, at) => `${letter}${at + 1}`),
      );
      assert.ok(numbers.length > 7, `${letter} has ${numbers.length}`);
    }
  });

  it('would notice a file that went away', () => {
    assert.deepEqual(absentOf('| A1 | x | `src/gone.ts` | `test/gone.test.ts` | |', inTree), [
      'A1: src/gone.ts',
      'A1: test/gone.test.ts',
    ]);
  });
});

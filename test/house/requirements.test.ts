import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { absent, inTree, namedIn, rowsOf } from './named_tests.ts';

const PAGE = inTree('docs/requirements.md') ?? '';
const NUMBER = /^[A-D]\d+ \|/;
/** The cells of a row: number, requirement, where, test, difference. */
const rows = rowsOf(PAGE, NUMBER);
/** What a page names and the tree does not have. */
const absentOf = (page: string) =>
  rowsOf(page, NUMBER).flatMap(([number, , where, test]) =>
    absent([...namedIn(where), ...namedIn(test)]).map((name) => `${number}: ${name}`),
  );

describe('the page of requirements', () => {
  it('names for every requirement a file and a test that exist', () => {
    assert.deepEqual(absentOf(PAGE), []);
    for (const [number, , where, test] of rows) {
      assert.notEqual(namedIn(where).length, 0, `${number} names no file`);
      assert.notEqual(namedIn(test).length, 0, `${number} names no test`);
    }
  });

  it('calls a test only what runs as one', () => {
    const files = rows.flatMap(([, , , test]) => namedIn(test).map(({ file }) => file));
    assert.deepEqual(
      files.filter((file) => !/\.test\.(ts|sql)$/.test(file)),
      [],
    );
  });

  it('numbers the requirements of each document without a gap, and none is missing', () => {
    for (const [letter, least] of Object.entries({ A: 50, B: 14, C: 8, D: 30 })) {
      const numbers = rows
        .map(([number = '']) => number.trim())
        .filter((number) => number.startsWith(letter));
      assert.deepEqual(
        numbers,
        numbers.map((_, at) => `${letter}${at + 1}`),
      );
      assert.ok(numbers.length >= least, `${letter} has ${numbers.length}`);
    }
    assert.deepEqual(
      rows.filter((cells) => /\bmissing\b|not yet/i.test(cells.slice(2).join(' '))).map(([number]) => number),
      [],
    );
  });

  it('says what stands in where Docker or a hosted project is needed', () => {
    const needing = rows.filter((cells) => /needs Docker/i.test(cells.join(' ')));
    assert.ok(needing.length >= 3, 'the page knows no line that needs Docker');
    for (const cells of rows.filter(([, requirement = '']) =>
      /supabase (start|test db|db reset)/.test(requirement),
    ))
      assert.match(cells.join(' '), /needs Docker.*(stand in|stands in|runs the same)/i, cells.join(' '));
  });

  it('would notice a file or a test that went away', () => {
    const page =
      '| A1 | x | `src/gone.ts` | `test/gone.test.ts`, `test/house/tree.test.ts`: *no such test* | |';
    assert.deepEqual(absentOf(page), [
      'A1: src/gone.ts',
      'A1: test/gone.test.ts',
      'A1: test/house/tree.test.ts: no such test',
    ]);
    assert.deepEqual(
      absent(namedIn('`test/house/requirements.test.ts`: *would notice a file or a test that went away*')),
      [],
    );
  });
});

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { git } from '../../bench/provenance.ts';
import { PROJECT } from '../support/dev.ts';
import { readProject } from '../tidy/project.ts';

/** Subjects that hide the name of a thing, and a negation that hides what a thing is. */
const WORDS = ['whoever', 'nobody', 'somebody', 'everybody', 'none of these', 'is no'];
const WARNED = new RegExp(`\\b(${WORDS.join('|')})\\b`, 'i');
/** Commit c84b80e had 981 such lines. A few may stay: names in published vectors, and places where a word fits. */
const MAX_LINES = 20;
/** A machine wrote these: the lock file, and the records of runs. */
const IS_RECORD = /^package-lock\.json$|\/summaries\//;

/** Every line with such a word in docs, comments, messages and test names, as `file:line text`. */
function warnedLines(root: string): string[] {
  const tracked = git(root, ['ls-files', '-z'])?.split('\0');
  return readProject(root)
    .files.filter(({ path }) => !IS_RECORD.test(path) && (tracked?.includes(path) ?? true))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, at) => (WARNED.test(line) ? [`${path}:${at + 1} ${line.trim()}`] : [])),
    );
}

function assertFew(found: readonly string[]): void {
  assert.ok(
    found.length <= MAX_LINES,
    `${found.length} lines say ${WORDS.join(', ')}; at most ${MAX_LINES} may. Name the thing instead:\n${found.join('\n')}`,
  );
}

describe('words that hide the name of a thing', () => {
  it(`stand in at most ${MAX_LINES} lines of the tree`, () => assertFew(warnedLines(PROJECT)));

  describe('in a planted tree', () => {
    let root: string;
    const plant = (path: string, text: string) => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    };
    before(() => {
      root = mkdtempSync(join(tmpdir(), 'sluice-words-'));
    });
    after(() => rmSync(root, { recursive: true }));

    it('are found with file and line, in every kind of file, and other words are not', () => {
      const [first, second, third, fourth, fifth, sixth] = WORDS;
      plant('docs/a.md', `# Title\n\nAnd ${first} asks.\n`);
      plant('src/a.ts', `// The worker waits.\n/** For ${second}. */\nexport const ${second}Else = 1;\n`);
      plant('db1/a.sql', `-- ${third?.toUpperCase()}'s row.\nselect 1; -- ${fourth}\n`);
      plant('test/a.test.ts', `it('takes ${fifth}');\n`);
      plant('.github/a.yml', `# This ${sixth} step.\n# This ${sixth}t found: is not, is note.\n`);
      plant('chaos/summaries/a.json', `{ "history": ["${third} writes"] }\n`);
      assert.deepEqual(warnedLines(root), [
        `.github/a.yml:1 # This ${sixth} step.`,
        `db1/a.sql:1 -- ${third?.toUpperCase()}'s row.`,
        `db1/a.sql:2 select 1; -- ${fourth}`,
        `docs/a.md:3 And ${first} asks.`,
        `src/a.ts:2 /** For ${second}. */`,
        `test/a.test.ts:1 it('takes ${fifth}');`,
      ]);
    });

    it('fail the test from the first line too many, with each place', () => {
      const place = (at: number) => `docs/a.md:${at + 1} ${WORDS[0]}`;
      const allowed = Array.from({ length: MAX_LINES }, (_, at) => place(at));
      assertFew(allowed);
      assert.throws(() => assertFew([...allowed, place(MAX_LINES)]), {
        name: 'AssertionError',
        message: new RegExp(
          `^${MAX_LINES + 1} lines [\\s\\S]*\\ndocs/a\\.md:1 .*[\\s\\S]*\\ndocs/a\\.md:${MAX_LINES + 1} `,
        ),
      });
    });
  });
});

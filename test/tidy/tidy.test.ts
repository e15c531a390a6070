import assert from 'node:assert/strict';
import test from 'node:test';
import { findingsWith, places, TIDY_FUNCTION } from './plant.ts';

type Plant = { name: string; files: Record<string, string>; found: string[] };

const MIGRATION = 'db1/supabase/migrations/2_two.sql';
const other = (text: string): string => text.replace('public.one', 'public.two');

const asProcedure = (text: string): string =>
  text
    .replace('create function', 'create procedure')
    .replace(/^returns .*\n/m, '')
    .replace("set search_path = ''\n", '');

/** Each row plants one defect in a tidy tree and says exactly what must be found: the checker's negative controls. */
const PLANTS: readonly Plant[] = [
  ...[
    "c === '40001'",
    "c.startsWith('08')",
    "c.startsWith('57P') || c.length === 86400",
    "['40', 'x'].includes(c)",
    "c === 'PGRST202'",
    '/(40001|40P01)/.test(c)',
    '/^(08|57P)/.test(c)',
    '/^PGRST/.test(c)',
    "'40001 40P01'.split(' ').includes(c)",
    "c.startsWith('SL')",
  ].flatMap((judged): Plant[] => [
    {
      name: `a SQLSTATE that is judged outside the error table is found: ${judged}`,
      files: {
        'src/start.ts': `import { one } from '#core/one.ts';\nconst c = one('86400', '256MB');\nexport const is = ${judged};\n`,
      },
      found: ['src/start.ts:3 sqlstate'],
    },
  ]),
  {
    name: 'a SQLSTATE is found in scripts and pages, too',
    files: {
      'console/page.tsx': "export const isBusy = (c: string) => c === '40001';\n",
      'tools/a.js': "export const isBusy = (c) => c === '40P01';\n",
    },
    found: ['console/page.tsx:1 sqlstate', 'tools/a.js:1 sqlstate'],
  },
  {
    name: 'the error table and tests may name SQLSTATEs',
    files: {
      'src/start.ts':
        "import { one } from '#core/failure.ts';\nimport '#core/one.ts';\nexport const started = one;\n",
      'db1/supabase/functions/_shared/failure.ts': "export const one = '40P01';\n",
      'test/one.test.ts': "import '../src/start.ts';\nexport const state = 'SL001';\n",
    },
    found: [],
  },
  {
    name: 'a function without a fixed search path is found',
    files: { [MIGRATION]: other(TIDY_FUNCTION).replace("set search_path = ''\n", '') },
    found: [`${MIGRATION}:2 search-path`],
  },
  {
    name: 'a search path that is only set inside the body does not count',
    files: {
      [MIGRATION]: other(TIDY_FUNCTION)
        .replace("set search_path = ''\n", '')
        .replace('select 1;', "set search_path = ''; select 1;"),
    },
    found: [`${MIGRATION}:2 search-path`],
  },
  {
    name: 'a procedure may go without one, because with one it cannot commit',
    files: { [MIGRATION]: asProcedure(other(TIDY_FUNCTION)) },
    found: [],
  },
  {
    name: 'a procedure with its owner’s rights may not',
    files: {
      [MIGRATION]: asProcedure(other(TIDY_FUNCTION)).replace('language sql', 'language sql security definer'),
    },
    found: [`${MIGRATION}:2 search-path`],
  },
  {
    name: 'a function defined in two migrations is found, also when the types are spelled differently',
    files: { [MIGRATION]: `\n${TIDY_FUNCTION.replace('p_a int', 'p_other integer default 3')}` },
    found: [`${MIGRATION}:3 defined-twice`],
  },
  {
    name: 'a function defined twice in one migration is found',
    files: { [MIGRATION]: other(TIDY_FUNCTION) + other(TIDY_FUNCTION) },
    found: [`${MIGRATION}:10 defined-twice`],
  },
  {
    name: 'an overload with other types and the same name in the other database are not found',
    files: {
      [MIGRATION]: TIDY_FUNCTION.replace('p_a int', 'p_a text'),
      'db2/supabase/migrations/1_one.sql': TIDY_FUNCTION,
    },
    found: [],
  },
  {
    name: 'a function of more than 70 lines is found',
    files: { [MIGRATION]: other(TIDY_FUNCTION).replace('select 1;', `select 1;${'\n'.repeat(64)}`) },
    found: [`${MIGRATION}:2 function-length`],
  },
  {
    name: 'a function of 70 lines is not found',
    files: { [MIGRATION]: other(TIDY_FUNCTION).replace('select 1;', `select 1;${'\n'.repeat(63)}`) },
    found: [],
  },
  {
    name: 'a function without a contract above it is found',
    files: { [MIGRATION]: other(TIDY_FUNCTION).replace(/^--.*\n/, '-- about something else\n\n') },
    found: [`${MIGRATION}:3 contract`],
  },
  {
    name: 'upper-case keywords are found in statements and in function bodies',
    files: { [MIGRATION]: `SELECT 1;\n${other(TIDY_FUNCTION).replace('select', 'SELECT')}` },
    found: [`${MIGRATION}:1 lower-case`, `${MIGRATION}:8 lower-case`],
  },
  {
    name: 'upper case in comments, strings and quoted names is not found',
    files: { [MIGRATION]: `-- SELECT\n/* FROM */ select 'IN', "AS", 'it''s AND';\n` },
    found: [],
  },
  {
    name: 'a SQL statement in a TypeScript string is found',
    files: {
      'src/start.ts': 'import "#core/one.ts";\n\nexport const a = `\n  select 1 from t where a = 1`;\n',
    },
    found: ['src/start.ts:3 sql-in-typescript'],
  },
  {
    name: 'each kind of statement is found',
    files: {
      'src/start.ts': [
        'import "#core/one.ts";',
        "export const a = 'insert into t values (1)';",
        "export const b = 'update t set a = 1';",
        "export const c = 'DELETE FROM t';",
        "export const d = 'with x as (select 1) select 1';",
        "export const e = 'create table t ()';",
        "export const f = 'drop function f';",
        "export const g = 'grant select on t to anon';",
      ].join('\n'),
    },
    found: [2, 3, 4, 5, 6, 7, 8].map((line) => `src/start.ts:${line} sql-in-typescript`),
  },
  {
    name: 'SQL where databases are called, migrated and examined, in tests, bench, chaos and comments, is not found',
    files: {
      'src/start.ts':
        "import '#core/one.ts';\nimport './db/a.ts';\nimport './migrate/a.ts';\nimport './doctor/a.ts';\n// 'select 1'\nexport const a = /['`]/.test('x');\n",
      'src/migrate/a.ts': "export const a = 'select 1';\n",
      'src/doctor/a.ts': "export const a = 'select 1';\n",
      'src/db/a.ts': "export const a = 'select 1';\n",
      'test/a.ts': "export const a = 'select 1';\n",
      'bench/a.ts': "export const a = 'select 1';\n",
      'chaos/a.ts': "export const a = 'select 1';\n",
    },
    found: [],
  },
  {
    name: 'raw results are not looked at',
    files: { 'results/bench/a.json': '/work/x\n' },
    found: [],
  },
  {
    name: 'a machine path is found',
    files: { 'docs/a.md': 'first\nsee /work/x and /home/jane/x\n' },
    found: ['docs/a.md:2 machine-path', 'docs/a.md:2 machine-path'],
  },
  {
    name: 'a path that merely contains such a word is not found',
    files: { 'docs/a.md': 'see src/work/x, https://example.org/work/ and /home/<name>/x\n' },
    found: [],
  },
  {
    name: 'the file that leads a second worktree to its repository is not looked at',
    files: { '.git': 'gitdir: /work/x\n' },
    found: [],
  },
  {
    name: 'an address in the lock file is found',
    files: {
      'package-lock.json':
        '{\n  "resolved": "https://example.org/pg.tgz",\n  "resolved": "packages/client"\n}\n',
    },
    found: ['package-lock.json:2 lock-address'],
  },
  {
    name: 'a source file that nothing imports is found, also when dead files import each other',
    files: {
      'src/a.ts': "import './b.ts';\n",
      'src/b.ts': "import './a.ts';\n",
      'db1/supabase/functions/_shared/dead.ts': 'export {};\n',
    },
    found: [
      'db1/supabase/functions/_shared/dead.ts:1 dead-file',
      'src/a.ts:1 dead-file',
      'src/b.ts:1 dead-file',
    ],
  },
  {
    name: 'a source file that the build begins with is not found, one beside it is',
    files: {
      'tools/build.js': "const ENTRIES = { cli: 'src/entry.ts' };\n",
      'src/entry.ts': 'export {};\n',
      'src/entry_too.ts': 'export {};\n',
    },
    found: ['src/entry_too.ts:1 dead-file'],
  },
  {
    name: 'a SQL file under src that nothing names is found, one whose folder is read is not',
    files: {
      'src/start.ts': "import '#core/one.ts';\nexport const a = new URL('./platform/', import.meta.url);\n",
      'src/platform/roles.sql': 'select 1;\n',
      'src/other/roles2.sql': 'select 1;\n',
    },
    found: ['src/other/roles2.sql:1 dead-file'],
  },
  {
    name: 'a TypeScript file of more than 400 lines is found',
    files: { 'test/long.ts': 'export {};\n'.repeat(401) },
    found: ['test/long.ts:401 file-length'],
  },
  {
    name: 'a core file that imports a package, a built-in or a file outside the core is found',
    files: {
      'db1/supabase/functions/_shared/one.ts':
        "import 'pg';\nimport 'node:fs';\nimport '../../../../src/start.ts';\nimport './two.js';\nexport const one = 1;\n",
    },
    found: [1, 2, 3, 4].map((line) => `db1/supabase/functions/_shared/one.ts:${line} core-import`),
  },
  {
    name: 'leftover marks are found',
    files: { 'docs/a.md': 'TODO\nFIXME\nXXX\n' },
    found: [1, 2, 3].map((line) => `docs/a.md:${line} leftover`),
  },
  {
    name: 'a test that is switched off, or that switches others off, is found',
    files: { 'test/a.test.ts': "test.only('a');\ndescribe.skip('b');\n" },
    found: ['test/a.test.ts:1 switched-off', 'test/a.test.ts:2 switched-off'],
  },
  {
    name: 'a timeout that Node 20 forgets is found, one by itself and signals that are aborted by hand are not',
    files: {
      'bin/start.js':
        "import '../src/start.ts';\nconst late = AbortSignal.timeout(9);\nfetch('/', { signal: AbortSignal.any([stop, late]) });\n",
      'test/a.test.ts': "fetch('/', { signal: AbortSignal.timeout(9) });\n",
      'test/b.test.ts': "fetch('/', { signal: AbortSignal.any([stop, other]) });\n",
    },
    found: ['bin/start.js:3 forgotten-timeout'],
  },
  {
    name: 'a runtime dependency without a line in docs/dependencies.md is found, an optional one too',
    files: {
      'package.json':
        '{\n  "dependencies": { "pg": "1" },\n  "optionalDependencies": { "left-pad": "1" },\n  "devDependencies": { "x": "1" }\n}\n',
    },
    found: ['package.json:3 dependency'],
  },
  {
    name: 'a link that leads nowhere is found, one inside a code block is not',
    files: { 'docs/a.md': '[gone](gone.md#x)\n[up](../README.md#there)\n```\n[x](y)\n```\n' },
    found: ['docs/a.md:1 dead-link'],
  },
  {
    name: 'words about who or what typed it are found',
    files: { 'docs/a.md': 'Written by an AI\nwith ChatGPT\n' },
    found: ['docs/a.md:1 off-topic', 'docs/a.md:2 off-topic'],
  },
];

test('in a tidy tree nothing is found', (t) => {
  assert.deepEqual(findingsWith(t, {}), []);
});

for (const { name, files, found } of PLANTS) {
  test(name, (t) => {
    assert.deepEqual(places(findingsWith(t, files)).sort(), [...found].sort());
  });
}

test('a finding names file, line, rule and what to do', (t) => {
  const [finding] = findingsWith(t, { 'docs/a.md': 'one\n[gone](gone.md)\n' });
  assert.equal(finding, 'docs/a.md:2 dead-link gone.md does not exist');
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { checkTidy, formatFinding } from './tidy.ts';

/** A function with everything a function should have. */
export const TIDY_FUNCTION = `-- Answers one. The second call answers the same. Takes no locks.
create function public.one(p_a int)
returns int
language sql
set search_path = ''
as $$
  select 1;
$$;
`;

/** A tree in which there is nothing to find. */
const TIDY_TREE: Readonly<Record<string, string>> = {
  'package.json': '{\n  "dependencies": {\n    "pg": "8.0.0"\n  }\n}\n',
  'package-lock.json': '{ "packages": { "node_modules/pg": { "version": "8.0.0" } } }\n',
  'docs/dependencies.md': '- `pg`: talks to Postgres.\n',
  'README.md': 'See [the list](docs/dependencies.md) and [elsewhere](https://example.org/x).\n',
  'bin/start.js': "import '../src/start.ts';\n",
  'src/start.ts': "import { one } from '#core/one.ts';\nexport const started = one('create', 'select');\n",
  'db1/supabase/functions/_shared/one.ts': 'export const one = (a: string, b: string): string => a + b;\n',
  'db1/supabase/migrations/1_one.sql': TIDY_FUNCTION,
};

/** Writes the tidy tree with `changes` on top into a temporary folder and returns what the checker finds. */
export function findingsWith(t: TestContext, changes: Readonly<Record<string, string>>): string[] {
  const root = mkdtempSync(join(tmpdir(), 'sluice-tidy-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries({ ...TIDY_TREE, ...changes })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return checkTidy(root).map(formatFinding);
}

/** The `file:line rule` part of each finding: tests say where and which, not how it is worded. */
export function places(findings: readonly string[]): string[] {
  return findings.map((finding) => finding.split(' ').slice(0, 2).join(' '));
}

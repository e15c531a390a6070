import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

/** Secrets and what programs leave behind. `docs/deploy_on_supabase.md` has people write functions.env in db1/. */
const IGNORED = [
  'functions.env',
  'db1/functions.env',
  'db1/supabase/functions/functions.env',
  '.env',
  '.env.production',
  'db1/supabase/functions/.env',
  'db1/supabase/.temp/project-ref',
  'db2/supabase/.temp/cli-latest',
  'dist/cli.js',
  'packages/client/dist/index.js',
  'results/2026-11-16/seed-1.json',
];

const KEPT = [
  '.env.example',
  'db1/.env.example',
  'chaos/results/summary.json',
  'src/env.ts',
  'package-lock.json',
];

describe('the files that git is told about', () => {
  let folder: string;
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' });

  // A repository of its own: an unpacked archive of the tree has none, and nothing here depends on what is tracked.
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-git-'));
    git('init', '--quiet');
    for (const file of ['.gitignore', '.gitattributes'])
      copyFileSync(join(PROJECT, file), join(folder, file));
  });
  after(() => rmSync(folder, { recursive: true }));

  it('do not include secrets, builds and raw results, and do include what is kept', () => {
    const ignored = git('check-ignore', '--no-index', ...IGNORED, ...KEPT);
    assert.deepEqual(ignored.trim().split('\n'), IGNORED);
  });

  for (const [file, attribute, value] of [
    ['src/cli.ts', 'eol', 'lf'],
    ['bin/sluice.js', 'eol', 'lf'],
    ['docs/pictures/a.png', 'text', 'unset'],
    ['docs/pictures/a.png', 'diff', 'unset'],
    ['package-lock.json', 'linguist-generated', 'true'],
    ['THIRD_PARTY_NOTICES', 'linguist-generated', 'true'],
    ['src/cli.ts', 'linguist-generated', 'unspecified'],
  ] as const)
    it(`say that ${attribute} of ${file} is ${value}`, () => {
      assert.equal(git('check-attr', attribute, '--', file).trim(), `${file}: ${attribute}: ${value}`);
    });
});

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const MAX_LINES = 60;

describe('AGENTS.md', () => {
  const page = readFileSync(join(PROJECT, 'AGENTS.md'), 'utf8');
  const code = [...page.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);

  it('is short enough to be read whole', () => {
    assert.ok(page.split('\n').length < MAX_LINES);
  });

  it('names only scripts that package.json has', () => {
    const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
    const named = code.flatMap((text) =>
      [...text.matchAll(/npm run ([\w-]+)/g)].map(([, name = '']) => name),
    );
    assert.ok(named.length >= 3, named.join());
    assert.deepEqual(
      named.filter((name) => scripts[name] === undefined),
      [],
    );
  });

  it('names only folders and files that are there', () => {
    const paths = code.flatMap((text) => text.split(' ')).filter((word) => /^[a-z]\w*\/[\w/.-]*$/.test(word));
    assert.ok(paths.length >= 8, paths.join());
    // pgTAP's tests/ stand beside the migrations of each database.
    const isThere = (path: string) =>
      existsSync(join(PROJECT, path)) || existsSync(join(PROJECT, 'db1', 'supabase', path));
    assert.deepEqual(
      paths.filter((path) => !isThere(path)),
      [],
    );
  });
});

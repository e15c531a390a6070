import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../support/dev.ts';

const SRC = join(PROJECT, 'src');
/** Only the command line starts the embedded stack, or looks for one that runs here. */
const KNOW_THE_STACK = ['commands', 'demo', 'stack'];

function sourcesIn(folder: string): string[] {
  return readdirSync(join(SRC, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourcesIn(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
}

describe('the tree', () => {
  it('keeps what a deployed Sluice needs out of src/stack', () => {
    const folders = readdirSync(SRC, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const deployed = folders.map(({ name }) => name).filter((name) => !KNOW_THE_STACK.includes(name));
    const importers = deployed
      .flatMap(sourcesIn)
      .filter((file) => /from '[^']*\/stack\//.test(readFileSync(join(SRC, file), 'utf8')));
    assert.deepEqual(importers, []);
  });
});

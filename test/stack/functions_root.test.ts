import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { functionsRoot } from '../../src/stack/functions_root.ts';
import { PROJECT } from '../support/dev.ts';

test('the functions of a checkout run where they are, and nowhere where their optional package is missing', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-functions-'));
  t.after(() => rmSync(dir, { recursive: true }));
  assert.equal(functionsRoot(PROJECT, join(dir, 'copy')), PROJECT);
  writeFileSync(join(dir, 'package.json'), '{}');
  assert.equal(functionsRoot(dir, join(dir, 'copy')), undefined);
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { deno } from '../../edge/world.ts';

const FILE = 'db1/supabase/functions/webhooks/vectors.test.ts';

let cacheDir: string;
before(() => {
  cacheDir = mkdtempSync(join(tmpdir(), 'sluice-deno-'));
});
after(() => rmSync(cacheDir, { recursive: true }));

test('every case that passes on Node passes on Deno, without any permission', async () => {
  const { code, output } = await deno('test', ['--cached-only', '--no-check', FILE], {}, cacheDir);
  assert.equal(code, 0, output);
  assert.match(output, /ok \| 3 passed \| 0 failed/);
});

test('deno check finds nothing wrong with the verifiers and their cases', async () => {
  const { code, output } = await deno('check', [FILE], {}, cacheDir);
  assert.equal(code, 0, output);
});

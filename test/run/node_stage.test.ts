import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { runTestFiles } from './node_stage.ts';
import type { Outcome } from './outcome.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs test files with the given contents, as the node stage does. */
async function run(contents: readonly string[], leftovers: string[] = []): Promise<Outcome> {
  // Set by the runner that runs us; a runner inside a runner would refuse to work.
  delete process.env.NODE_TEST_CONTEXT;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-run-'));
  try {
    const files = contents.map((content, index) => {
      const file = join(folder, `${index}.test.ts`);
      writeFileSync(
        file,
        `import assert from 'node:assert';\nimport test, { suite } from 'node:test';\n${content}`,
      );
      return file;
    });
    const workspace = { endLeftovers: async () => leftovers, remove: () => undefined };
    return await runTestFiles({ root: ROOT, workspace, print: () => undefined }, files);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const names = (outcome: Outcome): string[] => outcome.failures.map(({ name }) => name.replace(/^.*: /, ''));

test('passed, failed and skipped tests are each counted once, over several files', async () => {
  const outcome = await run([
    `test('a', () => {}); test('b', () => assert.equal(1, 2)); test('c', (t) => t.skip('not today'));`,
    `suite('s', () => { test('d', () => {}); test('e', () => assert.fail('boom')); });`,
  ]);
  assert.equal(outcome.passed, 2);
  assert.deepEqual(names(outcome), ['b', 'e']);
  assert.equal(outcome.skips[0]?.detail, 'not today');
  assert.match(outcome.failures[1]?.detail ?? '', /boom[\s\S]*1\.test\.ts/);
});

test('a suite that is skipped is one skip: its tests do not run, so they do not report', async () => {
  const outcome = await run([
    `suite('why', { skip: 'no browser' }, () => { test('a', () => {}); test('b', () => {}); });`,
    `suite('bare', { skip: true }, () => { test('c', () => {}); }); suite('runs', () => { test('d', () => {}); });`,
  ]);
  const skips = outcome.skips.map(({ name, detail }) => [name.replace(/^.*: /, ''), detail]);
  assert.deepEqual(skips, [
    ['why', 'no browser'],
    ['bare', ''],
  ]);
  assert.deepEqual([outcome.passed, outcome.failures], [1, []]);
});

test('a test with parts does not fail a second time for a part that failed', async () => {
  const outcome = await run([
    `test('whole', async (t) => { await t.test('good', () => {}); await t.test('bad', () => assert.fail()); });`,
  ]);
  assert.equal(outcome.passed, 1);
  assert.deepEqual(names(outcome), ['bad']);
});

test('a file that throws while loading is a failure', async () => {
  const outcome = await run([`throw new Error('cannot load');`]);
  assert.equal(outcome.passed, 0);
  assert.equal(outcome.failures.length, 1);
});

test('a file without tests is a failure', async () => {
  const outcome = await run(['export {};']);
  assert.equal(outcome.passed, 0);
  assert.equal(outcome.failures[0]?.detail, 'the file has no tests');
});

test('a hook that fails is a failure', async () => {
  const outcome = await run([
    `import { after } from 'node:test'; test('a', () => {}); after(() => { throw new Error('hook'); });`,
  ]);
  assert.equal(outcome.failures.length, 1);
});

test('what tests print is not taken for results', async () => {
  const outcome = await run([`console.log('not ok 1 - x'); test('a', () => { console.log('ok 2'); });`]);
  assert.deepEqual(outcome, { passed: 1, failures: [], skips: [] });
});

test('a server that was left running in the workspace is a failure', async () => {
  const outcome = await run([`test('a', () => {});`], ['Postgres (pid 1) was left running']);
  assert.deepEqual(names(outcome), ['processes left behind by tests']);
});

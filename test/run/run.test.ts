import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isAlive } from '../../src/stack/processes.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

type Run = { code: number | null; output: string; remains: string[]; mark: string };
type Options = { env?: NodeJS.ProcessEnv; interruptOn?: string };

/** Runs the whole command on a test file with the given content; interrupts it when the test has made a file. */
async function runCommand(t: TestContext, content: string, options: Options = {}): Promise<Run> {
  const temp = mkdtempSync(join(tmpdir(), 'sluice-command-'));
  t.after(() => rmSync(temp, { recursive: true }));
  chmodSync(temp, 0o755);
  const file = join(temp, 'a.test.ts');
  writeFileSync(file, `import assert from 'node:assert';\nimport test from 'node:test';\n${content}`);
  const { NODE_TEST_CONTEXT: _, CI: __, ...inherited } = process.env;
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/run.ts', file], {
    cwd: ROOT,
    env: { ...inherited, TMPDIR: temp, MARK: join(temp, 'mark'), ...options.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const watcher = watch(temp, (_event, name) => {
    if (name !== null && name === options.interruptOn) child.kill('SIGINT');
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  watcher.close();
  const remains = readdirSync(temp).filter((name) => name.startsWith('sluice-'));
  return { code, output, remains, mark: join(temp, 'mark') };
}

test('a run that passes ends with one plain line and code 0, and removes its folder', async (t) => {
  const { code, output, remains } = await runCommand(t, `test('a', () => {});`);
  assert.equal(output.trimEnd().split('\n').at(-1), '1 passed, 0 failed');
  assert.equal(code, 0);
  assert.deepEqual(remains, []);
});

test('a run that fails repeats the failure in full before the last line and ends with code 1', async (t) => {
  const { code, output } = await runCommand(t, `test('a', () => assert.equal('have', 'want'));`);
  assert.match(output, /FAILED: .*a\.test\.ts: a\n[\s\S]*'have' == 'want'[\s\S]*\n0 passed, 1 failed\n$/);
  assert.equal(code, 1);
});

for (const [what, content] of [
  ['test', `test('a', (t) => t.skip('no registry'));`],
  ['suite', `test.suite('a', { skip: 'no registry' }, () => { test('b', () => {}); });`],
] as const)
  test(`a skipped ${what} is named and passes, but not in CI`, async (t) => {
    const atHome = await runCommand(t, content);
    assert.match(atHome.output, /no registry[\s\S]*\n0 passed, 0 failed, 1 skipped\n$/);
    assert.equal(atHome.code, 0);
    const inCi = await runCommand(t, content, { env: { CI: 'true' } });
    assert.match(inCi.output, /no registry[\s\S]*\n0 passed, 1 failed\n$/);
    assert.equal(inCi.code, 1);
  });

// A server of the stack has a process group of its own and writes its log below TMPDIR; all others are in the run's group.
for (const [what, options] of [
  ['a process', `{ stdio: 'ignore' }`],
  ['a server with a group of its own', `{ detached: true, stdio: ['ignore', log, log] }`],
] as const)
  test(`${what} that a failing test left running is named, ended and a failure`, async (t) => {
    const { code, output, mark } = await runCommand(
      t,
      `import { spawn } from 'node:child_process';
       import { openSync, writeFileSync } from 'node:fs';
       import { tmpdir } from 'node:os';
       test('a', () => {
         const log = openSync(tmpdir() + '/left.log', 'w');
         const left = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'left behind'], ${options});
         left.unref();
         writeFileSync(process.env.MARK ?? '', String(left.pid));
         assert.fail('before it was ended');
       });`,
    );
    const pid = Number(readFileSync(mark, 'utf8'));
    const survived = isAlive(pid);
    if (survived) process.kill(pid, 'SIGKILL');
    assert.equal(survived, false);
    assert.match(output, new RegExp(`processes left behind by tests\\n.*pid ${pid} .*left behind`));
    assert.match(output, /\n0 passed, 2 failed\n$/);
    assert.equal(code, 1);
  });

test('an interrupted run ends its tests with their databases and removes its folder', async (t) => {
  const support = join(ROOT, 'test', 'support', 'databases.ts');
  const { code, output, remains } = await runCommand(
    t,
    `import { writeFileSync } from 'node:fs';
     import { startDatabases } from '${support}';
     test('a', async () => {
       await startDatabases({ db1: false });
       writeFileSync(process.env.MARK ?? '', '');
       await new Promise(() => setInterval(() => {}, 1000));
     });`,
    { interruptOn: 'mark' },
  );
  assert.equal(code, 130, output);
  assert.deepEqual(remains, []);
});

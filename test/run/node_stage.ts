import { readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCommand } from './command.ts';
import { describe, failedOne, type Note, type Outcome, sum } from './outcome.ts';
import type { Stage, StageContext } from './stage.ts';
import { LINE_MARK, type TestLine } from './test_line.ts';

/**
 * All node:test files, each in a process of its own. Those that start `sluice` start the built one, so it is built first, once:
 * tests that run side by side would each build it.
 */
export const nodeTests: Stage = {
  name: 'node',
  run: async (context) => {
    const sluice = join(context.root, 'bin', 'sluice.js');
    const built = await runCommand(process.execPath, [sluice, '--version'], { cwd: context.root });
    if (built.code !== 0) return failedOne('the build that tests start', built.output);
    const files = context.files.length > 0 ? context.files : findTestFiles(context.root);
    return runTestFiles(context, files);
  },
};

function findTestFiles(root: string): string[] {
  return readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join('test', path))
    .sort();
}

export async function runTestFiles(
  { root, workspace, print }: Pick<StageContext, 'root' | 'workspace' | 'print'>,
  files: readonly string[],
): Promise<Outcome> {
  const tally = createTally(root, print);
  const { code, output, leftovers } = await runCommand(
    process.execPath,
    [
      '--import',
      'tsx',
      fileURLToPath(new URL('./node_runner.ts', import.meta.url)),
      ...files.map((file) => resolve(root, file)),
    ],
    { cwd: root, onLine: tally.add },
  );
  const outcome = tally.finish();
  const broken: Note[] = [];
  if (code !== 0 && outcome.failures.length === 0) {
    broken.push({
      name: 'the test runner',
      detail: `ended with code ${code} though no test failed\n${output}`,
    });
  }
  leftovers.push(...(await workspace.endLeftovers()));
  if (leftovers.length > 0)
    broken.push({ name: 'processes left behind by tests', detail: leftovers.join('\n') });
  return sum([outcome, { passed: 0, failures: broken, skips: [] }]);
}

type Tally = { add(line: string): void; finish(): Outcome };

/** Counts the reporter's lines. The runner reports file by file, so a file is done when the next one begins. */
function createTally(root: string, print: (line: string) => void): Tally {
  const outcome: Outcome = { passed: 0, failures: [], skips: [] };
  let current = { file: '', tests: 0, failed: 0, ms: 0 };
  const closeFile = (): void => {
    if (current.tests === 0) return;
    const { file, tests, failed, ms } = current;
    print(`  ${failed === 0 ? 'ok  ' : 'FAIL'} ${file} (${tests} tests, ${(ms / 1000).toFixed(1)} s)`);
  };
  const count = (line: TestLine): void => {
    const file = relative(root, line.file);
    if (file !== current.file) {
      closeFile();
      current = { file, tests: 0, failed: 0, ms: 0 };
    }
    current.tests++;
    current.ms += line.duration_ms;
    const note = { name: `${file}: ${line.name}`, detail: line.detail };
    if (line.outcome === 'passed') outcome.passed++;
    else if (line.outcome === 'skipped') outcome.skips.push(note);
    else {
      current.failed++;
      outcome.failures.push(note);
      print(describe([note], 'FAIL'));
    }
  };
  return {
    // Whatever else a test writes to stdout is not ours to count.
    add: (line) => {
      if (line.startsWith(LINE_MARK)) count(JSON.parse(line.slice(LINE_MARK.length)) as TestLine);
    },
    finish: () => {
      closeFile();
      return outcome;
    },
  };
}

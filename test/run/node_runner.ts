/**
 * Runs the node:test files named as arguments, each in a process of its own, and writes one JSON line per test. The
 * run counts these lines instead of reading the text of a reporter, which differs between Node versions. It is a
 * program and no `--test-reporter`: Node 20 loads reporters before it can read TypeScript.
 */
import { run } from 'node:test';
import { LINE_MARK, type TestLine } from './test_line.ts';

/** One more than the two cores of the smallest machine we promise a time for: files wait for servers and browsers. */
const CONCURRENCY = 3;
/** Far above what any file needs; it only keeps a hanging one from hanging the run. */
const FILE_TIMEOUT_MS = 480_000;

type TestEvent = {
  type: string;
  data: {
    name: string;
    file?: string;
    skip?: string | boolean;
    details: {
      type?: string;
      duration_ms: number;
      error?: Error & { failureType?: string; cause?: unknown };
    };
  };
};

for await (const event of run({
  files: process.argv.slice(2),
  concurrency: CONCURRENCY,
  timeout: FILE_TIMEOUT_MS,
})) {
  const line = toLine(event as TestEvent);
  if (line !== undefined) process.stdout.write(`${LINE_MARK}${JSON.stringify(line)}\n`);
}

function toLine({ type, data }: TestEvent): TestLine | undefined {
  if (type !== 'test:pass' && type !== 'test:fail') return undefined;
  const { error } = data.details;
  const skipped = data.skip !== undefined && data.skip !== false;
  // A group is as good as its parts, which are counted themselves. It counts when it fails by itself (in a hook), and when
  // it is skipped: then its parts do not run, and nothing else tells of them.
  if (type === 'test:pass' && data.details.type === 'suite' && !skipped) return undefined;
  if (error?.failureType === 'subtestsFailed') return undefined;
  const common = {
    name: data.name,
    file: data.file ?? '',
    duration_ms: Math.round(data.details.duration_ms),
  };
  // The runner passes a file that holds no tests, under the name of the file.
  if (type === 'test:pass' && process.argv.includes(data.name)) {
    return { ...common, outcome: 'failed', detail: 'the file has no tests' };
  }
  if (type === 'test:fail') return { ...common, outcome: 'failed', detail: explain(error) };
  if (skipped)
    return { ...common, outcome: 'skipped', detail: typeof data.skip === 'string' ? data.skip : '' };
  return { ...common, outcome: 'passed', detail: '' };
}

function explain(error: (Error & { cause?: unknown }) | undefined): string {
  const cause = error?.cause ?? error;
  if (cause instanceof Error) return cause.stack ?? cause.message;
  return String(cause);
}

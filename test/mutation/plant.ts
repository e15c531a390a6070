// Plants a bug in a copy of the tree and lets the test look for it: the run does not change the checkout.

import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { git } from '../../bench/provenance.ts';
import { StackError } from '../../src/failure.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import type { Bug } from './bugs.ts';

/** found: the named test fails with the bug. broken: it fails without the bug too. missed: it passes with the bug. */
export type Verdict = 'found' | 'broken' | 'missed';
export type Tried = { name: string; was: string; test: string; verdict: Verdict };
/** What is kept: the page of bugs has the rest. */
export type Planted = { planted: number; found: number; bugs: Record<string, Verdict> };

/** A test that is being ended may still write its last file. */
const CLEANING_TRIES = 5;
/** Far longer than any of the tests takes on a busy machine. */
const LIMIT_MS = 300_000;

/** The tracked files as they are, and the packages. */
export function copyTree(): { copy: string; remove(): void } {
  const files = git(PROJECT_ROOT, ['ls-files', '-z'])
    ?.split('\0')
    .filter((file) => file !== '' && existsSync(join(PROJECT_ROOT, file)));
  if (files === undefined)
    throw new StackError('git does not say which files there are', 'plant bugs in a clone');
  const copy = mkdtempSync(join(tmpdir(), 'sluice-bugs-'));
  for (const file of files) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    copyFileSync(join(PROJECT_ROOT, file), join(copy, file));
  }
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(copy, 'node_modules'));
  return { copy, remove: () => rmSync(copy, { recursive: true, force: true, maxRetries: CLEANING_TRIES }) };
}

/** The text with the bug in it; throws where its place is gone: then the bug has to follow the code. */
export function withBug({ name, file, from, to }: Bug, text: string): string {
  const parts = text.split(from);
  if (parts.length !== 2)
    throw new StackError(
      `the bug ${name} does not fit: ${file} has its place ${parts.length - 1} times`,
      'let its patch in test/mutation/planted follow the file',
    );
  return parts.join(to);
}

/** As many at a time as are asked for, each with a copy of its own. */
export async function tryBugs(
  bugs: readonly Bug[],
  concurrency: number,
  onTried: (tried: Tried) => void = () => {},
): Promise<Tried[]> {
  const waiting = [...bugs];
  const tried: Tried[] = [];
  const lane = async (): Promise<void> => {
    const { copy, remove } = copyTree();
    process.once('exit', remove);
    for (let bug = waiting.shift(); bug !== undefined; bug = waiting.shift()) {
      const one = await tryBug(copy, bug);
      tried.push(one);
      onTried(one);
    }
    remove();
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, bugs.length) }, lane));
  return tried;
}

export const plantedOf = (tried: readonly Tried[]): Planted =>
  countOf(Object.fromEntries(tried.map(({ name, verdict }) => [name, verdict])));

/** A bug that was tried again has its new verdict. */
export const joinPlanted = (kept: Planted, added: Planted): Planted =>
  countOf({ ...kept.bugs, ...added.bugs });

function countOf(bugs: Planted['bugs']): Planted {
  const verdicts = Object.values(bugs);
  return { planted: verdicts.length, found: verdicts.filter((one) => one === 'found').length, bugs };
}

export async function tryBug(copy: string, bug: Bug): Promise<Tried> {
  const { name, was, test } = bug;
  const file = join(copy, bug.file);
  const sound = readFileSync(file, 'utf8');
  const bad = withBug(bug, sound);
  if (await isNoticed(copy, bug)) return { name, was, test, verdict: 'broken' };
  writeFileSync(file, bad);
  try {
    return { name, was, test, verdict: (await isNoticed(copy, bug)) ? 'found' : 'missed' };
  } finally {
    writeFileSync(file, sound);
  }
}

/** True where the named test itself fails. A file that cannot be loaded has no such line. */
async function isNoticed(copy: string, { test, finds }: Bug): Promise<boolean> {
  const runner = test.endsWith('.sql') ? ['test/mutation/tap_file.ts'] : ['--test-reporter=tap'];
  const said = await outputOf(copy, ['--import', 'tsx', ...runner, test]);
  return said.split('\n').some((line) => /^\s*not ok \d+ - /.test(line) && line.includes(asTap(finds)));
}

/** TAP writes a backslash before these. */
const asTap = (name: string): string => name.replace(/[\\#]/g, '\\$&');

function outputOf(cwd: string, args: string[]): Promise<string> {
  // Under a test runner of its own, not as a part of the one that may run this.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve, reject) => {
    // A group of its own: with a bug in it a test may hang, or leave a server behind that keeps the pipe open.
    const child = spawn(process.execPath, args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const endGroup = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended, all of it.
      }
    };
    const limit = setTimeout(endGroup, LIMIT_MS);
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    child.on('error', reject);
    child.on('exit', () => {
      clearTimeout(limit);
      endGroup();
    });
    child.on('close', () => resolve(said));
  });
}

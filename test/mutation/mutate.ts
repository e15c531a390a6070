// Runs one part through Stryker in a copy of the project: the run does not change the checkout, and edits do not change the run.

import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import type { Part } from './parts.ts';

/** In the copy. */
const BUNDLES = 'bundles';
/** A test that is being ended may still write its last file. */
const CLEANING_TRIES = 5;
const COPIED = ['package.json', 'db1/supabase/functions/_shared', 'src', 'test'];

/**
 * A mutant that makes its tests this much slower hangs. Long, because a busy machine would otherwise pass for a test that
 * has noticed something.
 */
const TIMEOUT_MS = 10_000;
const TIMEOUT_FACTOR = 3;

export type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number];

export async function mutate(part: Part, concurrency: number): Promise<MutantResult[]> {
  const copy = mkdtempSync(join(tmpdir(), 'sluice-mutation-'));
  const cwd = process.cwd();
  // On a signal Stryker ends the process, and no finally is reached.
  const clean = (): void => rmSync(copy, { recursive: true, force: true, maxRetries: CLEANING_TRIES });
  process.once('exit', clean);
  try {
    for (const path of COPIED) cpSync(join(PROJECT_ROOT, path), join(copy, path), { recursive: true });
    symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(copy, 'node_modules'));
    process.chdir(copy);
    return await new Stryker({
      mutate: [...part.sources],
      testRunner: 'tap',
      plugins: ['@stryker-mutator/tap-runner'],
      tap: {
        testFiles: part.tests.map((test) => test.replace(/^test\/(.*)\.ts$/, `${BUNDLES}/$1.mjs`)),
        nodeArgs: ['-r', '{{hookFile}}', '--test-reporter=tap', '{{testFile}}'],
      },
      buildCommand: `node --import tsx test/mutation/bundle.ts ${BUNDLES} ${part.tests.join(' ')}`,
      inPlace: true,
      coverageAnalysis: 'perTest',
      concurrency,
      timeoutMS: TIMEOUT_MS,
      timeoutFactor: TIMEOUT_FACTOR,
      reporters: ['progress-append-only'],
      allowConsoleColors: false,
      checkers: [],
    }).runMutationTest();
  } finally {
    process.chdir(cwd);
    process.off('exit', clean);
    clean();
  }
}

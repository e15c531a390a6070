// How many mutants some test has noticed.

import type { MutantResult } from './mutate.ts';
import type { Part } from './parts.ts';

export interface PartScore {
  readonly name: string;
  /** How many source files. */
  readonly files: number;
  /** Those that could be judged. */
  readonly mutants: number;
  readonly killed: number;
  /** Noticed too: the tests came to no end. */
  readonly timeout: number;
  /** Those among them that no test reaches. */
  readonly survived: number;
  readonly uncovered: number;
  /** Could not be judged: the file did not even load. They count neither way. */
  readonly errors: number;
  /** Percent. */
  readonly score: number;
}

export function scoreOf(
  { name, sources }: Part,
  results: readonly Pick<MutantResult, 'status'>[],
): PartScore {
  const count = (...wanted: MutantResult['status'][]) =>
    results.filter(({ status }) => wanted.includes(status)).length;
  const killed = count('Killed');
  const timeout = count('Timeout');
  const uncovered = count('NoCoverage');
  const survived = count('Survived') + uncovered;
  const mutants = killed + timeout + survived;
  const score = mutants === 0 ? 0 : Math.floor(((killed + timeout) / mutants) * 1_000) / 10;
  const errors = count('RuntimeError', 'CompileError');
  return { name, files: sources.length, mutants, killed, timeout, survived, uncovered, errors, score };
}

type Scores = { readonly parts: readonly PartScore[] };

/** A part that was measured again is replaced. */
export function joinParts(kept: Scores, added: Scores): Scores {
  const measured = new Set(added.parts.map(({ name }) => name));
  return { parts: [...kept.parts.filter(({ name }) => !measured.has(name)), ...added.parts] };
}

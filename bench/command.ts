// How the commands that measure and test (bench, chaos, model, mutation, fuzz) end when something went wrong.

import { StackError } from '../src/failure.ts';

export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** A mistake of the person at the keyboard: the message is all they need. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}

/** What a person can mend is told in two lines; everything else shows where it happened. Returns the exit code. */
export function reportFailure(error: unknown): number {
  if (error instanceof StackError) {
    console.error(`error: ${error.message}\nhint: ${error.hint}`);
    return EXIT_FAILED;
  }
  const isOption = String((error as { code?: unknown } | null)?.code).startsWith('ERR_PARSE_ARGS');
  if (error instanceof UsageError || isOption) {
    console.error(`${(error as Error).message}\nhint: --help tells more`);
    return EXIT_USAGE;
  }
  console.error(error);
  return EXIT_FAILED;
}

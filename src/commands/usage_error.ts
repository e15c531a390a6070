/** A command was called in a way it does not understand: told in one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

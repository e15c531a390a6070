/** A failure a person can act on: what happened, and what to do about it. Printed without a stack trace. */
export class StackError extends Error {
  readonly hint: string;

  constructor(message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StackError';
    this.hint = hint;
  }
}

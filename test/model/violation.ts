// How a history fails: which promise of DESIGN §6 it broke, how, and what was done until then.

/** `model` is for answers that no promise names: the call did something else than its contract says. */
export type PromiseName =
  | 'I1'
  | 'I2'
  | 'I3'
  | 'I4'
  | 'I5'
  | 'I6'
  | 'I7'
  | 'I8'
  | 'I9'
  | 'I10'
  | 'I11'
  | 'I12'
  | 'I14'
  | 'I15'
  | 'I16'
  | 'I17'
  | 'I18'
  | 'model';

export class Violation extends Error {
  readonly promise: PromiseName;
  readonly detail: string;
  /** What happened, in order, in words; the engine fills it in. */
  history: readonly string[] = [];

  constructor(promise: PromiseName, detail: string) {
    super(`${promise}: ${detail}`);
    this.name = 'Violation';
    this.promise = promise;
    this.detail = detail;
  }
}

export function ensure(holds: boolean, promise: PromiseName, detail: () => string): asserts holds {
  if (!holds) throw new Violation(promise, detail());
}

/** Fails unless both have the same lines, whatever their order; says which side lacks which. */
export function ensureSame(
  promise: PromiseName,
  actual: readonly string[],
  expected: readonly string[],
): void {
  const missing = without(expected, actual);
  const surplus = without(actual, expected);
  ensure(missing.length === 0 && surplus.length === 0, promise, () =>
    [...missing.map((line) => `expected ${line}`), ...surplus.map((line) => `found ${line}`)].join('; '),
  );
}

function without(lines: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return lines.filter((line) => {
    const at = left.indexOf(line);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

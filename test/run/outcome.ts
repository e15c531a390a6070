/** What a stage found. Each test is counted once, in one of the three. */
export type Outcome = { passed: number; failures: Note[]; skips: Note[] };

/** A failure or a skip: what it was, and everything that helps to understand it. */
export type Note = { name: string; detail: string };

export const PASSED_ONE: Outcome = { passed: 1, failures: [], skips: [] };

export function failedOne(name: string, detail: string): Outcome {
  return { passed: 0, failures: [{ name, detail }], skips: [] };
}

export function skippedOne(name: string, detail: string): Outcome {
  return { passed: 0, failures: [], skips: [{ name, detail }] };
}

export function sum(outcomes: readonly Outcome[]): Outcome {
  return {
    passed: outcomes.reduce((total, outcome) => total + outcome.passed, 0),
    failures: outcomes.flatMap((outcome) => outcome.failures),
    skips: outcomes.flatMap((outcome) => outcome.skips),
  };
}

/** A skip is easily overlooked in the log of CI, so there it is a failure. */
export function strict(outcome: Outcome): Outcome {
  const failures = outcome.skips.map(({ name, detail }) => ({
    name,
    detail: `skipped, and in CI nothing may be: ${detail}`,
  }));
  return { passed: outcome.passed, failures: [...outcome.failures, ...failures], skips: [] };
}

/** The one plain line at the end. */
export function lastLine(outcome: Outcome): string {
  const skipped = outcome.skips.length === 0 ? '' : `, ${outcome.skips.length} skipped`;
  return `${outcome.passed} passed, ${outcome.failures.length} failed${skipped}`;
}

export function describe(notes: readonly Note[], heading: string): string {
  return notes.map(({ name, detail }) => `\n${heading}: ${name}\n${indent(detail)}`).join('\n');
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}

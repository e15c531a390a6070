import { type Outcome, sum } from '../run/outcome.ts';

/** Reads TAP as pgTAP writes it into result rows, for one file. */
export type TapReader = {
  /** `line` is where the statement that answered with `text` stands in the file. */
  read(text: string, line: number): void;
  /** Something went wrong outside of a test: an error, a lost connection. */
  fail(line: number, detail: string): void;
  finish(): Outcome;
};

const RESULT = /^(not )?ok (\d+)(?: - )?(.*)$/;
const PLAN = /^1\.\.(\d+)$/;
const SKIP = /# SKIP\b(.*)$/i;

export function createTapReader(file: string): TapReader {
  const outcome: Outcome = { passed: 0, failures: [], skips: [] };
  let planned: number | undefined;
  let seen = 0;
  const readResult = (match: RegExpExecArray, line: number): void => {
    seen++;
    const name = `${file}:${line}: ${match[3]?.trim() || `test ${match[2]}`}`;
    const skip = SKIP.exec(match[3] ?? '');
    if (match[1] !== undefined) outcome.failures.push({ name, detail: '' });
    else if (skip !== null) outcome.skips.push({ name, detail: skip[1]?.trim() ?? '' });
    else outcome.passed++;
  };
  return {
    read: (text, line) => {
      for (const part of text.split('\n')) {
        const result = RESULT.exec(part);
        const plan = PLAN.exec(part);
        const lastFailure = outcome.failures.at(-1);
        if (result !== null) readResult(result, line);
        else if (plan !== null) planned = Number(plan[1]);
        else if (part.startsWith('#') && lastFailure !== undefined) lastFailure.detail += `${part}\n`;
      }
    },
    fail: (line, detail) => {
      outcome.failures.push({ name: `${file}:${line}`, detail });
    },
    finish: () => {
      if (planned === seen) return outcome;
      const detail =
        planned === undefined ? 'the file has no plan' : `planned ${planned} tests but ran ${seen}`;
      return sum([outcome, { passed: 0, failures: [{ name: `${file}: plan`, detail }], skips: [] }]);
    },
  };
}

/** What is known about one finished test, as it travels from the process that runs tests to the one that counts. */
export type TestLine = {
  outcome: 'passed' | 'failed' | 'skipped';
  name: string;
  file: string;
  duration_ms: number;
  detail: string;
};

/** Begins each line that carries a result, so that nothing a test prints can be taken for one. */
export const LINE_MARK = '\u0001';

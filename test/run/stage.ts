import type { Outcome } from './outcome.ts';
import type { Workspace } from './workspace.ts';

export type StageContext = {
  /** The root of the checkout. */
  root: string;
  workspace: Workspace;
  /** Test files named on the command line; empty means all. */
  files: string[];
  print(line: string): void;
};

/** One part of the check. It reports what it found and throws only when it is itself broken. */
export type Stage = { name: string; run(context: StageContext): Promise<Outcome> };

// What every suite gives back, whatever it measures.

import type { World } from './world.ts';

/** One measured way of doing something. Rates are operations a second: medians over the repetitions. */
export type Row = {
  name: string;
  /** Connections to the database, or to the HTTP door. */
  clients: number;
  /** Operations in one statement. */
  batch: number;
  rate: number;
  p50_ms: number;
  p99_ms: number;
  wal_bytes_per_op: number;
  [extra: string]: number | string;
};

/** A promise the run has to keep: `value` times something else, and at least `atLeast`. */
export type Demand = {
  what: string;
  atLeast: number;
  /** Left out where a quick run does not measure it. */
  value?: number;
  /** The same against the friendlier variant of the other side, where there is one. */
  friendlier?: number;
};

/** `value` is left out where a row that it needs was not measured. */
export function demandOf(what: string, atLeast: number, value: number | undefined): Demand {
  return { what, atLeast, ...(value !== undefined && { value }) };
}

export function quotient(one?: number, other?: number): number | undefined {
  return one === undefined || other === undefined ? undefined : one / other;
}

export function demandLine({ what, atLeast, value, friendlier }: Demand): string {
  const verdict = value === undefined ? 'not measured' : value >= atLeast ? 'ok' : 'NOT MET';
  const seen = value === undefined ? '' : `${value.toFixed(2)} `;
  const beside = friendlier === undefined ? '' : `, ${friendlier.toFixed(2)} with the index forced`;
  return `  ${verdict.padEnd(12)} ${what}: ${seen}(at least ${atLeast})${beside}`;
}

/** A row of a suite that measures something else than speed. */
export type AnyRow = { name: string; [extra: string]: number | string };

export type Outcome = {
  settings: Record<string, string>;
  rows: AnyRow[];
  demands: Demand[];
  /** What rows and demands leave out, such as the single rounds; for the person who runs the suite. */
  notes?: string;
};

export type SuiteOptions = {
  quick: boolean;
  /** Another checkout, measured beside this one by the suites that can. */
  against?: string;
  /** Only these rows, of the suites that say which can be chosen; all where left out. */
  rows?: readonly string[];
  /** How long the longest row takes, of the suites that have one. */
  minutes?: number;
  progress(line: string): void;
};

export function isChosen({ rows }: Pick<SuiteOptions, 'rows'>, name: string): boolean {
  return rows === undefined || rows.includes(name);
}

export type Suite = {
  summary: string;
  /** It takes `against`. */
  compares?: boolean;
  /** It takes `minutes`. */
  hasMinutes?: boolean;
  /** Which rows can be chosen; the suite runs as a whole where left out. */
  rowNames?(quick: boolean): string[];
  /** Those of them that are only measured beside another checkout. */
  againstRows?: readonly string[];
  run(options: SuiteOptions): Promise<Outcome>;
  /** Of a suite that takes longer than a sitting: its rows may be kept one by one, and this is what those of several runs come to. */
  demands?(rows: readonly AnyRow[]): Demand[];
  /** The rows of a run, or of a kept summary, as people read them. */
  table(rows: readonly AnyRow[]): string;
};

/** A suite on a world of its own, of which nothing is left when it ends. */
export function defineSuite<Own extends World>(suite: {
  summary: string;
  compares?: boolean;
  againstRows?: readonly string[];
  rowNames(quick: boolean): string[];
  createWorld(): Promise<Own>;
  measure(world: Own, options: SuiteOptions): Promise<Row[]>;
  demands(rows: readonly Row[]): Demand[];
  table(rows: readonly Row[]): string;
}): Suite {
  return {
    summary: suite.summary,
    ...(suite.compares && { compares: true }),
    ...(suite.againstRows && { againstRows: suite.againstRows }),
    rowNames: (quick) => [...new Set(suite.rowNames(quick))],
    async run(options) {
      options.progress('starting two databases');
      const world = await suite.createWorld();
      try {
        const settings = await world.db1.settings();
        const rows = await suite.measure(world, options);
        return { settings, rows, demands: suite.demands(rows) };
      } finally {
        await world.stop();
      }
    },
    table: (rows) => suite.table(rows as readonly Row[]),
  };
}

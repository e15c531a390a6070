// What every suite gives back, whatever it measures.

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

export type Outcome = { settings: Record<string, string>; rows: Row[]; demands: Demand[]; table: string };

export type SuiteOptions = { quick: boolean; progress(line: string): void };

export type Suite = { summary: string; run(options: SuiteOptions): Promise<Outcome> };

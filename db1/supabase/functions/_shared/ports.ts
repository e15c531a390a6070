// What every door needs from the runtime it runs on.

export interface Log {
  /** Asked before fields are put together, so that a silent debug log costs nothing. */
  readonly debugEnabled: boolean;
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Milliseconds since the epoch. */
export type Clock = () => number;

/** What a runtime counts and times. Names and labels are those of docs/metrics.md. */
export interface Metrics {
  count(name: string, labels: Readonly<Record<string, string>>): void;
  observe(name: string, labels: Readonly<Record<string, string>>, seconds: number): void;
}

/** Where nobody collects. */
export const NO_METRICS: Metrics = { count: () => undefined, observe: () => undefined };

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

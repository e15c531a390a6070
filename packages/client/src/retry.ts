// When to try again, and after how long. Web globals only.

export interface RetryOptions {
  /** Tries in all, the first one included. */
  readonly maxTries: number;
  /** From 0 to 1; spreads those who were refused together. */
  readonly random: () => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** Told to wait longer than this, we say so instead of waiting. */
export const LONGEST_RETRY_AFTER_MS = 60_000;
/** What proxies say when the server behind them did not answer. */
const GATEWAY_FAILURES: ReadonlySet<number> = new Set([502, 503, 504]);

/** An answer with Retry-After can succeed when sent again unchanged; of the others only a gateway's may. */
export function mayHelp(status: number, retryAfterMs: number | undefined): boolean {
  if (retryAfterMs !== undefined) return retryAfterMs <= LONGEST_RETRY_AFTER_MS;
  return GATEWAY_FAILURES.has(status);
}

/** Anything from nothing to a cap that doubles, so that a crowd does not come back as one; never before Retry-After. */
export function pauseMs(tries: number, retryAfterMs: number | undefined, random: () => number): number {
  const cap = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1));
  return (retryAfterMs ?? 0) + Math.round(random() * cap);
}

/** Seconds or a date; undefined where it is neither. */
export function retryAfterMs(header: string | null, now = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

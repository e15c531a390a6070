// Limits on waiting. `inTime` and `within` do not trust the work to end by itself: the caller stops waiting at the limit.

/** Returns what the work gives, or throws `late()` after `ms`. The work itself goes on: its starter has to end it. */
export async function inTime<Result>(
  ms: number,
  work: Result | Promise<Result>,
  late: () => Error,
): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

export class TimedOut extends Error {
  override readonly name = 'TimedOut';
}

/**
 * Waits for the work, which has to end by its signal. The signal aborts when `timeoutMs` have passed (TimedOut) or when `stop`
 * aborts (its reason). A timer and a listener hold the signal: AbortSignal.any does not hold an AbortSignal.timeout on Node 20,
 * which forgets it at a garbage collection (nodejs/node#57736).
 */
export async function limited<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  timeoutMs: number,
  stop?: AbortSignal,
): Promise<Result> {
  const givingUp = new AbortController();
  const { signal } = givingUp;
  const timer = setTimeout(() => givingUp.abort(new TimedOut(`not done within ${timeoutMs} ms`)), timeoutMs);
  const onStop = () => givingUp.abort(stop?.reason);
  if (stop?.aborted) onStop();
  stop?.addEventListener('abort', onStop);
  try {
    return await work(signal);
  } finally {
    clearTimeout(timer);
    stop?.removeEventListener('abort', onStop);
  }
}

/**
 * Resolves with what the work gives. Rejects when `timeoutMs` have passed (TimedOut) or when `stop` aborts (its reason),
 * whichever comes first. It then aborts the work's signal and ignores what the work does after that.
 */
export function within<Result>(
  work: (signal: AbortSignal) => Result | Promise<Result>,
  timeoutMs: number,
  stop?: AbortSignal,
): Promise<Result> {
  const race = (signal: AbortSignal): Promise<Result> => {
    const givenUp = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      else signal.addEventListener('abort', () => reject(signal.reason));
    });
    return Promise.race([givenUp, (async () => work(signal))()]);
  };
  return limited(race, timeoutMs, stop);
}

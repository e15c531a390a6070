// A signal for one piece of work, which aborts with that of the whole demo.

/**
 * Node 20 keeps a reference at a signal for each `AbortSignal.any` that names it, for as long as the signal lives. A hundred thousand
 * requests with the demo's own signal would leave as many there.
 */
export async function withOwnSignal<Result>(
  signal: AbortSignal,
  work: (own: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const own = new AbortController();
  const onAbort = () => own.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await work(own.signal);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

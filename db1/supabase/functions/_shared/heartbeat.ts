// Keeps leases alive while their holder works.

import type { Log } from './ports.ts';

/**
 * Extends now and then until stopped; a beat that fails is logged, because the next one may pass. Stopping waits for the
 * beat on the wire: it would hide what a finish has just handed back.
 */
export function startHeartbeat(
  extend: () => Promise<unknown>,
  everyMs: number,
  log: Log,
): () => Promise<void> {
  let beats: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    const beat = extend().catch((error: unknown) => log.warn('heartbeat failed', { cause: error }));
    beats = Promise.all([beats, beat]);
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await beats;
  };
}

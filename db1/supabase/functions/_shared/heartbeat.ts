// Keeps leases alive while their holder works.

import type { Log } from './ports.ts';

export interface Heartbeat {
  /** Waits for the beat on the wire: it would hide what a finish has just handed back. */
  settled(): Promise<void>;
  /** No further beat; waits as `settled` does. */
  stop(): Promise<void>;
}

/** Extends now and then until stopped; a beat that fails is logged, because the next one may pass. */
export function startHeartbeat(extend: () => Promise<unknown>, everyMs: number, log: Log): Heartbeat {
  let beats: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    const beat = extend().catch((error: unknown) => log.warn('heartbeat failed', { cause: error }));
    beats = Promise.all([beats, beat]);
  }, everyMs);
  const settled = async (): Promise<void> => {
    await beats;
  };
  return {
    settled,
    async stop() {
      clearInterval(timer);
      await settled();
    },
  };
}

// Does something again and again, whatever happens to the database meanwhile.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#core/ports.ts';

export interface Loop {
  stop(): Promise<void>;
}

/** Runs `turn` every `everyMs`, one at a time. An outage is told when it begins and when it ends, not every time. */
export function startLoop(
  name: string,
  everyMs: number,
  log: Log,
  turn: (signal: AbortSignal) => Promise<void>,
): Loop {
  const stopping = new AbortController();
  const { signal } = stopping;
  let isFailing = false;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await turn(signal);
        if (isFailing) log.info(`${name} goes on`);
        isFailing = false;
      } catch (error) {
        if (!isFailing) log.warn(`${name} failed; it tries again until it succeeds`, { cause: error });
        isFailing = true;
      }
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

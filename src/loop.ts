// Does something again and again, whatever happens to the database meanwhile.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '#core/ports.ts';

export interface Loop {
  /** Resolves when the turn under way has ended. */
  stop(): Promise<void>;
}

export interface FallibleLoop extends Loop {
  /** Whether the last turn failed. */
  readonly isFailing: boolean;
}

/** One turn at a time, with a pause after each. A turn deals with its own failures. */
export function startTurns(pauseMs: number, turn: (signal: AbortSignal) => Promise<void>): Loop {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await turn(signal);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
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

/** Turns `pauseMs` apart that may fail. An outage is told when it begins and when it ends, not every time. */
export function startLoop(
  name: string,
  pauseMs: number,
  log: Log,
  turn: (signal: AbortSignal) => Promise<void>,
): FallibleLoop {
  let isFailing = false;
  const turns = startTurns(pauseMs, async (signal) => {
    try {
      await turn(signal);
      if (isFailing) log.info(`${name} goes on`);
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn(`${name} failed; it tries again until it succeeds`, { cause: error });
      isFailing = true;
    }
  });
  return {
    stop: turns.stop,
    get isFailing() {
      return isFailing;
    },
  };
}

/** A process that ends waits so long for a database that is silent. */
const LAST_MS = 2_000;

/** Waits for the last work of a process, and for no longer than 2 s. The work deals with its own failures, and may go on. */
export function last(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LAST_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

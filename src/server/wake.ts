// Tells waiting workers that the queue has work, after the claims have committed and from another connection: a notify
// inside the claim would make all claims queue up for one lock.

import type { Log } from '#core/ports.ts';
import type { Database } from '../db/database.ts';

/** Ten times a second is at once for a person, and costs nothing in a burst. */
const AT_MOST_EVERY_MS = 100;

export interface Wake {
  (): void;
  /** Resolves when the last word is out; nothing is said afterwards. */
  stop(): Promise<void>;
}

/** Hears of new work: the caller's own workers by `onWork`, all others by the database's function of that name. */
export function wakeWorkers(
  database: Pick<Database, 'call'>,
  functionName: string,
  log: Log,
  onWork: (() => void) | undefined,
): Wake {
  return createWake(async () => {
    onWork?.();
    // Without the word they look by themselves a moment later.
    await database
      .call(functionName, {})
      .catch((error: unknown) => log.debug('workers not woken', { cause: error }));
  });
}

/** The first call speaks at once; more within the interval become one at its end. `say` must not reject. */
export function createWake(say: () => Promise<void>, everyMs = AT_MOST_EVERY_MS): Wake {
  let timer: NodeJS.Timeout | undefined;
  let isWanted = false;
  let isStopped = false;
  let saying: Promise<void> = Promise.resolve();

  const speak = (): void => {
    isWanted = false;
    saying = say();
    timer = setTimeout(() => {
      timer = undefined;
      if (isWanted) speak();
    }, everyMs);
    // A pending wake-up must not keep a process alive.
    timer.unref();
  };
  const wake = (): void => {
    if (isStopped) return;
    if (timer === undefined) speak();
    else isWanted = true;
  };
  return Object.assign(wake, {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await saying;
      if (isWanted) await say();
    },
  });
}

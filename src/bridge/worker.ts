// Takes steps of the bridge, or of the webhook processor, until it is stopped.

import { setTimeout as sleep } from 'node:timers/promises';
import { toHttpError } from '#core/failure.ts';
import type { Log } from '#core/ports.ts';

/** How long an idle worker rests when nobody wakes it. */
const IDLE_MS = 250;
/** After a failure of the database itself: nothing can be read, so there is no hurry. */
const FAILURE_MS = 1_000;

export interface Worker {
  /** There is something to do: cuts an idle rest short. */
  wake(): void;
  /** Finishes or hands back what it holds. */
  stop(): Promise<void>;
}

export function startWorker<Report extends { readonly total: number }>(
  worker: { step(signal: AbortSignal): Promise<Report> },
  log: Log,
  onStep: (report: Report) => void = () => undefined,
): Worker {
  const stopping = new AbortController();
  let rest = new AbortController();
  // A wake that comes while a step looks at the queue is about work that step may not have seen.
  let isAwake = false;
  const restFor = async (ms: number): Promise<void> => {
    if (isAwake) return;
    rest = new AbortController();
    const signal = AbortSignal.any([rest.signal, stopping.signal]);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  };
  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      isAwake = false;
      try {
        const report = await worker.step(stopping.signal);
        onStep(report);
        if (report.total === 0) await restFor(IDLE_MS);
      } catch (error) {
        // The database could not be read or finished: the leases run out and the work comes back.
        log.error('worker step failed', { code: toHttpError(error).kind.code, cause: error });
        isAwake = false;
        await restFor(FAILURE_MS);
      }
    }
  };
  const running = run();
  return {
    wake() {
      isAwake = true;
      rest.abort();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

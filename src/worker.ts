// A lease worker that runs in this process until it is stopped.

import type { Outcomes } from '#core/lease_worker.ts';

export interface Worker {
  /** There is something to do: cuts an idle rest short. */
  wake(): void;
  /** Finishes or hands back what it holds. */
  stop(): Promise<void>;
}

export function startWorker(
  worker: {
    run(signal: AbortSignal, onGroup?: (outcomes: Outcomes) => void): Promise<void>;
    wake(): void;
  },
  onGroup?: (outcomes: Outcomes) => void,
): Worker {
  const stopping = new AbortController();
  const running = worker.run(stopping.signal, onGroup);
  return {
    wake: () => worker.wake(),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

// What the demo itself cost: on one machine with the servers, it is part of what they could have had.

import { availableParallelism } from 'node:os';

export interface Load {
  readonly cores: number;
  /** Processor time of this process. */
  readonly cpuMs: number;
  /** How long the meter ran. */
  readonly elapsedMs: number;
  /** The most memory that this process has had. */
  readonly memoryMb: number;
}

const KB_PER_MB = 1_024;
const MICROS_PER_MS = 1_000;

export function startLoadMeter(): () => Load {
  const begun = process.cpuUsage();
  const begunMs = performance.now();
  return () => {
    const { user, system } = process.cpuUsage(begun);
    return {
      cores: availableParallelism(),
      cpuMs: (user + system) / MICROS_PER_MS,
      elapsedMs: performance.now() - begunMs,
      memoryMb: Math.round(process.resourceUsage().maxRSS / KB_PER_MB),
    };
  };
}

// `--processes` of `serve` and `work`.

import { MAX_PROCESSES } from '../processes/part.ts';
import type { Order } from '../processes/supervisor.ts';

export const PROCESSES_OPTION = {
  range: [1, MAX_PROCESSES],
  default: 1,
  about: 'processes that share the port and the limits',
} as const;

/** For the help pages of both. */
export const PROCESSES_ABOUT = `With --processes one more process supervises: it starts a process that died again, and on SIGHUP restarts them one at a time.
Limits hold for all of them together, and /metrics shows the sum.`;

/** As many processes with the words that this one was started with. */
export function ordersOf(title: 'server' | 'worker', processes: number): Order[] {
  return Array.from({ length: processes }, (_, index) => ({
    name: `${title} ${index + 1}`,
    args: process.argv.slice(2),
    part: { index, of: processes },
    isServer: title === 'server',
  }));
}

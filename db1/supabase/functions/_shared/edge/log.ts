// The log of an Edge Function: the platform takes each line as it is written.

import { createLineLog, LEVELS } from '../log.ts';
import type { Log } from '../ports.ts';

/** `wanted` is the least important level to write; an unknown one counts as info. */
export function createEdgeLog(wanted: string | undefined, write: (line: string) => void): Log {
  return createLineLog(LEVELS.find((level) => level === wanted) ?? 'info', write);
}

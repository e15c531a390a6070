// Calls become rows, many in one statement. The answer comes after the commit.

import { Coalescer } from '../coalescer.ts';
import { mayBeOneMembers } from '../failure.ts';
import type { Turn } from '../ports.ts';
import type { Call, CallStore, RecordedCall } from './store.ts';

/** A flush carries at most this much payload: 256 of the largest would be 16 MB in one statement. */
const MAX_FLUSH_CHARS = 4 * 1024 * 1024;

export function createCallRecorder(
  store: Pick<CallStore, 'recordCalls'>,
  turn?: Turn,
): Coalescer<Call, RecordedCall> {
  return new Coalescer((calls) => store.recordCalls(calls), {
    keyOf: (call) => call.siteId,
    weigh: (call) => call.payload.length,
    maxWeight: MAX_FLUSH_CHARS,
    mayBeOneMembers,
    ...(turn && { turn }),
  });
}

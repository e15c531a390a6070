// The inbox behind the Edge Functions: DB1 over PostgREST, one cell.

import type { CallFunction } from '../call_function.ts';
import { Inbox } from '../inbox/inbox.ts';
import { createInboxCell } from '../inbox/store.ts';
import { type Log, NO_METRICS } from '../ports.ts';
import { toBase64 } from '../webhook/bytes.ts';

/** `db1` takes names of functions in schema public of DB1. */
export function createEdgeInbox(db1: CallFunction, log: Log): Inbox {
  return new Inbox({
    cells: [createInboxCell('db1', db1)],
    toBase64,
    now: Date.now,
    log,
    metrics: NO_METRICS,
  });
}

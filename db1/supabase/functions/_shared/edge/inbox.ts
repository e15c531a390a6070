// The inbox behind the Edge Functions: DB1 over PostgREST, one cell; and what carries it on.

import type { CallFunction } from '../call_function.ts';
import { createCallStore } from '../calls/store.ts';
import { Carrier } from '../inbox/carrier.ts';
import { copyDoors } from '../inbox/copy_doors.ts';
import { Inbox } from '../inbox/inbox.ts';
import { createInboxCell, createInboxQueue } from '../inbox/store.ts';
import { type Log, NO_METRICS } from '../ports.ts';
import { bytesOf, toBase64 } from '../webhook/bytes.ts';
import { createWebhookStore } from '../webhook/store.ts';
import type { BridgeWorkerPorts } from './bridge_worker.ts';

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

/** `db2` gives what calls functions of that schema of DB2. */
export function carrierPorts(
  db1: CallFunction,
  db2: (schema: string) => CallFunction,
  log: Log,
): Pick<BridgeWorkerPorts, 'inbox' | 'copyDoors'> {
  const webhook = db2('webhook');
  const calls = db2('calls');
  return {
    inbox: () =>
      new Carrier({
        queue: createInboxQueue(db1),
        events: createWebhookStore(webhook, toBase64),
        calls: createCallStore(calls),
        fromBase64: bytesOf,
        // Workers look by themselves.
        wake: () => undefined,
        log,
        metrics: NO_METRICS,
        now: Date.now,
      }),
    copyDoors: () => copyDoors(webhook, [db1], log),
  };
}

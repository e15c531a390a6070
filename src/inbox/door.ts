// The inbox as a server's doors have it: connections to the cells that nothing else uses, and the loop that keeps the copy of
// endpoints and sites.

import type { CallFunction } from '#core/call_function.ts';
import { COPY_MS, copyDoors } from '#core/inbox/copy_doors.ts';
import { Inbox } from '#core/inbox/inbox.ts';
import { createInboxCell } from '#core/inbox/store.ts';
import type { Log, Metrics } from '#core/ports.ts';
import { DELIVERY_MS } from '#core/router.ts';
import { createDatabase } from '../db/database.ts';
import { base64Of } from '../db/values.ts';
import type { CellAddress } from '../fleet/addresses.ts';
import { startLoop } from '../loop.ts';

export interface OpenInbox {
  readonly inbox: Inbox;
  end(): Promise<void>;
}

/** One commits what has come while the other commits; looks and the copy share them. */
const CELL_CONNECTIONS = 2;
/** The next copy comes soon, and a server that stops waits for this one. */
const COPY_TIMEOUT_MS = 5_000;
const APPLICATION = 'sluice-inbox';

/** `isCopying`: it keeps the copy of endpoints and sites too. */
export function openInbox(
  cells: readonly CellAddress[],
  db2Url: string,
  metrics: Metrics,
  log: Log,
  isCopying = true,
): OpenInbox {
  const open = (url: string, max: number, callTimeoutMs: number) =>
    createDatabase({ url, max, applicationName: APPLICATION, callTimeoutMs, log });
  const opened = cells.map(({ name, url }) => {
    const database = open(url, CELL_CONNECTIONS, DELIVERY_MS);
    const call: CallFunction = (functionName, args) => database.call(`public.${functionName}`, args);
    return { name, database, call };
  });
  const ledger = open(db2Url, 1, COPY_TIMEOUT_MS);
  const inbox = new Inbox({
    cells: opened.map(({ name, call }) => createInboxCell(name, call)),
    toBase64: base64Of,
    now: Date.now,
    log,
    metrics,
  });
  const copying = isCopying
    ? startLoop('copying endpoints and sites to DB1', COPY_MS, log, () =>
        copyDoors(
          (name, args) => ledger.call(`webhook.${name}`, args),
          opened.map(({ call }) => call),
          log,
        ),
      )
    : undefined;
  return {
    inbox,
    async end() {
      await Promise.all([copying?.stop(), inbox.drain()]);
      await Promise.all([ledger.end(), ...opened.map(({ database }) => database.end())]);
    },
  };
}

// The cells of a fleet as the workers of paid orders ask them.

import type { CallFunction } from '#core/call_function.ts';
import type { OrderCell, OrderCells } from '#core/orders/ports.ts';
import type { Log } from '#core/ports.ts';
import { createDatabase, type Database } from '../db/database.ts';
import type { CellAddress } from '../fleet/addresses.ts';
import { openWatch } from '../fleet/cells.ts';
import { Fleet, type FleetCell } from '../fleet/fleet.ts';
import { type Wake, wakeWorkers } from '../server/wake.ts';

export interface WorkerCell extends FleetCell, OrderCell {
  /** Claims were paid for, and can be carried. */
  readonly wake: Wake;
  end(): Promise<void>;
}

/** Settlements of one cell side by side, and what the closer asks beside them. */
const CELL_CONNECTIONS = 4;

/** `onWork` hears of claims that can be carried, for workers in this process. */
export function openWorkerFleet(
  cells: readonly CellAddress[],
  applicationName: string,
  log: Log,
  onWork?: () => void,
): Fleet<WorkerCell> {
  const isOne = cells.length === 1;
  return new Fleet(
    cells.map((address) => openCell(address, isOne, applicationName, log, onWork)),
    log,
  );
}

function openCell(
  address: CellAddress,
  isOne: boolean,
  applicationName: string,
  log: Log,
  onWork?: () => void,
): WorkerCell {
  const { name, url } = address;
  const database = createDatabase({ url, max: CELL_CONNECTIONS, applicationName, log });
  const watcher = isOne ? database : openWatch(address, log);
  const publicOf =
    (to: Database): CallFunction =>
    (functionName, args) =>
      to.call(`public.${functionName}`, args);
  const wake = wakeWorkers(database, 'public.bridge_wake', log, onWork);
  return {
    name,
    call: publicOf(database),
    watch: publicOf(watcher),
    wake,
    async end() {
      await wake.stop();
      await Promise.all([database.end(), isOne ? undefined : watcher.end()]);
    },
  };
}

export function orderCells(fleet: Fleet<WorkerCell>): OrderCells {
  return {
    isOne: fleet.isOne,
    onOrder: (orderId, ask) => fleet.onClaim(orderId, ask),
    likely: (orderId) => fleet.likely(orderId),
  };
}

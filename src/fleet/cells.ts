// The databases of each cell that a server works with: a claim lane, its side lane, and the rest, as one intake has them.

import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import { ASIDE_CONNECTIONS } from '#core/side_lane.ts';
import {
  createDatabase,
  type Database,
  type DatabaseOptions,
  LANE_LOCK_TIMEOUT_MS,
  REBUILD_TIMEOUT_MS,
} from '../db/database.ts';
import { type Wake, wakeWorkers } from '../server/wake.ts';
import type { CellAddress } from './addresses.ts';
import type { FleetCell } from './fleet.ts';

export interface ServerCell extends FleetCell {
  /** The one connection that claims. */
  readonly lane: Database;
  /** For pools that are stuck. */
  readonly aside: Database;
  /** For everything that must not wait behind a batch. */
  readonly rest: Database;
  /** Functions of schema public, over `rest`. */
  readonly call: CallFunction;
  readonly wake: Wake;
  end(): Promise<void>;
}

/** A second claiming connection gained nothing on two cores: the batches only get smaller. */
const LANE_CONNECTIONS = 1;
const REST_CONNECTIONS = 4;
/** A question about a cell that takes longer has found a cell that is away. */
const WATCH_TIMEOUT_MS = 4_000;

/** `isOne`: it is the only cell, so it is not watched. */
export function openServerCell(
  { name, url }: CellAddress,
  isOne: boolean,
  onClaimed: (() => void) | undefined,
  log: Log,
): ServerCell {
  const open = (max: number, applicationName: string, timeouts: Partial<DatabaseOptions> = {}) =>
    createDatabase({ url, max, applicationName, ...timeouts, log });
  const lane = open(LANE_CONNECTIONS, 'sluice-claims', { lockTimeoutMs: LANE_LOCK_TIMEOUT_MS });
  const aside = open(ASIDE_CONNECTIONS, 'sluice-claims-aside', {
    lockTimeoutMs: LANE_LOCK_TIMEOUT_MS,
    callTimeoutMs: REBUILD_TIMEOUT_MS,
  });
  const rest = open(REST_CONNECTIONS, 'sluice-server');
  const watcher = isOne ? rest : openWatch({ name, url }, log);
  const wake = wakeWorkers(rest, 'public.bridge_wake', log, onClaimed);
  return {
    name,
    lane,
    aside,
    rest,
    wake,
    call: (functionName, args) => rest.call(`public.${functionName}`, args),
    watch: (functionName, args) => watcher.call(`public.${functionName}`, args),
    async end() {
      await wake.stop();
      await Promise.all([lane.end(), aside.end(), rest.end(), isOne ? undefined : watcher.end()]);
    },
  };
}

/** The connection on which a cell is watched, and its directory read. */
export function openWatch({ url }: CellAddress, log: Log): Database {
  return createDatabase({
    url,
    max: 1,
    applicationName: 'sluice-directory',
    callTimeoutMs: WATCH_TIMEOUT_MS,
    log,
  });
}

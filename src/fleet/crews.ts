// The workers of all cells in this process: each cell has a crew, a carrier of its inbox and a scheduler of its own, with its own connections, lanes and
// breakers, and all crews carry to the one ledger. A cell that is down stops its own crew only.

import { isUnavailable } from '#core/failure.ts';
import type { Outcomes } from '#core/lease_worker.ts';
import type { Log } from '#core/ports.ts';
import { type CrewOptions, type Drained, drainOnce, startCrew } from '../bridge/crew.ts';
import { carryInboxOnce, type InboxCrewOptions, startInboxCrew } from '../inbox/crew.ts';
import { doesChores, WHOLE } from '../processes/part.ts';
import { startScheduler } from '../scheduler/scheduler.ts';
import type { Worker } from '../worker.ts';
import { type CellAddress, cellsOf, type FleetOptions } from './addresses.ts';

export type FleetCrewOptions = Omit<CrewOptions, 'db1Url'> &
  FleetOptions &
  Pick<InboxCrewOptions, 'onRecorded'>;

/** Runs until stopped. The first process of a command also carries inboxes and runs the cron jobs of cells that have no pg_cron. */
export function startCellCrews(options: FleetCrewOptions): Worker {
  const hasChores = doesChores(options.part ?? WHOLE);
  const parts = eachCell(options).map((crew) => ({
    crew: startCrew(crew),
    ...(hasChores && {
      inbox: startInboxCrew(inboxOf(crew)),
      scheduler: startScheduler({ db1Url: crew.db1Url, log: crew.log }),
    }),
  }));
  return {
    wake() {
      for (const { crew } of parts) crew.wake();
    },
    async stop() {
      await Promise.all(parts.flatMap((part) => Object.values(part).map((one) => one.stop())));
    },
  };
}

/** Works until no cell has anything ready. `away` names the cells that could not be read; with one cell that throws. */
export async function drainCells(
  options: FleetCrewOptions,
  signal: AbortSignal,
): Promise<Drained & { away: string[] }> {
  const totals: Outcomes = {};
  const away: string[] = [];
  const add = (outcome: string, count: number): void => {
    totals[outcome] = (totals[outcome] ?? 0) + count;
  };
  let isPaused = false;
  const cells = cellsOf(options);
  for (const [at, crew] of eachCell(options).entries()) {
    try {
      const drained = await drainOnce(crew, signal);
      const inbox = await carryInboxOnce(inboxOf(crew), signal);
      for (const [outcome, count] of Object.entries(drained.totals)) add(outcome, count);
      for (const [outcome, count] of Object.entries(inbox.totals)) add(`inbox_${outcome}`, count);
      isPaused ||= drained.isPaused || inbox.isPaused;
    } catch (error) {
      if (cells.length === 1 || !isUnavailable(error)) throw error;
      options.log.warn('a cell is away; what waits there waits on', { cell: cells[at]?.name, cause: error });
      away.push(cells[at]?.name ?? '');
    }
  }
  return { totals, isPaused, away };
}

/** The inbox has leases of its own length. */
function inboxOf({ db1Url, db2Url, metrics, log, onRecorded }: CellCrewOptions): InboxCrewOptions {
  return { db1Url, db2Url, metrics, log, ...(onRecorded && { onRecorded }) };
}

type CellCrewOptions = CrewOptions & Pick<InboxCrewOptions, 'onRecorded'>;

function eachCell(options: FleetCrewOptions): CellCrewOptions[] {
  const cells = cellsOf(options);
  return cells.map((cell) => ({
    ...options,
    db1Url: cell.url,
    log: cells.length > 1 ? logOf(options.log, cell) : options.log,
  }));
}

/** Lines of a crew name its cell, where there are several. */
function logOf(log: Log, { name: cell }: CellAddress): Log {
  const tell =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields: Record<string, unknown> = {}): void =>
      log[level](message, { cell, ...fields });
  return {
    get debugEnabled() {
      return log.debugEnabled;
    },
    debug: tell('debug'),
    info: tell('info'),
    warn: tell('warn'),
    error: tell('error'),
  };
}

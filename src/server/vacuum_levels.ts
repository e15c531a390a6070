// Whether vacuum keeps up in both databases. Claims, messages and events are updated all the time: where dead rows stay, each look
// at the queue walks over more of them.

import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import type { Page } from '../metrics.ts';
import { databasePage, type Level, type Timing } from './database_page.ts';
import type { MeasuredCell } from './intake_levels.ts';

/** What public.vacuum_levels answers, in either database. */
export interface VacuumLevels {
  /** The owner of the function: what it may not see is not known. */
  readonly role: string;
  readonly tables: readonly VacuumedTable[];
  /** Null where nothing keeps vacuum from removing rows. */
  readonly snapshot: OldestSnapshot | null;
}

export interface VacuumedTable {
  /** With its schema. */
  readonly name: string;
  readonly live_rows: number;
  readonly dead_rows: number;
  /** Null before the first vacuum. */
  readonly vacuum_age_sec: number | null;
}

export interface OldestSnapshot {
  readonly kind: 'session' | 'standby' | 'prepared transaction' | 'replication slot';
  readonly pid: number | null;
  /** Of the application, the standby, the prepared transaction or the slot. */
  readonly name: string | null;
  readonly state: string | null;
  readonly age_xacts: number;
  /** Null where it is not known. */
  readonly age_sec: number | null;
}

const LEVELS: readonly Level<VacuumLevels>[] = [
  {
    name: 'sluice_table_dead_rows',
    help: 'Rows that were updated or deleted and that vacuum has not removed yet, from the statistics.',
    labels: ['table'],
    read: ({ tables }) => tables.map(({ name, dead_rows }) => [dead_rows, { table: name }]),
  },
  {
    name: 'sluice_table_live_rows',
    help: 'Rows of the same tables that are alive, from the statistics.',
    labels: ['table'],
    read: ({ tables }) => tables.map(({ name, live_rows }) => [live_rows, { table: name }]),
  },
  {
    name: 'sluice_table_vacuum_age_seconds',
    help: 'How long ago the last vacuum of the table ended.',
    labels: ['table'],
    read: ({ tables }) =>
      tables.flatMap(({ name, vacuum_age_sec: age }) =>
        age === null ? [] : [[age, { table: name }] as const],
      ),
  },
  {
    name: 'sluice_oldest_snapshot_seconds',
    help: 'How long the oldest snapshot has kept vacuum from removing rows; missing where that is not known.',
    read: ({ snapshot }) => {
      const age = snapshot === null ? 0 : snapshot.age_sec;
      return age === null ? [] : [[age]];
    },
  },
  {
    name: 'sluice_oldest_snapshot_transactions',
    help: 'How many transactions have begun since the oldest snapshot.',
    read: ({ snapshot }) => [[snapshot?.age_xacts ?? 0]],
  },
];

export async function readVacuumLevels(call: CallFunction): Promise<VacuumLevels | undefined> {
  return (await call<{ vacuum_levels: VacuumLevels }>('vacuum_levels', {}))[0]?.vacuum_levels;
}

/** `callLedger` takes names of functions in schema public of DB2. Where there are several cells, those of DB1 have the label `cell`. */
export function createVacuumLevels(
  cells: readonly MeasuredCell[],
  callLedger: CallFunction,
  log: Log,
  timing?: Timing,
): Page {
  const looks = [
    ...cells.map(({ name, call }) => ({
      labels: cells.length > 1 ? { database: 'DB1', cell: name } : { database: 'DB1' },
      look: () => readVacuumLevels(call),
    })),
    { labels: { database: 'DB2' }, look: () => readVacuumLevels(callLedger) },
  ];
  return databasePage({ database: 'a database', looks, levels: LEVELS }, log, timing);
}

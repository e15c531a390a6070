// Cells that lose what was acknowledged, on purpose: a check that finds nothing here would find nothing anywhere.

import { setTimeout as pause } from 'node:timers/promises';
import { Connection } from '../../src/db/connection.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { putOnSale, startTestServer } from '../../test/server/support.ts';
import { startDatabases } from '../../test/support/databases.ts';
import { Cell, type CellOptions } from './cell.ts';
import { findLost } from './check.ts';
import { FAULTS } from './faults.ts';
import { CLAIM_POOL, Load } from './load.ts';

export interface CellControl {
  readonly name: string;
  /** What is broken, for people. */
  readonly why: string;
  readonly fault: string;
  readonly settings?: CellOptions['settings'];
  /** Applied to the intake after the migrations. */
  readonly patch?: string;
  readonly ignoresNotice?: true;
}

const SLOTS = 20_000;
const BUYERS = 8;
const ACKNOWLEDGED = 100;

export const CELL_CONTROLS: readonly CellControl[] = [
  {
    name: 'none',
    why: 'nothing is broken: this one must lose nothing',
    fault: 'cancel-waits',
  },
  {
    name: 'asynchronous',
    why: 'commits do not wait for a standby',
    fault: 'lag-kill',
    settings: {
      synchronous_mode: false,
      synchronous_mode_strict: false,
      maximum_lag_on_failover: 1_000_000_000,
    },
  },
  {
    name: 'no barrier',
    why: 'an answer that writes nothing (`same`) does not wait for a standby',
    fault: 'cancel-waits',
    patch: `create or replace function public.answer_in_cell() returns void
      language plpgsql set search_path = '' as $$ begin end $$`,
  },
  {
    name: 'notice ignored',
    why: 'a cancelled wait counts as a success, as the driver has it',
    fault: 'cancel-waits',
    ignoresNotice: true,
  },
];

export interface ControlResult {
  readonly name: string;
  readonly why: string;
  readonly acknowledged: number;
  readonly lost: number;
}

export async function runCellControl(control: CellControl): Promise<ControlResult> {
  const { name, why, settings, patch } = control;
  const { assertCertain } = Connection.prototype;
  const [cell, ledger] = await Promise.all([
    Cell.start({ side: 'db1', ...(settings && { settings }) }),
    startDatabases({ db1: false }),
  ]);
  try {
    await withClient(cell.url, async (client) => {
      await putOnSale(client, CLAIM_POOL, SLOTS);
      if (patch !== undefined) await client.query(patch);
    });
    const primary = await cell.ready();
    if (control.ignoresNotice) Connection.prototype.assertCertain = () => undefined;
    const server = await startTestServer({ db1: cell, db2: ledger.db2 });
    const load = new Load({ port: () => server.port, clients: { claim: BUYERS }, run: name });
    await more(load);
    await FAULTS.find((fault) => fault.name === control.fault)?.break(cell, primary);
    await cell.heal();
    await more(load);
    const told = await load.stop();
    await server.stop();
    const lost = await findLost(told, { db1Url: cell.url });
    return { name, why, acknowledged: told.length, lost: lost.length };
  } finally {
    Connection.prototype.assertCertain = assertCertain;
    await Promise.all([cell.remove(), ledger.stop()]);
  }
}

async function more({ tally }: Load): Promise<void> {
  const wanted = tally.told.length + ACKNOWLEDGED;
  while (tally.told.length < wanted) await pause(20);
}

// Cells that lose what was acknowledged, on purpose: a check that finds nothing here would find nothing anywhere. Each control
// goes through the same moments: the primary is alone, its answers are waited for, and then it is lost.

import { Agent } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Connection } from '../../src/db/connection.ts';
import { withClient } from '../../src/migrate/sql.ts';
import { putOnSale, startTestServer } from '../../test/server/support.ts';
import { startDatabases } from '../../test/support/databases.ts';
import { ask } from '../clients/ask.ts';
import { Cell, type CellOptions } from './cell.ts';
import { findLost } from './check.ts';
import { cancelWaits, whileStandbysHang } from './faults.ts';
import { CLAIM_POOL, Load } from './load.ts';
import { Tally, type Told } from './tally.ts';

export interface CellControl {
  readonly name: string;
  /** What is broken, for people. */
  readonly why: string;
  readonly settings?: CellOptions['settings'];
  /** Applied to the intake after the migrations. */
  readonly patch?: string;
  readonly ignoresNotice?: true;
  /** The control of the controls. */
  readonly losesNothing?: true;
}

const SLOTS = 20_000;
/** It has one slot. */
const LAST_POOL = 'last';
const BUYERS = 8;
const ACKNOWLEDGED = 100;
/** Far longer than a cancelled wait takes. */
const FIRST_MS = 10_000;
/** An answer that waits for nothing takes milliseconds; the watcher leaves a primary that is alone after about four seconds. */
const AGAIN_MS = 2_000;

export const CELL_CONTROLS: readonly CellControl[] = [
  {
    name: 'none',
    why: 'nothing is broken: this one must lose nothing',
    losesNothing: true,
  },
  {
    name: 'asynchronous',
    why: 'commits do not wait for a standby',
    settings: { synchronous_mode: false, synchronous_mode_strict: false },
  },
  {
    name: 'no barrier',
    why: 'an answer that writes nothing (`same`, `sold_out`) does not wait for a standby',
    patch: `create or replace function public.answer_in_cell() returns void
      language plpgsql set search_path = '' as $$ begin end $$`,
  },
  {
    name: 'notice ignored',
    why: 'a cancelled wait counts as a success, as the driver has it',
    ignoresNotice: true,
  },
];

export interface CellControlResult {
  readonly name: string;
  readonly why: string;
  readonly acknowledged: number;
  readonly lost: number;
}

export async function runCellControl(control: CellControl): Promise<CellControlResult> {
  const { name, why, settings, patch } = control;
  const { assertCertain } = Connection.prototype;
  const [cell, ledger] = await Promise.all([
    Cell.start({ side: 'db1', ...(settings && { settings }) }),
    startDatabases({ db1: false }),
  ]);
  try {
    await withClient(cell.url, async (client) => {
      await putOnSale(client, CLAIM_POOL, SLOTS);
      await putOnSale(client, LAST_POOL, 1);
      if (patch !== undefined) await client.query(patch);
    });
    const primary = await cell.ready();
    if (control.ignoresNotice) Connection.prototype.assertCertain = () => undefined;
    const server = await startTestServer({ db1: cell, db2: ledger.db2 });
    const load = new Load({ port: () => server.port, clients: { claim: BUYERS }, run: name });
    await acknowledged(load);
    const told = [...(await load.stop())];
    let isToldSoldOut = false;
    await whileStandbysHang(cell, primary, async () => {
      const alone = await buyAlone(server.port, cell.urlOf(primary));
      told.push(...alone.told);
      ({ isToldSoldOut } = alone);
    });
    await server.stop();
    await cell.heal();
    const lost = (await findLost(told, { db1Url: cell.url })).length;
    const isFalse = isToldSoldOut && (await isUnsold(cell.url, LAST_POOL));
    return { name, why, acknowledged: told.length + Number(isToldSoldOut), lost: lost + Number(isFalse) };
  } finally {
    Connection.prototype.assertCertain = assertCertain;
    await Promise.all([cell.remove(), ledger.stop()]);
  }
}

async function acknowledged({ tally }: Load): Promise<void> {
  while (tally.told.length < ACKNOWLEDGED) await pause(20);
}

/**
 * What buyers are told by a primary that is alone. Each claims, two of them the last slot of a pool. The waits of these claims are
 * cancelled until each has an answer. Those that were told nothing ask again, as clients do after 503: this time nothing is left
 * to write.
 */
async function buyAlone(
  port: number,
  url: string,
): Promise<{ told: readonly Told[]; isToldSoldOut: boolean }> {
  const tally = new Tally();
  const soldOut = new Set<string>();
  const agent = new Agent({ keepAlive: true });
  const claim = async (key: string, pool: string, timeoutMs: number): Promise<void> => {
    const body = JSON.stringify({ user_id: key, request_id: key });
    const answer = await ask({
      port,
      path: `/v1/pools/${pool}/claims`,
      method: 'POST',
      body,
      agent,
      timeoutMs,
    });
    const claimId = answer?.json?.claim_id;
    tally.note('claim', answer?.status ?? 0, claimId && { key, claimId });
    if (answer?.json?.error?.code === 'sold_out') soldOut.add(key);
  };
  const poolOf = (buyer: number) => (buyer < 2 ? LAST_POOL : CLAIM_POOL);
  const buyers = Array.from({ length: BUYERS }, (_, at) => ({ key: `alone_${at}`, pool: poolOf(at) }));
  let areAnswered = false;
  const first = Promise.all(buyers.map(({ key, pool }) => claim(key, pool, FIRST_MS))).finally(() => {
    areAnswered = true;
  });
  await withClient(url, async (client) => {
    while (!areAnswered) await cancelWaits(client);
  });
  await first;
  const untold = buyers.filter(({ key }) => !soldOut.has(key) && !tally.told.some((one) => one.key === key));
  await Promise.all(untold.map(({ key, pool }) => claim(key, pool, AGAIN_MS)));
  agent.destroy();
  return { told: tally.told, isToldSoldOut: soldOut.size > 0 };
}

async function isUnsold(url: string, pool: string): Promise<boolean> {
  return withClient(url, async (client) => {
    const { rowCount } = await client.query(
      'select from public.claims where pool_id = $1 and freed_at is null',
      [pool],
    );
    return rowCount === 0;
  });
}

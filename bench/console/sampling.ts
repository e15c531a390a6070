// What sampling costs while no page is open: the real sampler of a server, every two seconds, beside the same time without it. CPU is that of
// both databases and of the sampler's own process.

import { setTimeout as sleep } from 'node:timers/promises';
import type { CallFunction } from '#core/call_function.ts';
import { createDatabase, type Database } from '../../src/db/database.ts';
import { openSampler } from '../../src/samples/open.ts';
import { startSampling } from '../../src/samples/sampler.ts';
import { cpuUs, postmasterOf } from '../cpu.ts';
import { type Column, column, makeTable, NAME } from '../rows.ts';
import { log } from '../servers.ts';
import { median } from '../stats.ts';
import type { Demand, Row } from '../suite.ts';
import { settle, type World } from '../world.ts';

interface Length {
  readonly pairs: number;
  readonly seconds: number;
}
const FULL: Length = { pairs: 5, seconds: 20 };
const QUICK: Length = { pairs: 1, seconds: 3 };

/** Of one core. */
const MOST_PERCENT = 1;
/** What a tick of /proc cannot tell from nothing. */
const LEAST_PERCENT = 0.01;
const PERCENT = 100;
/** The sampler tells whole milliseconds. */
const LEAST_MS = 0.5;
const US_PER_SEC = 1e6;

const COLUMNS: Column[] = [
  NAME,
  { heading: '% of a core', text: (row) => Number(row.cpu_percent).toFixed(2) },
  { heading: 'without', text: (row) => Number(row.quiet_percent).toFixed(2) },
  column('samples', 'samples'),
  { heading: 'ms a sample', text: (row) => row.p50_ms.toFixed(1) },
  { heading: 'longest', text: (row) => row.p99_ms.toFixed(1) },
  column('WAL bytes a sample', 'wal_bytes_per_op'),
];

export const isSampling = (row: Row): boolean => row.cpu_percent !== undefined;
export const samplingTable = (rows: readonly Row[]): string => makeTable(COLUMNS, rows);

/** CPU in microseconds, and WAL in bytes, of `seconds`. */
async function spend(world: World, seconds: number): Promise<{ cpuUs: number; wal: number }> {
  const masters = [await postmasterOf(world.db1), await postmasterOf(world.db2)];
  const databases = () => masters.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const wal = async () => (await world.db1.walBytes()) + (await world.db2.walBytes());
  const [walBefore, before, own] = [await wal(), databases(), process.cpuUsage()];
  await sleep(seconds * 1_000);
  const { user, system } = process.cpuUsage(own);
  return { cpuUs: databases() - before + user + system, wal: (await wal()) - walBefore };
}

/** `took`: milliseconds that each sample took. */
async function sampled(
  world: World,
  seconds: number,
): Promise<{ cpuUs: number; wal: number; took: readonly number[] }> {
  const open = (url: string): Database =>
    createDatabase({ url, max: 1, applicationName: 'sluice bench sampler', log });
  const [db1, db2] = [open(world.db1Url), open(world.db2Url)];
  const callOf =
    (database: Database): CallFunction =>
    (name, args) =>
      database.call(`public.${name}`, args);
  const took: number[] = [];
  let isWhole = true;
  const sampler = openSampler(
    { fleet: { isOne: true, cells: [] }, callIntake: callOf(db1), callLedger: callOf(db2), log },
    ({ db1: intake, db2: ledger }) => {
      isWhole &&= intake.ok && ledger.ok;
      took.push(Math.max(LEAST_MS, intake.ms, ledger.ms));
    },
  );
  // The first opens the connections.
  await sampler.tick();
  took.length = 0;
  const sampling = startSampling(sampler);
  try {
    const spent = await spend(world, seconds);
    if (!isWhole) throw new Error('a database gave no sample: what sampling costs was not measured');
    return { ...spent, took: [...took] };
  } finally {
    await sampling.stop();
    await Promise.all([db1.end(), db2.end()]);
  }
}

export async function measureSampling(
  world: World,
  isQuick: boolean,
  progress: (line: string) => void,
): Promise<{ row: Row; demand: Demand }> {
  const { pairs, seconds } = isQuick ? QUICK : FULL;
  const percent = (us: number): number => (us / (seconds * US_PER_SEC)) * PERCENT;
  const costs: number[] = [];
  const quiets: number[] = [];
  const wals: number[] = [];
  const took: number[] = [];
  for (let pair = 1; pair <= pairs; pair++) {
    progress(`sampling, pair ${pair} of ${pairs}`);
    await settle(world.db1);
    await settle(world.db2);
    const quiet = await spend(world, seconds);
    const busy = await sampled(world, seconds);
    costs.push(percent(busy.cpuUs - quiet.cpuUs));
    quiets.push(percent(quiet.cpuUs));
    wals.push((busy.wal - quiet.wal) / Math.max(1, busy.took.length));
    took.push(...busy.took);
  }
  const cpu_percent = median(costs);
  return {
    row: {
      name: 'sampling-unwatched',
      ...{ clients: 1, batch: 1, rate: took.length / (pairs * seconds) },
      ...{ p50_ms: median(took), p99_ms: Math.max(...took) },
      wal_bytes_per_op: median(wals),
      ...{ cpu_percent, quiet_percent: median(quiets), samples: took.length },
    },
    demand: {
      what: `${MOST_PERCENT} % of a core / what sampling takes while no page is open, median of ${pairs} pairs`,
      atLeast: 1,
      ...(!isQuick && { value: MOST_PERCENT / Math.max(LEAST_PERCENT, cpu_percent) }),
    },
  };
}

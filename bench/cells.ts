// The cells suite: what a claim costs with two cells against one, and what the loss of one cell costs the pools of the other.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Process, SERVER_READY } from '../chaos/process.ts';
import { cleanUpOnExit, startDatabases, type TestDatabases } from '../test/support/databases.ts';
import { type Answered, claimAtPace } from './cells/buyers.ts';
import { cpuUs, postmasterOf } from './cpu.ts';
import { DURABLE } from './durability.ts';
import { keptOf, timesOf } from './neighbours/measure.ts';
import { type Column, makeTable } from './rows.ts';
import { KEYS } from './servers.ts';
import { median } from './stats.ts';
import type { AnyRow, Demand, Suite } from './suite.ts';
import { findTools } from './tools.ts';
import { openWorld, type Session, sessionOf, settle, type World } from './world.ts';
import { runWrk, sampleOfWrk } from './wrk/wrk.ts';

const FULL = {
  rounds: 7,
  turnSec: 3,
  buyers: 64,
  slots: 1_000_000,
  perSec: 200,
  quiet: 2_000,
  awaySec: 300,
};
/** Shows that every part runs. */
const QUICK: Plan = { rounds: 1, turnSec: 1, buyers: 4, slots: 40_000, perSec: 50, quiet: 50, awaySec: 4 };
type Plan = typeof FULL;

const MAX_GROWTH = 1.05;
/** What is compared: how many cells, and how many buyers each of them has. */
const WAYS = [
  { name: 'one cell', cells: 1, part: 1 },
  { name: 'two cells, as many buyers each', cells: 2, part: 1 },
  { name: 'two cells, half the buyers each', cells: 2, part: 2 },
] as const;
type Way = (typeof WAYS)[number];
/** Claims for the pool of the cell that is away, beside the others. */
const AWAY_PER_SEC = 20;
const [IN_A, IN_B, STEADY, LOST] = ['in_a', 'in_b', 'steady', 'lost'] as const;

const number = (heading: string, name: string): Column<AnyRow> => ({
  heading,
  text: ({ [name]: value }) => (value === undefined ? '' : Number(value).toFixed(0)),
});
const COLUMNS: Column<AnyRow>[] = [
  { heading: 'row', isText: true, text: ({ name }) => name },
  number('CPU µs a claim', 'cpu_us'),
  number('of the server', 'server_cpu_us'),
  number('of the databases', 'database_cpu_us'),
  number('claims a batch', 'batch'),
  number('rate', 'rate'),
  {
    heading: 'quiet p99 ms',
    text: ({ quiet_p99_ms: ms }) => (ms === undefined ? '' : Number(ms).toFixed(1)),
  },
  { heading: 'p99 ms', text: ({ p99_ms }) => (p99_ms === undefined ? '' : Number(p99_ms).toFixed(1)) },
  { heading: 'failures', text: ({ failures }) => String(failures ?? '') },
  { heading: 'lost', text: ({ lost }) => String(lost ?? '') },
];

export const cells: Suite = {
  summary: 'CPU for a claim with two cells against one, and one cell killed beside the pools of the other',
  run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    return withPlace(plan, (place) => measure(place, plan, progress));
  },
  table: (rows) => makeTable(COLUMNS, rows),
};

interface Place {
  readonly world: World;
  readonly b: Session;
  readonly second: TestDatabases;
  readonly wrk: string;
  /** One knows cell a alone, the other both. */
  readonly one: Process;
  readonly two: Process;
}

async function measure(place: Place, plan: Plan, progress: (line: string) => void) {
  const taken = new Map<Way, Cost[]>(WAYS.map((way) => [way, []]));
  for (const way of WAYS) await cost(place, way, plan);
  for (let round = 1; round <= plan.rounds; round++) {
    progress(`round ${round} of ${plan.rounds}`);
    // The order changes from round to round: whatever drifts, drifts for all.
    for (const way of round % 2 === 0 ? [...WAYS].reverse() : WAYS)
      taken.get(way)?.push(await cost(place, way, plan));
  }
  const rows: AnyRow[] = WAYS.map((way) => {
    const of = (name: keyof Cost) => median((taken.get(way) ?? []).map((one) => one[name]));
    return {
      name: way.name,
      buyers: (plan.buyers * way.cells) / way.part,
      cpu_us: of('server') + of('databases'),
      server_cpu_us: of('server'),
      database_cpu_us: of('databases'),
      batch: of('batch'),
      rate: of('rate'),
    };
  });
  progress(`cell b is away for ${plan.awaySec} s`);
  const killed = await lose(place, plan);
  rows.push(killed.row);
  const ratioOf = (way: Way): number =>
    median(
      (taken.get(WAYS[0]) ?? []).map((one, round) => {
        const two = taken.get(way)?.[round] ?? { server: Number.NaN, databases: Number.NaN };
        return (MAX_GROWTH * (one.server + one.databases)) / (two.server + two.databases);
      }),
    );
  const demands: Demand[] = [
    {
      what: `${MAX_GROWTH} times the CPU of a claim with one cell / with two that have as many buyers each, median`,
      atLeast: 1,
      value: ratioOf(WAYS[1]),
    },
    {
      what: 'allowed p99 / p99 while the other cell is away, 0 where a request failed',
      atLeast: 1,
      value: killed.kept,
    },
    {
      what: 'acknowledged claims of the killed cell that are there when it is back, of all',
      atLeast: 1,
      value: killed.found,
    },
  ];
  return { settings: await place.world.db1.settings(), rows, demands };
}

/** CPU in µs for each claim, and how the claims were made. */
interface Cost {
  readonly server: number;
  readonly databases: number;
  readonly batch: number;
  readonly rate: number;
}

/**
 * Of the server and both cells, while each pool has a wrk of its own. One client for both pools would send each cell half of what it
 * sends one alone, and batches of half the size.
 */
async function cost({ world, b, one, two, wrk }: Place, way: Way, { buyers, turnSec }: Plan): Promise<Cost> {
  for (const session of [world.db1, b]) await settle(session);
  const server = way.cells === 1 ? one : two;
  const postmasters = [await postmasterOf(world.db1), await postmasterOf(b)];
  const databases = () => postmasters.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const before = {
    server: cpuUs(server.pid),
    databases: databases(),
    batches: await batchesOf(server.port),
  };
  const samples = await Promise.all(
    [IN_A, IN_B].slice(0, way.cells).map(async (pool) => {
      const args = [`/v1/pools/${pool}/claims`, randomUUID()];
      const url = `http://127.0.0.1:${server.port}`;
      const connections = buyers / way.part;
      const result = await runWrk({ wrk, script: 'claim.lua', args, url, connections, seconds: turnSec });
      if (result.refused + result.broken > 0)
        throw new Error(`claims in ${pool} failed: ${JSON.stringify(result)}`);
      return sampleOfWrk(result);
    }),
  );
  const all = samples.reduce((sum, { ops }) => sum + ops, 0);
  return {
    server: (cpuUs(server.pid) - before.server) / all,
    databases: (databases() - before.databases) / all,
    batch: all / ((await batchesOf(server.port)) - before.batches),
    rate: samples.reduce((sum, { rate }) => sum + rate, 0),
  };
}

/** How many batches of claims the server has sent. */
async function batchesOf(port: number): Promise<number> {
  const headers = { authorization: `Bearer ${KEYS.adminKey}` };
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
  return Number(/^sluice_claim_batch_size_count(?:\{\})? (\d+)$/m.exec(text)?.[1] ?? 0);
}

async function lose({ second, two }: Place, { perSec, quiet: count, awaySec }: Plan) {
  const kept = await claimAtPace(two.port, LOST, 50, AWAY_PER_SEC);
  const quiet = await claimAtPace(two.port, STEADY, count, perSec);
  await second.db1.stop('immediate');
  const [beside, own] = await Promise.all([
    claimAtPace(two.port, STEADY, perSec * awaySec, perSec),
    claimAtPace(two.port, LOST, AWAY_PER_SEC * awaySec, AWAY_PER_SEC),
  ]);
  const back = await second.db1.restart();
  const acknowledged = [...kept.claimIds, ...own.claimIds];
  const found = await withClient(back.url, async (client) => {
    const { rows } = await client.query(
      'select count(*)::int as n from public.claims where claim_id = any ($1::uuid[])',
      [acknowledged],
    );
    return Number(rows[0].n);
  });
  const row: AnyRow = {
    name: 'one cell killed',
    quiet_p99_ms: timesOf(quiet).p99,
    p99_ms: timesOf(beside).p99,
    requests: beside.tookMs.length,
    failures: failuresOf(beside),
    own_refused: failuresOf(own),
    away_sec: awaySec,
    lost: acknowledged.length - found,
  };
  return { row, kept: keptOf(quiet, beside), found: found / acknowledged.length };
}

const failuresOf = ({ failures }: Answered): number => Object.values(failures).reduce((sum, n) => sum + n, 0);

async function withPlace<T>(plan: Plan, use: (place: Place) => Promise<T>): Promise<T> {
  const { wrk } = await findTools();
  const logDir = mkdtempSync(join(tmpdir(), 'sluice-bench-cells-'));
  const world = await openWorld({}, (made) => furnish(made.db1, 'a', 0, plan, [IN_A, STEADY]));
  const second = await startDatabases({ db2: false, settings: DURABLE });
  const processes: Process[] = [];
  const forget = cleanUpOnExit(() => {
    for (const one of processes) process.kill(one.pid, 'SIGKILL');
  });
  try {
    return await withSession(second.db1.url, async (b) => {
      await furnish(b, 'b', 1, plan, [IN_B, LOST]);
      const [one, two] = [
        { DB1_URL: world.db1Url },
        { SLUICE_CELLS: `a=${world.db1Url},b=${second.db1.url}` },
      ].map((intake, at) =>
        startServer(['one', 'two'][at] ?? '', { ...intake, DB2_URL: world.db2Url }, logDir),
      ) as [Process, Process];
      processes.push(one, two);
      await Promise.all([one.start(), two.start()]);
      return await use({ world, b, second, one, two, wrk });
    });
  } finally {
    await Promise.all(processes.map((one) => one.kill()));
    forget();
    await Promise.all([world.stop(), second.stop()]);
    rmSync(logDir, { recursive: true });
  }
}

function startServer(name: string, env: Record<string, string>, logDir: string): Process {
  return new Process({
    name: `serve ${name}`,
    args: ['serve'],
    env: {
      ...env,
      SLUICE_PORT: '0',
      SLUICE_HOST: '127.0.0.1',
      SLUICE_ADMIN_KEY: KEYS.adminKey,
      SLUICE_JWT_SECRET: KEYS.jwtSecret,
    },
    ready: SERVER_READY,
    logDir,
    onFault: (what) => process.stderr.write(`${what}\n`),
  });
}

/** Enough slots for all that is claimed, and not more: making a million takes half a minute. */
async function furnish(
  session: Session,
  cell: string,
  number: number,
  { slots, quiet, perSec, awaySec }: Plan,
  [crowded, steady]: readonly [string, string],
): Promise<void> {
  await session.ask('select public.cell_join($1, $2, $3)', [cell, number, 'bench']);
  for (const [pool, count] of [
    [crowded, slots],
    [steady, quiet + perSec * awaySec + 100],
  ])
    await session.ask('select public.pool_create($1, $2, $3, $4)', [pool, count, '{}', 'bench']);
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function withSession<T>(url: string, work: (session: Session) => Promise<T>): Promise<T> {
  return withClient(url, (client) => work(sessionOf(client)));
}

// The console suite: what 200 open console tabs cost the claim door during a burst.

import pg from 'pg';
import { formatTable } from '../src/commands/table.ts';
import { startServer } from '../src/server/server.ts';
import { startDatabases } from '../test/support/databases.ts';
import { type Burst, measureBurst, type Place, type Plan, warmUp } from './console/measure.ts';
import { DURABLE, readSettings } from './durability.ts';
import { median, medianRange } from './stats.ts';
import type { Demand, Row, Suite } from './suite.ts';

const KEYS = { adminKey: 'bench-admin-key', jwtSecret: 'bench-secret-of-at-least-thirty-two-bytes' };
const FULL: Plan & { pairs: number } = { pairs: 41, claims: 20_000, connections: 64, tabs: 200 };
/** Over before the first sample: it shows that all parts run. */
const QUICK: Plan & { pairs: number } = { pairs: 1, claims: 400, connections: 8, tabs: 10 };
/** Less than a tenth of the throughput. */
const LEAST_KEPT = 0.9;
const PERCENT = 100;
const HEADINGS = [
  'row',
  'tabs',
  'clients',
  'claims',
  'per second',
  'spread',
  'p50 ms',
  'p99 ms',
  'WAL bytes',
  'CPU µs',
];

type Pair = { alone: Burst; withTabs: Burst };

export const consoleSuite: Suite = {
  summary: 'claims a second through HTTP with 200 console tabs open, against none',
  async run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    progress('starting two databases and a server');
    const databases = await startDatabases({ settings: DURABLE });
    const client = new pg.Client({ connectionString: databases.db1.url });
    const { db1, db2 } = databases;
    const server = await startServer({ port: 0, db1Url: db1.url, db2Url: db2.url, ...KEYS });
    try {
      await client.connect();
      const place: Place = { client, port: server.port, cookie: await signIn(server.url) };
      await warmUp(place, plan);
      const pairs: Pair[] = [];
      for (let number = 1; number <= plan.pairs; number++) {
        progress(`pair ${number} of ${plan.pairs}`);
        const pair = await measurePair(place, plan, number % 2 === 0);
        if (!quick && !pair.withTabs.samples_least)
          throw new Error('a tab heard nothing while the burst was on: nothing was measured');
        pairs.push(pair);
      }
      const rows = [
        makeRow(
          'claims-alone',
          pairs.map(({ alone }) => alone),
          plan,
          0,
        ),
        makeRow(
          'claims-with-tabs',
          pairs.map(({ withTabs }) => withTabs),
          plan,
          plan.tabs,
        ),
      ];
      const ratios = pairs.map(({ alone, withTabs }) => withTabs.rate / alone.rate);
      return {
        settings: await readSettings(client),
        rows,
        demands: demands(ratios, plan.tabs),
        table: `${makeTable(rows)}\n\n${costLine(ratios, plan.tabs)}`,
      };
    } finally {
      await client.end();
      await server.stop();
      await databases.stop();
    }
  },
};

/** The order within a pair changes from pair to pair: whatever drifts, drifts for both. */
async function measurePair(place: Place, plan: Plan, isTurned: boolean): Promise<Pair> {
  const first = await measureBurst(place, plan, isTurned);
  const second = await measureBurst(place, plan, !isTurned);
  const [alone, withTabs] = isTurned ? [second, first] : [first, second];
  if (withTabs.failures) throw new Error(`${withTabs.failures} requests of the tabs were refused`);
  return { alone, withTabs };
}

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/admin/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: KEYS.adminKey }),
  });
  const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
  if (cookie === '') throw new Error(`the server let nobody in: ${response.status}`);
  return cookie;
}

function makeRow(name: string, bursts: readonly Burst[], plan: Plan, tabs: number): Row {
  const of = (key: 'rate' | 'p50_ms' | 'p99_ms' | 'wal_bytes_per_op' | 'server_cpu_us_per_op') =>
    median(bursts.map((burst) => burst[key]));
  const rates = bursts.map(({ rate }) => rate);
  const least = bursts.flatMap(({ samples_least }) => samples_least ?? []);
  const loads = bursts.flatMap((burst) => burst.loads ?? []);
  return {
    name,
    clients: plan.connections,
    batch: 1,
    tabs,
    claims: plan.claims,
    repetitions: bursts.length,
    rate: of('rate'),
    rate_min: Math.min(...rates),
    rate_max: Math.max(...rates),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    wal_bytes_per_op: of('wal_bytes_per_op'),
    server_cpu_us_per_op: of('server_cpu_us_per_op'),
    refused: bursts.reduce((sum, { refused = 0 }) => sum + refused, 0),
    ...(tabs > 0 && { samples_per_tab: median(least), page_loads: median(loads) }),
  };
}

export function demands(ratios: readonly number[], tabs: number): Demand[] {
  return [
    {
      what: `claims with ${tabs} tabs / without, median of ${ratios.length} pairs`,
      atLeast: LEAST_KEPT,
      value: median(ratios),
    },
  ];
}

/** A cost below zero is noise, and is told as it is. */
export function costLine(ratios: readonly number[], tabs: number): string {
  const cost = (ratio: number) => `${((1 - ratio) * PERCENT).toFixed(1)} %`;
  const [low, high] = medianRange(ratios);
  const pairs = ratios.map(cost).join(', ');
  return `${tabs} tabs cost the claim door ${cost(median(ratios))} of its throughput (95 in 100: ${cost(high)} to ${cost(low)})
pairs: ${pairs}`;
}

function makeTable(rows: readonly Row[]): string {
  const whole = (value: unknown) => Math.round(Number(value)).toLocaleString('en-US');
  const cells = rows.map((row) => {
    const spread = (Number(row.rate_max) - Number(row.rate_min)) / 2 / row.rate;
    return [
      row.name,
      String(row.tabs),
      String(row.clients),
      whole(row.claims),
      whole(row.rate),
      `±${Math.round(spread * PERCENT)} %`,
      row.p50_ms.toFixed(2),
      row.p99_ms.toFixed(2),
      whole(row.wal_bytes_per_op),
      Number(row.server_cpu_us_per_op).toFixed(1),
    ];
  });
  return formatTable(HEADINGS, cells, Number.POSITIVE_INFINITY);
}

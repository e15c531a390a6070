// The console suite: what 200 open console tabs cost the claim door during a burst, how long an operator waits for a first row, and what sampling
// and the indexes of a search cost.

import { findableTable, isFindable, measureFindable } from './console/findable.ts';
import { type Burst, measureBurst, type Place, type Plan, warmUp } from './console/measure.ts';
import { type Column, column, makeTable, mediansOf, NAME, SPEED, sumOf } from './rows.ts';
import { KEYS, startOurs } from './servers.ts';
import { median, medianRange } from './stats.ts';
import type { Demand, Row, Suite } from './suite.ts';
import { openWorld } from './world.ts';

/** Longer than two seconds, so that each burst has a sample in it. */
const FULL: Plan & { pairs: number } = { pairs: 41, claims: 40_000, connections: 64, tabs: 200 };
/** Over before the first sample: it shows that all parts run. */
const QUICK: Plan & { pairs: number } = { pairs: 1, claims: 400, connections: 8, tabs: 10 };
/** Less than a tenth of the throughput, which a busy machine makes uncertain. */
const LEAST_KEPT = 0.9;
/** What a claim may take of the server's CPU beside the tabs, against none. */
const MOST_CPU = 1.03;
const PERCENT = 100;
const COLUMNS: Column[] = [
  NAME,
  ...[column('tabs', 'tabs'), column('clients', 'clients'), column('claims', 'claims'), ...SPEED],
  column('WAL bytes', 'wal_bytes_per_op'),
  { heading: 'CPU µs', text: (row) => Number(row.server_cpu_us_per_op).toFixed(1) },
];

type Pair = { alone: Burst; withTabs: Burst };

export const consoleSuite: Suite = {
  summary:
    'claims a second through HTTP with 200 console tabs open, against none; first rows of a million claims',
  async run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    const findable = await measureFindable(quick, progress);
    progress('starting two databases and a server');
    const world = await openWorld({}, async () => undefined);
    const server = await startOurs(world);
    try {
      const place: Place = { db1: world.db1, port: server.port, cookie: await signIn(server.url) };
      await warmUp(place, plan);
      const pairs: Pair[] = [];
      for (let number = 1; number <= plan.pairs; number++) {
        progress(`pair ${number} of ${plan.pairs}`);
        const pair = await measurePair(place, plan, number % 2 === 0);
        if (!quick && !pair.withTabs.samples_least)
          throw new Error('a tab heard nothing while the burst was on: nothing was measured');
        pairs.push(pair);
      }
      const [alone, withTabs] = [pairs.map((pair) => pair.alone), pairs.map((pair) => pair.withTabs)];
      const rows = [
        makeRow('claims-alone', alone, plan, 0),
        makeRow('claims-with-tabs', withTabs, plan, plan.tabs),
      ];
      const ratios = pairs.map((pair) => pair.withTabs.rate / pair.alone.rate);
      const cpu = pairs.map((pair) => pair.withTabs.server_cpu_us_per_op / pair.alone.server_cpu_us_per_op);
      return {
        settings: await world.db1.settings(),
        rows: [...rows, ...findable.rows],
        demands: [...demands(ratios, cpu, plan.tabs), ...findable.demands],
        notes: `${costLine(ratios, plan.tabs)}
CPU of the server for a claim, with tabs against none: ${rangeLine(cpu)}

${findable.plans}`,
      };
    } finally {
      await server.stop();
      await world.stop();
    }
  },
  table(all) {
    const rows = all as readonly Row[];
    const bursts = makeTable(
      COLUMNS,
      rows.filter((row) => !isFindable(row)),
    );
    const found = rows.filter(isFindable);
    return found.length === 0 ? bursts : `${bursts}\n\n${findableTable(found)}`;
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
  if (cookie === '') throw new Error(`the server refused the sign-in: ${response.status}`);
  return cookie;
}

function makeRow(name: string, bursts: readonly Burst[], plan: Plan, tabs: number): Row {
  const { samples_least, samples_most: _, failures: __, loads, ...medians } = mediansOf(bursts);
  return {
    ...medians,
    ...{ name, clients: plan.connections, batch: 1, tabs, claims: plan.claims },
    refused: sumOf(bursts, ({ refused = 0 }) => refused),
    ...(tabs > 0 && { samples_per_tab: samples_least, page_loads: loads }),
  };
}

/** `ratios` are of throughput, `cpu` of the server's CPU for one claim. */
export function demands(ratios: readonly number[], cpu: readonly number[], tabs: number): Demand[] {
  return [
    {
      what: `claims with ${tabs} tabs / without, median of ${ratios.length} pairs`,
      atLeast: LEAST_KEPT,
      value: median(ratios),
    },
    {
      what: `${MOST_CPU} / CPU of the server for a claim with ${tabs} tabs against none, median of ${cpu.length} pairs`,
      atLeast: 1,
      value: MOST_CPU / median(cpu),
    },
  ];
}

function rangeLine(ratios: readonly number[]): string {
  const [low, high] = medianRange(ratios);
  return `${median(ratios).toFixed(3)} (95 in 100: ${low.toFixed(3)} to ${high.toFixed(3)})`;
}

/** A cost below zero is noise, and is told as it is. */
export function costLine(ratios: readonly number[], tabs: number): string {
  const cost = (ratio: number) => `${((1 - ratio) * PERCENT).toFixed(1)} %`;
  const [low, high] = medianRange(ratios);
  const pairs = ratios.map(cost).join(', ');
  return `${tabs} tabs cost the claim door ${cost(median(ratios))} of its throughput (95 in 100: ${cost(high)} to ${cost(low)})
pairs: ${pairs}`;
}

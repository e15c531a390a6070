// The paid suite: what claims cost in a pool without payment, here and in another checkout, and in a pool with payment; how fast
// payments become decisions and tickets.

import { carry, receive, withPlaces } from './cost.ts';
import { THIS, type Version, versionsOf } from './neighbours/place.ts';
import { addPaidPool } from './paid/orders.ts';
import { measureFlow, measureSettling, type SettleRow } from './paid/settle.ts';
import { type Column, makeTable, whole } from './rows.ts';
import { median } from './stats.ts';
import type { Demand, Suite } from './suite.ts';

/** Short turns: the speed of a shared machine changes within seconds. */
const FULL = {
  ...{ rounds: 22, claims: 6_000, perSec: 1_500, warmUp: 12_000 },
  ...{ orders: 10_000, repetitions: 3, flow: 10_000, flowPerSec: 500 },
};
/** Shows that every part runs. */
const QUICK: Plan = {
  ...{ rounds: 1, claims: 50, perSec: 500, warmUp: 20 },
  ...{ orders: 50, repetitions: 1, flow: 50, flowPerSec: 100 },
};
type Plan = typeof FULL;

const HELD_POOL = 'held';
const HELD: Version = { ...THIS, name: 'held' };
/** Of CPU. A claim of a pool without payment writes as much as before. */
const MAX_GROWTH = 1.03;
/** The log of a claim differs by a byte where its pages are filled in another order. */
const SAME = 0.995;
const SETTLED_PER_SEC = 1_000;
const TICKET_P99_MS = 2_000;

/** Of one claim. */
type Sample = { cpu_us: number; wal_bytes: number };
type ClaimRow = Sample & { name: string; version: string; rounds: number; ops: number };

const COLUMNS: Column<ClaimRow>[] = [
  { heading: 'row', isText: true, text: ({ name }) => name },
  { heading: 'version', isText: true, text: ({ version }) => version },
  { heading: 'CPU µs', text: ({ cpu_us }) => cpu_us.toFixed(0) },
  { heading: 'WAL bytes', text: ({ wal_bytes }) => wal_bytes.toFixed(1) },
];

const SETTLE_COLUMNS: Column<SettleRow>[] = [
  { heading: 'row', isText: true, text: ({ name }) => name },
  { heading: 'orders', text: ({ ops }) => whole(ops) },
  { heading: 'decided per second', text: ({ rate }) => whole(rate) },
  { heading: 'tickets per second', text: ({ ticket_rate }) => whole(ticket_rate) },
  { heading: 'payment to ticket p50 ms', text: ({ p50_ms }) => (p50_ms === undefined ? '' : whole(p50_ms)) },
  { heading: 'p99 ms', text: ({ p99_ms }) => (p99_ms === undefined ? '' : whole(p99_ms)) },
  { heading: 'DB1 CPU µs', text: ({ db1_cpu_us }) => whole(db1_cpu_us) },
  { heading: 'DB2 CPU µs', text: ({ db2_cpu_us }) => whole(db2_cpu_us) },
  { heading: 'worker CPU µs', text: ({ worker_cpu_us }) => whole(worker_cpu_us) },
  { heading: 'server CPU µs', text: ({ server_cpu_us }) => whole(server_cpu_us) },
];

export const paid: Suite = {
  summary: 'claims with and without payment, and payments that become decisions and tickets',
  compares: true,
  async run({ quick, against, progress }) {
    const plan = quick ? QUICK : FULL;
    const { taken, settings } = await measureClaims(plan, against, progress);
    const claimRows = [...taken].map(([name, samples]) => rowOf(name, samples, plan));
    progress(`${plan.orders} payments at once`);
    const settleRows: SettleRow[] = await measureSettling(plan.orders, plan.repetitions);
    progress(`${plan.flow} payments, ${plan.flowPerSec} a second`);
    settleRows.push(await measureFlow(plan.flow, plan.flowPerSec));
    return {
      settings,
      rows: [...claimRows, ...settleRows],
      demands: [...claimDemands(taken), ...settleDemands(settleRows)],
    };
  },
  table(rows) {
    const claimRows = rows.filter((row) => 'version' in row) as unknown as ClaimRow[];
    const settleRows = rows.filter((row) => !('version' in row)) as unknown as SettleRow[];
    return `${makeTable(COLUMNS, claimRows)}\n\n${makeTable(SETTLE_COLUMNS, settleRows)}`;
  },
};

type Taken = Map<string, Sample[]>;

/**
 * `auto` is the way of the cost suite; `auto-secret` and `held` are asked alike, but for the pool. They have databases of their
 * own: the log of a claim grows with the tables, so both checkouts' claims without payment must fill theirs alike.
 */
async function measureClaims(plan: Plan, against: string | undefined, progress: (line: string) => void) {
  const taken: Taken = new Map();
  const slots = plan.warmUp + plan.rounds * plan.claims * 2 + plan.warmUp;
  let settings: Record<string, string> = {};
  await withPlaces(
    [...versionsOf(against), HELD],
    slots,
    async (place, version) => {
      if (version === HELD) await addPaidPool(place, HELD_POOL, slots);
    },
    async (places) => {
      const round = async (count: number, turn: number): Promise<Map<string, Sample>> => {
        const samples = new Map<string, Sample>();
        const ways = places.flatMap(([version, place]) =>
          version === HELD.name
            ? [
                { name: 'auto-secret', place, more: { hasSecrets: true } },
                { name: HELD_POOL, place, more: { hasSecrets: true, pool: HELD_POOL } },
              ]
            : [{ name: version === THIS.name ? 'auto' : `auto ${version}`, place, more: {} }],
        );
        // The order changes from round to round: whatever drifts, drifts for all.
        for (const { name, place, more } of turn % 2 === 0 ? ways : [...ways].reverse()) {
          const { cpuUs, walBytes } = await receive(place, 'claims', count, plan.perSec, more);
          samples.set(name, { cpu_us: cpuUs, wal_bytes: walBytes });
        }
        // So that the queues are as empty before each round.
        await carry(places, count);
        return new Map(ways.map(({ name }) => [name, samples.get(name) as Sample]));
      };
      await round(plan.warmUp, 0);
      for (const [, place] of places) settings = await place.db1.settings();
      for (let number = 1; number <= plan.rounds; number++) {
        progress(`claims, round ${number} of ${plan.rounds}`);
        for (const [name, sample] of await round(plan.claims, number))
          taken.set(name, [...(taken.get(name) ?? []), sample]);
      }
    },
  );
  return { taken, settings };
}

function rowOf(name: string, samples: readonly Sample[], plan: Plan): ClaimRow {
  const of = (field: keyof Sample) => median(samples.map((sample) => sample[field]));
  const version = name.split(' ')[1] ?? THIS.name;
  return {
    ...{ name, version, rounds: samples.length, ops: plan.claims },
    ...{ cpu_us: of('cpu_us'), wal_bytes: of('wal_bytes') },
  };
}

/** Round by round; the median of the ratios. */
export function claimDemands(taken: Taken): Demand[] {
  const other = [...taken.keys()].find((name) => name.startsWith('auto ')) ?? 'auto of another checkout';
  const ratio = (above: string, below: string, field: keyof Sample): number | undefined => {
    const [one, two] = [taken.get(above), taken.get(below)];
    if (one === undefined || two === undefined) return undefined;
    return median(two.map((sample, at) => (one[at]?.[field] ?? 0) / sample[field]));
  };
  const demand = (what: string, atLeast: number, value: number | undefined): Demand => ({
    ...{ what, atLeast },
    ...(value !== undefined && { value }),
  });
  const cpu = ratio(other, 'auto', 'cpu_us');
  return [
    demand(
      `${MAX_GROWTH} times the CPU of a claim in another checkout / here, without payment`,
      1,
      cpu === undefined ? undefined : cpu * MAX_GROWTH,
    ),
    demand(
      'WAL of a claim in another checkout / here, without payment',
      SAME,
      ratio(other, 'auto', 'wal_bytes'),
    ),
    demand('CPU of a claim without payment / held', 1, ratio('auto-secret', HELD_POOL, 'cpu_us')),
    demand('WAL of a claim without payment / held', 1, ratio('auto-secret', HELD_POOL, 'wal_bytes')),
  ];
}

function settleDemands(rows: readonly SettleRow[]): Demand[] {
  const [settle, flow] = ['settle', 'flow'].map((name) => rows.filter((row) => row.name === name));
  return [
    {
      what: `payments decided a second / ${whole(SETTLED_PER_SEC)}`,
      atLeast: 1,
      value: median((settle ?? []).map(({ rate }) => rate / SETTLED_PER_SEC)),
    },
    {
      what: `${whole(TICKET_P99_MS)} ms / p99 from payment to ticket, at half that rate`,
      atLeast: 1,
      value: median(
        (flow ?? []).flatMap(({ p99_ms }) => (p99_ms === undefined ? [] : TICKET_P99_MS / p99_ms)),
      ),
    },
  ];
}

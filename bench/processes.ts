// The processes suite: what `--processes 2` costs while nothing happens. Both products stand side by side, so that each minute is the
// same for both.

import { setTimeout as pause } from 'node:timers/promises';
import { cpuUs, postmasterOf } from './cpu.ts';
import { addPool } from './neighbours/neighbour.ts';
import { openProduct, type Product, THIS } from './neighbours/place.ts';
import { type Column, makeTable, sumOf } from './rows.ts';
import { median } from './stats.ts';
import { type Demand, demandOf, type Suite } from './suite.ts';

const FULL: Plan = { rounds: 5, roundSec: 60, settleSec: 60 };
/** Shows that every part runs. */
const QUICK: Plan = { rounds: 1, roundSec: 2, settleSec: 0 };
const POOL = 'idle';
const SLOTS = 1_000;
/** A hundredth of a core. */
const MOST_MORE_MS = 10;
/** Where two processes take no more than one there is no ratio to write down. */
const LEAST_MS = 0.1;
const PARTS = ['server', 'worker', 'db1', 'db2'] as const;
const US_PER_MS = 1_000;

type Plan = { rounds: number; roundSec: number; settleSec: number };
/** CPU in a second, in ms. */
type Sample = Record<(typeof PARTS)[number], number>;
type IdleRow = { name: string; processes: number; rounds: number; all: number } & Sample;

const COLUMNS: Column<IdleRow>[] = [
  { heading: 'processes of server and worker', isText: true, text: ({ name }) => name },
  ...PARTS.map((part) => ({
    heading: `${part} ms/s`,
    text: ({ [part]: value }: IdleRow) => value.toFixed(1),
  })),
  { heading: 'all ms/s', text: ({ all }) => all.toFixed(1) },
];

export const processes: Suite = {
  summary: 'CPU of an idle product whose server and worker have two processes each, beside one',
  async run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    progress('starting two products');
    const one = await open(1);
    try {
      const two = await open(2);
      try {
        await pause(plan.settleSec * 1_000);
        const samples: [Sample, Sample][] = [];
        for (let round = 1; round <= plan.rounds; round++) {
          progress(`round ${round} of ${plan.rounds}`);
          samples.push(await Promise.all([sampleOf(one, plan), sampleOf(two, plan)]));
        }
        return {
          settings: await one.db1.settings(),
          rows: [
            rowOf(
              1,
              samples.map(([first]) => first),
            ),
            rowOf(
              2,
              samples.map(([, second]) => second),
            ),
          ],
          demands: [demandFor(samples)],
        };
      } finally {
        await two.end();
      }
    } finally {
      await one.end();
    }
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly IdleRow[]),
};

const open = (count: number): Promise<Product> =>
  openProduct(THIS, (place) => addPool(place, POOL, SLOTS), { processes: count });

async function sampleOf({ server, worker, db1, db2 }: Product, { roundSec }: Plan): Promise<Sample> {
  const pids: Record<keyof Sample, number> = {
    server: server.pid,
    worker: worker.pid,
    db1: await postmasterOf(db1),
    db2: await postmasterOf(db2),
  };
  const look = (): number[] => PARTS.map((part) => cpuUs(pids[part]));
  const before = look();
  await pause(roundSec * 1_000);
  const spent = look().map((us, at) => (us - (before[at] ?? 0)) / roundSec / US_PER_MS);
  return Object.fromEntries(PARTS.map((part, at) => [part, spent[at]])) as Sample;
}

const allOf = (sample: Sample): number => sumOf(PARTS, (part) => sample[part]);

function rowOf(count: number, samples: readonly Sample[]): IdleRow {
  const parts = Object.fromEntries(PARTS.map((part) => [part, median(samples.map((one) => one[part]))]));
  return {
    ...{ name: String(count), processes: count, rounds: samples.length, all: median(samples.map(allOf)) },
    ...(parts as Sample),
  };
}

export function demandFor(samples: readonly (readonly [Sample, Sample])[]): Demand {
  const more = median(samples.map(([one, two]) => allOf(two) - allOf(one)));
  return demandOf(
    `${MOST_MORE_MS} ms a second / what two processes take more than one while idle, median of ${samples.length} rounds`,
    1,
    MOST_MORE_MS / Math.max(more, LEAST_MS),
  );
}

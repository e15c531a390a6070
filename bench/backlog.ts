// The backlog suite: what messages that wait in one pool's slow lane cost another pool, from a thousand of them to a million.

import { failuresOf, keptOf, timesOf } from './neighbours/measure.ts';
import { addPool, claimMany, type Place, setHook, startSlowHook } from './neighbours/neighbour.ts';
import { type OpenPlace, THIS, withPlace } from './neighbours/place.ts';
import { type Column, makeTable, whole } from './rows.ts';
import { median } from './stats.ts';
import type { Demand, Suite } from './suite.ts';
import { settle } from './world.ts';

const FULL = {
  sizes: [1_000, 100_000, 1_000_000],
  requests: 2_000,
  warmUp: 400,
  perSec: 200,
  takes: 9,
  taken: 500,
};
/** Shows that every part runs. */
const QUICK: Plan = { sizes: [100, 1_000], requests: 20, warmUp: 5, perSec: 100, takes: 1, taken: 20 };
const ANSWER_MS = 6_000;
const PATIENCE_MS = 30_000;
const MAX_GROWTH = 1.5;

type Plan = typeof FULL;
type BacklogRow = {
  name: string;
  messages: number;
  take_blocks: number;
  take_ms: number;
  requests: number;
  failures: number;
  quiet_p50_ms: number;
  quiet_p99_ms: number;
  p50_ms: number;
  p99_ms: number;
  kept: number;
};

const number = (heading: string, name: keyof BacklogRow, digits = 1): Column<BacklogRow> => ({
  heading,
  text: (row) => Number(row[name]).toFixed(digits),
});
const COLUMNS: Column<BacklogRow>[] = [
  { heading: 'backlog', text: ({ messages }) => whole(messages) },
  number('take blocks', 'take_blocks', 0),
  number('take ms', 'take_ms'),
  number('requests', 'requests', 0),
  number('failures', 'failures', 0),
  number('quiet p50', 'quiet_p50_ms'),
  number('quiet p99', 'quiet_p99_ms'),
  number('p50 ms', 'p50_ms'),
  number('p99 ms', 'p99_ms'),
];

export const backlog: Suite = {
  summary: 'a healthy take, and claims on their way to tickets, beside 1k, 100k and 1M waiting messages',
  async run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    const slots = plan.warmUp + plan.requests * (plan.sizes.length + 1);
    const prepare = async (place: Place): Promise<void> => {
      await addPool(place, 'slow', Math.max(...plan.sizes));
      await addPool(place, 'measured', plan.taken);
    };
    return withPlace(THIS, { healthy: 'tickets', prepare }, slots, async (place) => {
      const hook = await startSlowHook(ANSWER_MS);
      try {
        const rows = await measureAll(place, plan, hook.url, progress);
        return {
          settings: await place.db1.settings(),
          rows,
          demands: demandsOf(rows),
        };
      } finally {
        await hook.stop();
      }
    });
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly BacklogRow[]),
};

async function measureAll(
  place: OpenPlace,
  plan: Plan,
  hookUrl: string,
  progress: (line: string) => void,
): Promise<BacklogRow[]> {
  const measure = (count: number) => place.measure({ count, perSec: plan.perSec, patienceMs: PATIENCE_MS });
  await setHook(place, 'slow', 'commit_webhook_url', hookUrl);
  await measure(plan.warmUp);
  progress('quiet');
  const quiet = await measure(plan.requests);
  if (failuresOf(quiet) > 0)
    throw new Error(`requests failed without a backlog: ${JSON.stringify(quiet.failures)}`);
  const rows: BacklogRow[] = [];
  let messages = 0;
  for (const size of plan.sizes) {
    progress(`beside ${whole(size)} messages: they are claimed first`);
    await claimMany(place, 'slow', size - messages);
    messages = size;
    await settle(place.db1);
    const beside = await measure(plan.requests);
    const [before, after] = [timesOf(quiet), timesOf(beside)];
    rows.push({
      name: `backlog ${size}`,
      messages: size,
      ...(await measureTake(place, plan)),
      requests: beside.tookMs.length,
      failures: failuresOf(beside),
      quiet_p50_ms: before.p50,
      quiet_p99_ms: before.p99,
      p50_ms: after.p50,
      p99_ms: after.p99,
      kept: keptOf(quiet, beside),
    });
  }
  return rows;
}

/** In a transaction of its own, which is undone: no worker sees the messages that it takes. */
async function measureTake(
  place: Place,
  { takes, taken }: Plan,
): Promise<{ take_blocks: number; take_ms: number }> {
  const samples: { blocks: number; ms: number }[] = [];
  for (let at = 0; at < takes; at++) {
    await place.db1.run('begin');
    try {
      await claimMany(place, 'measured', taken);
      const [explained] = await place.db1.ask<[Explained]>(
        `explain (analyze, buffers, format json)
         select * from public.bridge_take(array[intake.lane_of('measured')], array[${taken}], 60)`,
      );
      const { Plan: plan } = explained;
      if (plan['Actual Rows'] !== taken)
        throw new Error(`${plan['Actual Rows']} of ${taken} messages were taken`);
      samples.push({
        blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
        ms: explained['Execution Time'],
      });
    } finally {
      await place.db1.run('rollback');
    }
  }
  return {
    take_blocks: median(samples.map(({ blocks }) => blocks)),
    take_ms: median(samples.map(({ ms }) => ms)),
  };
}

type Explained = {
  Plan: { 'Actual Rows': number; 'Shared Hit Blocks': number; 'Shared Read Blocks': number };
  'Execution Time': number;
};

function demandsOf(rows: readonly BacklogRow[]): Demand[] {
  const growth = (values: readonly number[]): number => Math.max(...values) / Math.min(...values);
  return [
    {
      what: `${MAX_GROWTH} / growth of a take's blocks`,
      atLeast: 1,
      value: MAX_GROWTH / growth(rows.map((row) => row.take_blocks)),
    },
    {
      what: `${MAX_GROWTH} / growth of a take's time`,
      atLeast: 1,
      value: MAX_GROWTH / growth(rows.map((row) => row.take_ms)),
    },
    {
      what: 'allowed p99 / p99 from claim to ticket, 0 where one failed',
      atLeast: 1,
      value: Math.min(...rows.map(({ kept }) => kept)),
    },
  ];
}

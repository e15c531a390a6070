// The holds suite: many holds that run out at once, and how late the single holds of another pool end beside them.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { addPool, claimMany, type Place, setHook, startSlowHook } from './neighbours/neighbour.ts';
import { THIS, withPlace } from './neighbours/place.ts';
import { type Column, makeTable, whole } from './rows.ts';
import { quantile } from './stats.ts';
import type { Demand, Suite } from './suite.ts';
import { settle } from './world.ts';

const FULL = { sizes: [1_000, 10_000, 100_000, 1_000_000], leastSingles: 20 };
/** Shows that every part runs. */
const QUICK: Plan = { sizes: [100], leastSingles: 1 };
/** The hooks of the pools never answer in time: the first messages are being validated, the others wait behind them. */
const ANSWER_MS = 600_000;
const PROMISED_MS = 2_000;
const SINGLE_HOLD_MS = 500;
const LOOK_MS = 20;
const LONGEST_MS = 1_800_000;
/** One after the other, each with a claim under way of its own: this many at most while a million end. */
const SINGLE_SLOTS = 10_000;
const MS_PER_SEC = 1_000;

type Plan = typeof FULL;
type HoldsRow = {
  name: string;
  due: number;
  all_ended_sec: number;
  per_sec: number;
  singles: number;
  single_p50_ms: number;
  single_max_ms: number;
};

const COLUMNS: Column<HoldsRow>[] = [
  { heading: 'due at once', text: ({ due }) => whole(due) },
  { heading: 'all ended after s', text: ({ all_ended_sec }) => all_ended_sec.toFixed(1) },
  { heading: 'per second', text: ({ per_sec }) => whole(per_sec) },
  { heading: 'single holds', text: ({ singles }) => String(singles) },
  { heading: 'late p50 ms', text: ({ single_p50_ms }) => whole(single_p50_ms) },
  { heading: 'latest ms', text: ({ single_max_ms }) => whole(single_max_ms) },
];

export const holds: Suite = {
  summary: 'holds that run out at once, up to a million, and how late another pool’s hold ends beside them',
  async run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    const [most = 0] = plan.sizes.slice(-1);
    const prepare = async (place: Place): Promise<void> => {
      await addPool(place, 'crowd', most);
      await addPool(place, 'single', SINGLE_SLOTS);
    };
    return withPlace(THIS, { healthy: 'claims', prepare }, 1, async (place) => {
      // One for each pool: a hook's address has a limit of calls under way.
      const hooks = await Promise.all([startSlowHook(ANSWER_MS), startSlowHook(ANSWER_MS)]);
      try {
        for (const [at, pool] of ['crowd', 'single'].entries())
          await setHook(place, pool, 'validation_webhook_url', hooks[at]?.url ?? '');
        progress('single holds alone');
        const rows = [rowOf(0, 0, await measureSingles(place, plan, Promise.resolve()))];
        for (const size of plan.sizes) {
          progress(`${whole(size)} holds at once: they are claimed first`);
          rows.push(await measure(place, plan, size));
        }
        return {
          settings: await place.db1.settings(),
          rows,
          demands: demandsOf(rows),
        };
      } finally {
        await Promise.all(hooks.map((hook) => hook.stop()));
      }
    });
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly HoldsRow[]),
};

async function measure(place: Place, plan: Plan, size: number): Promise<HoldsRow> {
  await claimMany(place, 'crowd', size);
  await settle(place.db1);
  await place.db1.run(
    `update public.claims set hold_until = now() where pool_id = 'crowd' and freed_at is null`,
  );
  const startMs = performance.now();
  let endMs = 0;
  const allEnded = untilNone(place, `pool_id = 'crowd'`).then(() => {
    endMs = performance.now();
  });
  const lateMs = await measureSingles(place, plan, allEnded);
  await allEnded;
  return rowOf(size, (endMs - startMs) / MS_PER_SEC, lateMs);
}

/** Single holds, one after the other, until `over`; by how many ms each ended too late. */
async function measureSingles(
  { db1, connect }: Place,
  { leastSingles }: Plan,
  over: Promise<void>,
): Promise<number[]> {
  let isOver = false;
  void over.then(
    () => {
      isOver = true;
    },
    () => undefined,
  );
  const looker = await connect('db1');
  const lateMs: number[] = [];
  while (!isOver || lateMs.length < leastSingles) {
    const id = await db1.value<string>('public.claim_resource_and_queue', {
      p_pool_id: 'single',
      p_user_id: randomUUID(),
      p_request_id: null,
    });
    await looker.query(
      `update public.claims set hold_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000)
       where slot_id = $1 and freed_at is null`,
      [id, SINGLE_HOLD_MS],
    );
    const dueMs = performance.now() + SINGLE_HOLD_MS;
    while (await isHeld(looker, id)) {
      if (performance.now() - dueMs > LONGEST_MS) throw new Error('a single hold does not end');
      await pause(LOOK_MS);
    }
    lateMs.push(performance.now() - dueMs);
  }
  return lateMs;
}

async function isHeld(
  looker: { query(text: string, values: unknown[]): Promise<{ rows: unknown[] }> },
  slotId: string,
) {
  const held = 'select from public.claims where slot_id = $1 and freed_at is null';
  return (await looker.query(held, [slotId])).rows.length > 0;
}

async function untilNone({ connect }: Place, which: string): Promise<void> {
  const looker = await connect('db1');
  const untilMs = performance.now() + LONGEST_MS;
  for (;;) {
    const { rows } = await looker.query(
      `select from public.claims where ${which} and freed_at is null limit 1`,
    );
    if (rows.length === 0) return;
    if (performance.now() > untilMs)
      throw new Error(`not all holds ended within ${LONGEST_MS / MS_PER_SEC} s`);
    await pause(LOOK_MS * 5);
  }
}

function rowOf(due: number, seconds: number, lateMs: readonly number[]): HoldsRow {
  const sorted = [...lateMs].sort((a, b) => a - b);
  return {
    name: `holds ${due}`,
    due,
    all_ended_sec: seconds,
    per_sec: seconds === 0 ? 0 : due / seconds,
    singles: sorted.length,
    single_p50_ms: quantile(sorted, 0.5),
    single_max_ms: quantile(sorted, 1),
  };
}

function demandsOf(rows: readonly HoldsRow[]): Demand[] {
  return rows.map(({ due, single_max_ms }) => ({
    what: `${PROMISED_MS} ms / how late the latest single hold ended beside ${whole(due)}`,
    atLeast: 1,
    value: PROMISED_MS / single_max_ms,
  }));
}

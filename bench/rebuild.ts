// The rebuild suite: how long a pool of up to a million slots takes to come back after its cache was lost, and what claims in
// another pool meanwhile notice (I13).

import { statOf, US_PER_TICK } from './cpu.ts';
import { HEALTHY } from './neighbours/healthy.ts';
import { failuresOf, keptOf, timesOf } from './neighbours/measure.ts';
import { addPool, type Place } from './neighbours/neighbour.ts';
import { type OpenPlace, type Version, versionsOf, withPlace } from './neighbours/place.ts';
import { type Column, makeTable, whole } from './rows.ts';
import { median } from './stats.ts';
import type { Demand, Suite } from './suite.ts';
import { settle } from './world.ts';

const FULL = { sizes: [10_000, 100_000, 1_000_000], rounds: 3, requests: 1_000, warmUp: 400, perSec: 200 };
/** Shows that every part runs. */
const QUICK: Plan = { sizes: [1_000], rounds: 1, requests: 20, warmUp: 5, perSec: 100 };
const PATIENCE_MS = 30_000;
const MS_PER_SEC = 1_000;
const US_PER_SEC = 1_000_000;
/** A fifth of the slots is sold, a fifth is on its way with its message. */
const CLAIMED_SQL = `
  with claimed as (
    insert into public.claims (pool_id, slot_id, user_id, state)
    select m.pool_id, m.slot_id, 'buyer ' || m.place, case m.place % 5 when 0 then 'committed' else 'queued' end::public.claim_state
    from (
      select f.pool_id, f.slot_id, row_number() over (order by f.sale_order) as place
      from public.slot_manifest f where f.pool_id = $1
    ) m
    where m.place % 5 < 2
    returning claim_id, slot_id, user_id, state
  )
  insert into pgmq.q_intake_queue (vt, message)
  select now() + interval '1 day', jsonb_build_object(
    'claim_id', c.claim_id, 'pool_id', $1, 'resource_id', c.slot_id, 'user_id', c.user_id, 'state', c.state)
  from claimed c where c.state = 'queued'`;

type Plan = typeof FULL;
type Sample = { sec: number; cpuSec: number; quietP99: number; p99: number; failures: number; kept: number };
type RebuildRow = {
  name: string;
  version: string;
  slots: number;
  rounds: number;
  rebuild_sec: number;
  rebuild_cpu_sec: number;
  quiet_p99_ms: number;
  p99_ms: number;
  failures: number;
  kept: number;
};

const number = (heading: string, name: keyof RebuildRow, digits = 0): Column<RebuildRow> => ({
  heading,
  text: (row) => Number(row[name]).toFixed(digits),
});
const COLUMNS: Column<RebuildRow>[] = [
  { heading: 'version', isText: true, text: ({ version }) => version },
  { heading: 'slots', text: ({ slots }) => whole(slots) },
  ...[number('seconds', 'rebuild_sec', 2), number('CPU seconds', 'rebuild_cpu_sec', 2)],
  ...[
    number('quiet p99 ms', 'quiet_p99_ms', 1),
    number('p99 ms', 'p99_ms', 1),
    number('failures', 'failures'),
  ],
];

export const rebuild: Suite = {
  summary:
    'the rebuild of a pool that lost its slot cache, up to a million slots, and claims in another pool meanwhile',
  compares: true,
  async run({ quick, against, progress }) {
    const plan = quick ? QUICK : FULL;
    const rows: RebuildRow[] = [];
    let settings: Record<string, string> = {};
    for (const size of plan.sizes) {
      progress(`${whole(size)} slots: they are put on sale first`);
      const taken = new Map<string, Sample[]>();
      await withPlaces(versionsOf(against), plan, size, [], async (places) => {
        for (const [, place] of places) settings = await place.db1.settings();
        for (let round = 1; round <= plan.rounds; round++)
          // The order changes from round to round: whatever drifts, drifts for both.
          for (const [name, place] of round % 2 === 0 ? [...places].reverse() : places) {
            progress(`${whole(size)} slots, ${name}, round ${round} of ${plan.rounds}`);
            taken.set(name, [...(taken.get(name) ?? []), await measure(place, plan)]);
          }
      });
      for (const [version, samples] of taken) rows.push(rowOf(size, version, samples));
    }
    return { settings, rows, demands: demandsOf(rows) };
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly RebuildRow[]),
};

/** All versions stand side by side, so that the rounds can take turns. */
function withPlaces(
  [version, ...rest]: readonly Version[],
  plan: Plan,
  size: number,
  open: readonly [string, OpenPlace][],
  use: (places: readonly [string, OpenPlace][]) => Promise<void>,
): Promise<void> {
  if (version === undefined) return use(open);
  const prepare = async (place: Place): Promise<void> => {
    await addPool(place, 'lost', size);
    await place.db1.ask(CLAIMED_SQL, ['lost']);
  };
  const sold = plan.warmUp + 2 * plan.rounds * plan.requests;
  return withPlace(version, { healthy: 'claims', prepare }, sold, async (place) => {
    await place.measure({ count: plan.warmUp, perSec: plan.perSec, patienceMs: PATIENCE_MS });
    return withPlaces(rest, plan, size, [...open, [version.name, place]], use);
  });
}

async function measure(place: OpenPlace, plan: Plan): Promise<Sample> {
  const order = { count: plan.requests, perSec: plan.perSec, patienceMs: PATIENCE_MS };
  await settle(place.db1);
  const quiet = await place.measure(order);
  if (failuresOf(quiet) > 0) throw new Error(`requests failed alone: ${JSON.stringify(quiet.failures)}`);
  const session = await place.connect('db1');
  try {
    const pid = (await session.query('select pg_backend_pid() as pid')).rows[0].pid as number;
    // The lock keeps the scheduler of the server from rebuilding it elsewhere. The other pool is lost too, and comes back first.
    await session.query(`select pg_advisory_lock(intake.pool_lock_key('lost'))`);
    await session.query('truncate public.inventory_slots');
    await session.query('select intake.rebuild_inventory($1)', [HEALTHY]);
    const beside = place.measure(order);
    const [startMs, startTicks] = [performance.now(), statOf(pid).ticks];
    await session.query('begin');
    const { rows } = await session.query(`select intake.rebuild_inventory('lost') as done`);
    await session.query('commit');
    const sec = (performance.now() - startMs) / MS_PER_SEC;
    const cpuSec = ((statOf(pid).ticks - startTicks) * US_PER_TICK) / US_PER_SEC;
    if (rows[0].done !== true) throw new Error('the pool was rebuilt elsewhere');
    const report = await beside;
    const kept = keptOf(quiet, report);
    const [quietP99, p99] = [timesOf(quiet).p99, timesOf(report).p99];
    return { sec, cpuSec, quietP99, p99, failures: failuresOf(report), kept };
  } finally {
    await session.end();
  }
}

function rowOf(slots: number, version: string, samples: readonly Sample[]): RebuildRow {
  const of = (name: keyof Sample): number => median(samples.map((sample) => sample[name]));
  return {
    name: `rebuild ${slots}`,
    version,
    slots,
    rounds: samples.length,
    rebuild_sec: of('sec'),
    rebuild_cpu_sec: of('cpuSec'),
    quiet_p99_ms: of('quietP99'),
    p99_ms: of('p99'),
    failures: samples.reduce((sum, { failures }) => sum + failures, 0),
    kept: Math.min(...samples.map(({ kept }) => kept)),
  };
}

/** Of this checkout the promise to its neighbours; the CPU against the other checkout, where there is one. */
export function demandsOf(rows: readonly RebuildRow[]): Demand[] {
  return rows
    .filter(({ version }) => version === 'this')
    .flatMap((own) => {
      const other = rows.find(({ version, slots }) => version !== 'this' && slots === own.slots);
      return [
        {
          what: `${whole(own.slots)} slots: allowed p99 / p99 of claims in another pool meanwhile, 0 where one failed`,
          atLeast: 1,
          value: own.kept,
        },
        {
          what: `${whole(own.slots)} slots: the other checkout's CPU / ours`,
          atLeast: 1,
          ...(other && { value: other.rebuild_cpu_sec / own.rebuild_cpu_sec }),
        },
      ];
    });
}

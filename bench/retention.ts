// The retention suite: a million old payloads are removed while deliveries come in; how long each part takes, and what the
// deliveries notice of it.

import { createDatabase } from '../src/db/database.ts';
import { prune } from '../src/scheduler/retention.ts';
import type { HealthyReport } from './neighbours/healthy.ts';
import { failuresOf, timesOf } from './neighbours/measure.ts';
import type { Place } from './neighbours/neighbour.ts';
import { type OpenPlace, THIS, withPlace } from './neighbours/place.ts';
import { type Column, makeTable, whole } from './rows.ts';
import { log } from './servers.ts';
import { quantile } from './stats.ts';
import type { Demand, Suite } from './suite.ts';
import { settle } from './world.ts';

const FULL = { events: 1_000_000, atOnce: 50_000, requests: 3_000, warmUp: 500, perSec: 100 };
/** Shows that every part runs. */
const QUICK: Plan = { events: 2_000, atOnce: 1_000, requests: 50, warmUp: 5, perSec: 50 };
const PATIENCE_MS = 30_000;
const MAX_PART_MS = 1_000;
const MAX_GROWTH = 1.5;
const MS_PER_SEC = 1_000;

type Plan = typeof FULL;
type RetentionRow = {
  name: string;
  events: number;
  seconds: number;
  parts: number;
  part_p50_ms: number;
  part_p99_ms: number;
  part_max_ms: number;
  requests: number;
  failures: number;
  quiet_p50_ms: number;
  quiet_p99_ms: number;
  p50_ms: number;
  p99_ms: number;
};

const number = (heading: string, name: keyof RetentionRow, digits = 1): Column<RetentionRow> => ({
  heading,
  text: (row) => Number(row[name]).toFixed(digits),
});
const COLUMNS: Column<RetentionRow>[] = [
  { heading: 'events', text: ({ events }) => whole(events) },
  number('pruned in s', 'seconds'),
  number('parts', 'parts', 0),
  number('part p50', 'part_p50_ms'),
  number('part p99', 'part_p99_ms'),
  number('longest part ms', 'part_max_ms'),
  number('deliveries', 'requests', 0),
  number('failures', 'failures', 0),
  number('quiet p50', 'quiet_p50_ms'),
  number('quiet p99', 'quiet_p99_ms'),
  number('p50 ms', 'p50_ms'),
  number('p99 ms', 'p99_ms'),
];

export const retention: Suite = {
  summary: 'a million old payloads removed in parts, and deliveries beside it',
  async run({ quick, progress }) {
    const plan = quick ? QUICK : FULL;
    const prepare = async (place: Place): Promise<void> => {
      progress(`${whole(plan.events)} old events are filled in`);
      await fill(place, plan);
    };
    return withPlace(THIS, { healthy: 'events', prepare }, 1, async (place) => {
      const rows = [await measure(place, plan, progress)];
      return {
        settings: await place.db2.settings(),
        rows,
        demands: demandsOf(rows),
      };
    });
  },
  table: (rows) => makeTable(COLUMNS, rows as readonly RetentionRow[]),
};

/** Kept for ever until the measurement begins: the workers of the place prune too. */
async function fill({ db2 }: Place, { events, atOnce }: Plan): Promise<void> {
  await db2.value('public.set_retention', {
    p_what: 'webhook_payloads',
    p_keep_days: null,
    p_actor: 'bench',
  });
  const event = `jsonb_build_object('id', 'old_' || n, 'object', 'event', 'type', 'payment_intent.succeeded', 'created', 1771927200,
    'pad', repeat(md5(n::text), 30), 'data', jsonb_build_object('object', jsonb_build_object('id', 'pi_' || n, 'amount', 2500,
    'currency', 'eur', 'metadata', jsonb_build_object('user_id', 'user_' || n))))`;
  for (let from = 1; from <= events; from += atOnce)
    await db2.run(
      `insert into public.webhook_events (webhook_id, provider, event_id, event_type, status, received_at, payload, raw_body, payload_hash)
       select w.webhook_id, 'stripe', 'old_' || n, 'payment_intent.succeeded', 'success', now() - interval '100 days' + n * interval '0.1 s',
         e.event, convert_to(e.event::text, 'UTF8'), md5(n::text)
       from generate_series(${from}, ${Math.min(from + atOnce - 1, events)}) n
       cross join lateral (select ${event} as event) e
       cross join (select webhook_id from public.webhook_endpoints limit 1) w`,
    );
  await settle(db2);
}

async function measure(
  place: OpenPlace,
  plan: Plan,
  progress: (line: string) => void,
): Promise<RetentionRow> {
  const deliver = (count: number) => place.measure({ count, perSec: plan.perSec, patienceMs: PATIENCE_MS });
  await deliver(plan.warmUp);
  progress('quiet');
  const quiet = await deliver(plan.requests);
  if (failuresOf(quiet) > 0)
    throw new Error(`deliveries failed while nothing was pruned: ${JSON.stringify(quiet.failures)}`);
  progress('beside retention');
  await place.db2.value('public.set_retention', {
    p_what: 'webhook_payloads',
    p_keep_days: 90,
    p_actor: 'bench',
  });
  const db = createDatabase({ url: place.db2Url, max: 1, applicationName: 'sluice-retention', log });
  try {
    const parts: number[] = [];
    let gone = 0;
    let isOver = false;
    const startMs = performance.now();
    const pruning = prune(db, log, undefined, (part, tookMs) => {
      parts.push(tookMs);
      gone += part.gone;
    }).then(() => {
      isOver = true;
      return (performance.now() - startMs) / MS_PER_SEC;
    });
    const beside: HealthyReport = { tookMs: [], failures: {} };
    do {
      const some = await deliver(Math.ceil(plan.requests / 3));
      beside.tookMs.push(...some.tookMs);
      for (const [what, count] of Object.entries(some.failures))
        beside.failures[what] = (beside.failures[what] ?? 0) + count;
    } while (!isOver);
    const seconds = await pruning;
    if (gone !== plan.events) throw new Error(`${gone} of ${plan.events} events were pruned`);
    return rowOf(plan, seconds, parts, quiet, beside);
  } finally {
    await db.end();
  }
}

function rowOf(
  { events }: Plan,
  seconds: number,
  parts: readonly number[],
  quiet: HealthyReport,
  beside: HealthyReport,
): RetentionRow {
  const sorted = [...parts].sort((a, b) => a - b);
  const [before, after] = [timesOf(quiet), timesOf(beside)];
  return {
    name: `retention ${events}`,
    events,
    seconds,
    parts: sorted.length,
    part_p50_ms: quantile(sorted, 0.5),
    part_p99_ms: quantile(sorted, 0.99),
    part_max_ms: quantile(sorted, 1),
    requests: beside.tookMs.length,
    failures: failuresOf(beside),
    quiet_p50_ms: before.p50,
    quiet_p99_ms: before.p99,
    p50_ms: after.p50,
    p99_ms: after.p99,
  };
}

function demandsOf(rows: readonly RetentionRow[]): Demand[] {
  return rows.flatMap(({ part_max_ms, quiet_p99_ms, p99_ms, failures }) => [
    { what: `${MAX_PART_MS} ms / the longest part`, atLeast: 1, value: MAX_PART_MS / part_max_ms },
    {
      what: `${MAX_GROWTH} times quiet p99 / p99 of deliveries beside it, 0 where one failed`,
      atLeast: 1,
      value: failures > 0 ? 0 : (MAX_GROWTH * quiet_p99_ms) / p99_ms,
    },
  ]);
}

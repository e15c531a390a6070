// What the console remembers: rows of all databases put together, with rates from their counters. Pure.

import { type Mark, mergeMarks, outagesOf, type RawMark, type Span } from './marks.ts';
import { HISTORY_COLUMNS, type HistoryRow } from './sample.ts';

/** A row of public.read_samples: `at` in ms, and the numbers of that database. */
export type NumbersRow = Readonly<Record<string, number | null>> & { readonly at: number };

/** [ms, the numbers of a part], null where the part is gone. */
export type PartRow = readonly [at: number, numbers: readonly (number | null)[] | null];

/** What public.read_samples answers. */
export interface Remembered {
  readonly rows: readonly NumbersRow[];
  readonly marks: readonly RawMark[];
  readonly parts: readonly string[];
  readonly part: readonly PartRow[] | null;
}

/** A database that was asked; without `answer` it is away. */
export interface Asked {
  readonly name: string;
  readonly side: 'db1' | 'db2';
  readonly answer?: Remembered;
}

export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
  readonly nowMs: number;
  readonly stepSec: number;
}

/** What GET /admin/samples answers. */
export interface SampleHistory {
  readonly from: string;
  readonly to: string;
  readonly step_sec: number;
  /** Those that were asked, and whether they answered. */
  readonly databases: readonly { readonly name: string; readonly ok: boolean }[];
  readonly columns: readonly string[];
  /** Oldest first; a time that no server sampled has no row. */
  readonly rows: readonly HistoryRow[];
  readonly marks: readonly Mark[];
  /** What `of` can name. */
  readonly parts: readonly string[];
  /** The numbers of what `of` names. */
  readonly part: { readonly columns: readonly string[]; readonly rows: readonly HistoryRow[] } | null;
}

/** The shortest first; a range has at most so many of them. */
const STEPS_SEC = [2, 10, 60, 300, 1_800, 7_200] as const;
const MOST_ROWS = 500;
/** Samples of two seconds are kept for an hour; a little longer while they are removed. */
const FINE_MS = 3_660_000;
const MINUTE_SEC = 60;
const UNITS_SEC = { m: 60, h: 3_600, d: 86_400 } as const;

/** "15m", "1h", "30d" in ms; undefined for what is not that, or more than 30 days. */
export function rangeMs(text: string): number | undefined {
  const [, digits, unit] = /^([1-9][0-9]{0,3})([mhd])$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const sec = Number(digits) * UNITS_SEC[unit as keyof typeof UNITS_SEC];
  return sec <= 30 * UNITS_SEC.d ? sec * 1_000 : undefined;
}

export function windowOf(fromMs: number, toMs: number, nowMs: number): Window {
  const isFine = nowMs - fromMs <= FINE_MS;
  const step =
    STEPS_SEC.find((sec) => (isFine || sec >= MINUTE_SEC) && (toMs - fromMs) / 1_000 / sec <= MOST_ROWS) ??
    STEPS_SEC[STEPS_SEC.length - 1];
  return { fromMs, toMs, nowMs, stepSec: step ?? MINUTE_SEC };
}

/** A rate needs the row before. */
export const readFromMs = ({ fromMs, stepSec }: Window): number => fromMs - 2 * stepSec * 1_000;

/** Of what happened before a hole of so many steps nothing is carried on, and no rate crosses it. */
const HOLE_STEPS = 4;
const LEAST_HOLE_MS = 12_000;
const holeMs = (stepSec: number): number => Math.max(LEAST_HOLE_MS, HOLE_STEPS * stepSec * 1_000);

type Values = Readonly<Record<string, number | null>>;

/** The numbers of a database at a time, and how fast its counters grew since the time before. */
interface Step {
  readonly values: Values;
  readonly rates: Rates;
}

/** How the numbers of several cells become one. */
const SUMMED = new Set([
  'enqueued',
  'drained',
  'queue_depth',
  'dlq_depth',
  'inbox_waiting',
  'inbox_dead_letters',
  'orders_held',
  'past_bound',
  'bridge_workers',
]);

export function historyOf(asked: readonly Asked[], window: Window, of?: string): SampleHistory {
  const { fromMs, toMs, stepSec } = window;
  const marks = mergeMarks(asked.map(({ name, answer }) => ({ source: name, marks: answer?.marks ?? [] })));
  const cell = asked.find(({ name, side }) => side === 'db1' && name === of)?.name;
  const intakes = asked.filter(({ side, name }) => side === 'db1' && (cell === undefined || name === cell));
  const ledger = asked.find(({ side }) => side === 'db2');
  const db1 = joined(
    intakes.map(({ answer }) => answer?.rows ?? []),
    stepSec,
  );
  const db2 = joined([ledger?.answer?.rows ?? []], stepSec);
  const away = {
    db1: outagesOf(
      marks,
      intakes.map(({ name }) => name),
    ),
    db2: outagesOf(marks, ledger === undefined ? [] : [ledger.name]),
  };
  const times = timesOf(db1, db2, window);
  const rows = times.map((at) => rowOf(at, stepAt(db1, at, stepSec), stepAt(db2, at, stepSec), away));
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    step_sec: stepSec,
    databases: asked.map(({ name, answer }) => ({ name, ok: answer !== undefined })),
    columns: HISTORY_COLUMNS,
    rows,
    marks: marks.filter(({ began_at, ended_at }) => isWithin(window, began_at, ended_at)),
    parts: partsOf(asked),
    part: of === undefined || cell !== undefined ? null : partOf(of, asked, times, window),
  };
}

function isWithin({ fromMs, toMs }: Window, began: string, ended: string | null): boolean {
  return Date.parse(began) < toMs && (ended === null || Date.parse(ended) >= fromMs);
}

/** Cells as parts first, where there are several. */
function partsOf(asked: readonly Asked[]): string[] {
  const cells = asked.filter(({ side }) => side === 'db1');
  const names = new Set(asked.flatMap(({ answer }) => answer?.parts ?? []));
  return [...(cells.length > 1 ? cells.map(({ name }) => name) : []), ...[...names].sort()];
}

/** By time. A cell that has no row at a time counts as it was last, so that sums do not jump. */
function joined(cells: readonly (readonly NumbersRow[])[], stepSec: number): Map<number, Step> {
  const [only, ...others] = cells;
  if (only !== undefined && others.length === 0)
    return withRates(new Map(only.map((row) => [row.at, row])), holeMs(stepSec));
  const times = [...new Set(cells.flatMap((rows) => rows.map(({ at }) => at)))].sort((a, b) => a - b);
  const maps = cells.map((rows) => new Map(rows.map((row) => [row.at, row])));
  const last: (NumbersRow | undefined)[] = cells.map(() => undefined);
  const result = new Map<number, Values>();
  for (const at of times) {
    const values: Record<string, number | null> = {};
    for (const [index, map] of maps.entries()) {
      const row = map.get(at) ?? last[index];
      last[index] = row;
      if (row === undefined) continue;
      for (const [name, value] of Object.entries(row)) {
        const before = values[name];
        if (name === 'at' || value === null) values[name] = before ?? null;
        else if (before === null || before === undefined) values[name] = value;
        else values[name] = SUMMED.has(name) ? before + value : Math.max(before, value);
      }
    }
    result.set(at, values);
  }
  return withRates(result, holeMs(stepSec));
}

type Rates = ReturnType<typeof ratesOf>;

/** Of each counter, how fast it grew; of one that this database does not have, null. */
const ratesOf = (now: Values, then: Values, ms: number) => ({
  claims_per_sec: rateOf(now.enqueued, then.enqueued, ms),
  drain_per_sec: rateOf(now.drained, then.drained, ms),
  commits_per_sec: rateOf(now.tickets, then.tickets, ms),
  webhooks_per_sec: rateOf(now.recorded, then.recorded, ms),
  calls_per_sec: rateOf(now.calls, then.calls, ms),
});
const NO_RATES = ratesOf({}, {}, 1);

function withRates(rows: ReadonlyMap<number, Values>, hole: number): Map<number, Step> {
  const steps = new Map<number, Step>();
  let before: { at: number; values: Values } | undefined;
  for (const [at, values] of rows) {
    const ms = at - (before?.at ?? at);
    steps.set(at, { values, rates: before && ms <= hole ? ratesOf(values, before.values, ms) : NO_RATES });
    before = { at, values };
  }
  return steps;
}

/** Never negative: a counter that went back was reset, by a crash or by hand. */
function rateOf(now: number | null | undefined, then: number | null | undefined, ms: number): number | null {
  if (typeof now !== 'number' || typeof then !== 'number') return null;
  return Math.max(0, Math.round(((now - then) * 10_000) / ms) / 10);
}

/** A step that has not ended says too little, but for the shortest. */
function timesOf(
  db1: ReadonlyMap<number, Step>,
  db2: ReadonlyMap<number, Step>,
  { fromMs, toMs, nowMs, stepSec }: Window,
): number[] {
  const isOver = (at: number): boolean => stepSec <= 2 || at + stepSec * 1_000 <= nowMs;
  return [...new Set([...db1.keys(), ...db2.keys()])]
    .filter((at) => at >= fromMs && at < toMs && isOver(at))
    .sort((a, b) => a - b);
}

/** A sample that came late falls into the next step: one step without a row is as the one before. */
function stepAt(steps: ReadonlyMap<number, Step>, at: number, stepSec: number): Step | undefined {
  return steps.get(at) ?? steps.get(at - stepSec * 1_000);
}

const NOTHING: Step = { values: {}, rates: NO_RATES };

function rowOf(
  at: number,
  intake: Step | undefined,
  ledger: Step | undefined,
  away: Readonly<Record<'db1' | 'db2', readonly Span[]>>,
): HistoryRow {
  const isUp = (side: 'db1' | 'db2'): boolean => !away[side].some(([from, to]) => at >= from && at < to);
  const [db1_ok, db2_ok] = [isUp('db1'), isUp('db2')];
  const of = (step: Step | undefined, isKnown: boolean): Step =>
    step !== undefined && isKnown ? step : NOTHING;
  const { values: one, rates: oneRates } = of(intake, db1_ok);
  const { values: two, rates: twoRates } = of(ledger, db2_ok);
  const flat: Record<(typeof HISTORY_COLUMNS)[number], string | number | boolean | null> = {
    at: new Date(at).toISOString(),
    claims_total: one.enqueued ?? null,
    claims_per_sec: oneRates.claims_per_sec,
    queue_depth: one.queue_depth ?? null,
    oldest_msg_sec: one.oldest_msg_sec ?? null,
    drain_per_sec: oneRates.drain_per_sec,
    eta_sec: null,
    dlq_depth: one.dlq_depth ?? null,
    hold_oldest_sec: one.hold_oldest_sec ?? null,
    inbox_waiting: one.inbox_waiting ?? null,
    ledger_total: two.tickets ?? null,
    commits_per_sec: twoRates.commits_per_sec,
    ticket_p50_sec: two.ticket_p50_sec ?? null,
    ticket_p99_sec: two.ticket_p99_sec ?? null,
    webhooks_backlog: two.backlog ?? null,
    webhooks_oldest_sec: two.oldest_sec ?? null,
    webhooks_dead_letters: two.dead_letters ?? null,
    webhooks_per_sec: twoRates.webhooks_per_sec,
    calls_per_sec: twoRates.calls_per_sec,
    db1_ok,
    db2_ok,
  };
  return HISTORY_COLUMNS.map((column) => flat[column]);
}

/** The numbers of each kind of part, as audit.parts_of of each database gives them. A pool has some in both. */
const PART_COLUMNS: Readonly<Record<string, Readonly<Record<'db1' | 'db2', readonly string[]>>>> = {
  pool: {
    db1: ['available', 'reserved', 'consumed'],
    db2: ['ticket_p50_sec', 'ticket_p99_sec', 'tickets_per_sec'],
  },
  lane: { db1: ['messages', 'oldest_sec'], db2: [] },
  endpoint: { db1: [], db2: ['waiting', 'oldest_sec', 'dead_letters', 'per_sec'] },
};

function partOf(
  of: string,
  asked: readonly Asked[],
  times: readonly number[],
  { stepSec }: Window,
): SampleHistory['part'] {
  const kind = PART_COLUMNS[of.slice(0, of.indexOf(' '))];
  if (kind === undefined) return null;
  const sides = asked.filter(({ side, answer }) => kind[side].length > 0 && (answer?.part?.length ?? 0) > 0);
  const isPool = kind === PART_COLUMNS.pool;
  const columns = ['at', ...kind.db1, ...kind.db2, ...(isPool ? ['claims_per_sec'] : [])];
  const known: Record<'db1' | 'db2', readonly (number | null)[]> = { db1: [], db2: [] };
  const left = { db1: rowsOf(sides, 'db1'), db2: rowsOf(sides, 'db2') };
  let before: { at: number; taken: number } | undefined;
  const rows = times.map((at): HistoryRow => {
    for (const side of ['db1', 'db2'] as const)
      while (left[side][0] !== undefined && left[side][0][0] <= at)
        known[side] = left[side].shift()?.[1] ?? [];
    const values = (['db1', 'db2'] as const).flatMap((side) =>
      kind[side].map((_, index) => known[side][index] ?? null),
    );
    const [, reserved, consumed] = known.db1;
    const taken =
      isPool && typeof reserved === 'number' && typeof consumed === 'number'
        ? reserved + consumed
        : undefined;
    const rate =
      taken === undefined || before === undefined || at - before.at > holeMs(stepSec)
        ? null
        : rateOf(taken, before.taken, at - before.at);
    before = taken === undefined ? undefined : { at, taken };
    return [new Date(at).toISOString(), ...values, ...(isPool ? [rate] : [])];
  });
  return { columns, rows };
}

/** A pool that has moved has rows in two cells. */
function rowsOf(asked: readonly Asked[], side: 'db1' | 'db2'): PartRow[] {
  return asked
    .filter((one) => one.side === side)
    .flatMap(({ answer }) => answer?.part ?? [])
    .sort(([a], [b]) => a - b);
}

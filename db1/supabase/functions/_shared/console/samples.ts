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
    db1: intakes.map(({ name }) => outagesOf(marks, name)),
    db2: ledger === undefined ? [] : [outagesOf(marks, ledger.name)],
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
  const names = new Set(
    asked.flatMap(({ name, answer }) =>
      (answer?.parts ?? []).map((part) => (isOwn(name, part) ? `${name} ${part}` : part)),
    ),
  );
  return [...(cells.length > 1 ? cells.map(({ name }) => name) : []), ...[...names].sort()];
}

const LANE_OF_A_CELL = /^(cell \S+) (lane .+)$/;

/** Each cell numbers its own lanes: lane 3 of one is not lane 3 of another. */
const isOwn = (database: string, part: string): boolean =>
  database.startsWith('cell ') && part.startsWith('lane ');

/** What a database calls the part that `of` names; null where the part is not one of its own. */
export function partIn(database: string, of: string): string | null {
  const [, cell, lane] = LANE_OF_A_CELL.exec(of) ?? [];
  if (lane !== undefined) return cell === database ? lane : null;
  return isOwn(database, of) ? null : of;
}

/** By time. A cell that has no row at a time counts as it was last, so that sums do not jump. */
function joined(cells: readonly (readonly NumbersRow[])[], stepSec: number): Map<number, Step> {
  const steps = cells.map((rows) => withRates(rows, holeMs(stepSec)));
  const [only, ...others] = steps;
  if (only !== undefined && others.length === 0) return only;
  const times = [...new Set(steps.flatMap((some) => [...some.keys()]))].sort((a, b) => a - b);
  const last: (Step | undefined)[] = steps.map(() => undefined);
  return new Map(
    times.map((at) => {
      for (const [index, some] of steps.entries()) last[index] = some.get(at) ?? last[index];
      const values = last.flatMap((step) => (step === undefined ? [] : [step.values]));
      // Each cell's own, and then their sum: a cell that is new would look as if all that it ever counted had come at once.
      const rates = steps.map((some) => stepAt(some, at, stepSec)?.rates ?? NO_RATES);
      return [at, { values: sumsOf(values), rates: { ...NO_RATES, ...sumsOf(rates, RATE_NAMES) } }];
    }),
  );
}

/** Null where all are. What is not summed is the highest. */
function sumsOf(cells: readonly Values[], summed: ReadonlySet<string> = SUMMED): Values {
  const sums: Record<string, number | null> = {};
  for (const [name, value] of cells.flatMap((values) => Object.entries(values))) {
    const before = sums[name] ?? null;
    if (before === null || value === null) sums[name] = before ?? value;
    else sums[name] = summed.has(name) ? before + value : Math.max(before, value);
  }
  return sums;
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
const RATE_NAMES: ReadonlySet<string> = new Set(Object.keys(NO_RATES));

function withRates(rows: readonly NumbersRow[], hole: number): Map<number, Step> {
  return new Map(
    rows.map((values, index) => {
      const before = rows[index - 1];
      const ms = values.at - (before?.at ?? values.at);
      const rates = before !== undefined && ms <= hole ? ratesOf(values, before, ms) : NO_RATES;
      return [values.at, { values, rates }];
    }),
  );
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

/** Of each database of a side, when it was away. */
type Away = Readonly<Record<'db1' | 'db2', readonly (readonly Span[])[]>>;

const NOTHING: Step = { values: {}, rates: NO_RATES };

function rowOf(at: number, intake: Step | undefined, ledger: Step | undefined, away: Away): HistoryRow {
  const isAway = (spans: readonly Span[]): boolean => spans.some(([from, to]) => at >= from && at < to);
  // As in the live numbers: while one cell answers there are some, and the cell that does not counts as it was last.
  const isUp = (side: 'db1' | 'db2'): boolean => away[side].length === 0 || !away[side].every(isAway);
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
  const part = LANE_OF_A_CELL.exec(of)?.[2] ?? of;
  const kind = PART_COLUMNS[part.slice(0, part.indexOf(' '))];
  if (kind === undefined) return null;
  const isPool = kind === PART_COLUMNS.pool;
  const columns = ['at', ...kind.db1, ...kind.db2, ...(isPool ? ['claims_per_sec'] : [])];
  const numbersAt = { db1: numbersOf(asked, 'db1'), db2: numbersOf(asked, 'db2') };
  let before: { at: number; taken: number } | undefined;
  const rows = times.map((at): HistoryRow => {
    const known = { db1: numbersAt.db1(at), db2: numbersAt.db2(at) };
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

/**
 * What is known of the part at a time; times are asked for from the first to the last. Of several cells the one that has the part
 * says it: a pool is in one of them, and the others say that it is not in them.
 */
function numbersOf(asked: readonly Asked[], side: 'db1' | 'db2'): (at: number) => readonly (number | null)[] {
  const databases = asked
    .filter((one) => one.side === side)
    .map(({ answer }): { left: PartRow[]; known: PartRow[1] } => ({
      ...{ left: [...(answer?.part ?? [])], known: null },
    }));
  return (at) => {
    for (const database of databases)
      while (database.left[0] !== undefined && database.left[0][0] <= at)
        database.known = database.left.shift()?.[1] ?? null;
    return databases.find(({ known }) => known !== null)?.known ?? [];
  };
}

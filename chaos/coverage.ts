// Which operation met which fault: a run proves nothing about a fault during which nothing was asked. Counted from what
// clients, workers and tables say; a cell without a number is named by the report and by the run itself.

import { FAULT_KINDS } from './faults/kinds.ts';
import type { Fault, History } from './history.ts';

/** When an operation was under way. Of many only the end is known. */
type Span = { from: number; to: number };
type Operation = { name: string; spansOf(history: History): Span[] };

const at = (ms: number): Span => ({ from: ms, to: ms });
const told = (ms: number | null | undefined): Span[] => (ms === null || ms === undefined ? [] : [at(ms)]);

/** A claim that PostgREST answered has no id: its function returns the slot. */
const isByPostgrest = ({ told: slots }: History['claims'][number]): boolean =>
  slots.some(({ claimId }) => claimId === null);
const claimSpans = (isWanted: (call: History['claims'][number]) => boolean) => (history: History) =>
  history.claims.filter(isWanted).map(({ startedAt, endedAt }) => ({ from: startedAt, to: endedAt }));
const eventsAt = (endpoint: string) => (history: History) =>
  history.events
    .filter((event) => event.endpoint === endpoint)
    .flatMap(({ acknowledgedAt }) => told(acknowledgedAt));
const actions = (database: 'dead_letter' | 'webhook') => (history: History) =>
  history.operatorActions
    .filter(({ action }) => action.startsWith(`${database}_`))
    .map((call) => at(call.at));

/** What clients ask for, and what workers do about it: the columns of the table. */
export const OPERATIONS: readonly Operation[] = [
  { name: 'claim', spansOf: claimSpans((call) => !isByPostgrest(call)) },
  { name: 'claim by PostgREST', spansOf: claimSpans(isByPostgrest) },
  { name: 'claim again', spansOf: claimSpans(({ attempts }) => attempts > 1) },
  { name: 'release', spansOf: ({ releases }) => releases.map((call) => at(call.at)) },
  {
    name: 'ticket',
    spansOf: ({ finishes }) =>
      finishes.filter(({ outcome }) => outcome === 'committed').map((finish) => at(finish.at)),
  },
  { name: 'hook', spansOf: ({ targetCalls }) => targetCalls.map((call) => at(call.at)) },
  { name: 'inline event', spansOf: eventsAt('inline') },
  { name: 'queued event', spansOf: eventsAt('queued') },
  { name: 'event by inbox', spansOf: eventsAt('accepting') },
  { name: 'effect', spansOf: ({ eventFinishes }) => eventFinishes.map((finish) => at(finish.at)) },
  {
    name: 'call event',
    spansOf: ({ callEvents }) => callEvents.flatMap(({ acknowledgedAt }) => told(acknowledgedAt)),
  },
  { name: 'operator: claims', spansOf: actions('dead_letter') },
  { name: 'operator: events', spansOf: actions('webhook') },
  { name: 'payment', spansOf: ({ paid }) => paid?.orders.flatMap(({ paidAt }) => told(paidAt)) ?? [] },
  {
    name: 'end of a hold',
    spansOf: ({ paid }) =>
      paid?.final.claims.flatMap(({ freedAt }) =>
        told(freedAt === null ? null : freedAt - paid.startedAtMs),
      ) ?? [],
  },
  { name: 'void', spansOf: ({ paid }) => paid?.voids.map((call) => at(call.at)) ?? [] },
];

/**
 * After a fault is healed: reconnecting, taking over and rebuilding belong to it, and many faults last no time at all. Until the
 * traffic that it touched is acknowledged again it goes on anyway.
 */
const AFTERMATH_MS = 5_000;

/** For each fault that happened, how many of each operation it met, in the order of `OPERATIONS`. */
export type Coverage = Record<string, number[]>;

export function coverageOf(history: History): Coverage {
  const spans = OPERATIONS.map(({ spansOf }) => spansOf(history));
  const names = [...new Set(history.faults.map(({ name }) => name))].sort();
  return Object.fromEntries(
    names.map((name) => {
      const windows = history.faults.filter((fault) => fault.name === name).map(windowOf);
      const meets = (span: Span) => windows.some(({ from, to }) => span.to >= from && span.from <= to);
      return [name, spans.map((own) => own.filter(meets).length)];
    }),
  );
}

const windowOf = ({ startedAt, healedAt, recoveredAt }: Fault): Span => ({
  from: startedAt,
  to: Math.max(healedAt, recoveredAt ?? healedAt) + AFTERMATH_MS,
});

/** Of several runs. */
export function sumOfCoverage(all: readonly Coverage[]): Coverage {
  const names = [...new Set(all.flatMap((one) => Object.keys(one)))].sort();
  return Object.fromEntries(
    names.map((name) => [
      name,
      OPERATIONS.map((_, column) => all.reduce((sum, one) => sum + (one[name]?.[column] ?? 0), 0)),
    ]),
  );
}

/** What met nothing, as "fault × operation"; a fault that never happened has no operation at all. */
export function emptyCells(
  coverage: Coverage,
  faults: readonly string[] = Object.keys(FAULT_KINDS),
): string[] {
  return faults.flatMap((fault) => {
    const row = coverage[fault];
    if (row === undefined) return [`${fault} × everything`];
    return OPERATIONS.flatMap(({ name }, column) => (row[column] ? [] : [`${fault} × ${name}`]));
  });
}

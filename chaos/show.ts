// What a person sees of a run: one line while it goes on, a table when it is over.

import { type HoldRow, heldLongest } from './checkers/holds.ts';
import type { NeighbourRow } from './checkers/neighbours.ts';
import { coverageOf, emptyCells } from './coverage.ts';
import type { History } from './history.ts';
import type { Verdict } from './judge.ts';
import type { Progress } from './options.ts';

const SECOND_MS = 1_000;
/** On a terminal one line is written over and over; elsewhere one now and then. */
const LOG_EVERY_MS = 10_000;
const EXAMPLES = 20;

export function showProgress(out: NodeJS.WriteStream = process.stderr): {
  show(progress: Progress): void;
  end(): void;
} {
  let loggedMs = Number.NEGATIVE_INFINITY;
  return {
    show(progress) {
      if (out.isTTY) out.write(`\r\x1b[2K${lineOf(progress)}`);
      else if (progress.atMs - loggedMs >= LOG_EVERY_MS) {
        loggedMs = progress.atMs;
        out.write(`${lineOf(progress)}\n`);
      }
    },
    end() {
      if (out.isTTY) out.write('\n');
    },
  };
}

export function lineOf({ phase, atMs, acknowledgements, perSecond, faults, open }: Progress): string {
  const seconds = String(Math.round(atMs / SECOND_MS)).padStart(4);
  const now = open.length > 0 ? `, now ${open.join(', ')}` : '';
  return `${seconds} s ${phase.padEnd(7)} ${acknowledgements} acks (${Math.round(perSecond)}/s), ${faults} faults${now}`;
}

export function summaryOf(history: History, verdict: Verdict): string {
  const { counts, recovery, violations } = verdict;
  const byName = new Map<string, number>();
  for (const { name } of history.faults) byName.set(name, (byName.get(name) ?? 0) + 1);
  const tally = (name: string, row: Record<string, number>) =>
    `  ${name.padEnd(8)} ${Object.entries(row)
      .map(([key, value]) => `${key} ${value}`)
      .join(', ')}`;
  const spread = (what: string, value: { p50: number; p99: number } | null) =>
    value === null ? `${what} –` : `${what} p50 ${Math.round(value.p50)} ms, p99 ${Math.round(value.p99)} ms`;
  const drained = recovery.drainMs === null ? 'never' : `${(recovery.drainMs / SECOND_MS).toFixed(1)} s`;
  return [
    `faults: ${history.faults.length} (${[...byName].map(([name, count]) => `${name} ${count}`).join(', ')})`,
    tally('claims', counts.claims),
    tally('events', counts.events),
    tally('calls', counts.calls),
    `  operator actions ${counts.operatorActions}, releases ${history.releases.filter((one) => one.answer === 'released').length}, lost leases ${history.lostLeases.length}, dead letters ${history.final.deadLetters.length} + ${history.final.archivedLetters.length} archived`,
    `answers: ${Object.entries(history.answers ?? {})
      .sort()
      .map(([what, count]) => `${what} × ${count}`)
      .join('; ')}`,
    `recovery: ${spread('first acknowledgement', recovery.toFirstAck)}; ${spread('half throughput', recovery.toHalfThroughput)}; never ${recovery.neverRecovered}; drained after ${drained}`,
    coverageLine(history, [...byName.keys()]),
    ...neighbourLines(verdict.neighbours),
    ...paidLines(history, verdict.holds),
    ...(history.leftOut ?? []).map((what) => `left out: ${what}`),
    ...(history.surprises ?? []).map((what) => `surprise: ${what}`),
    `violations: ${violations.length}`,
    ...violations.slice(0, EXAMPLES).map(({ promise, what }) => `  ${promise} ${what}`),
  ].join('\n');
}

/** What no operation met, of the faults that happened: a short run has many such cells, a long one none. */
function coverageLine(history: History, faults: readonly string[]): string {
  const empty = emptyCells(coverageOf(history), faults);
  const some = empty.slice(0, EXAMPLES).join(', ');
  return `fault × operation: ${empty.length} empty cells${empty.length === 0 ? '' : ` (${some}${empty.length > EXAMPLES ? ', …' : ''})`}`;
}

/** What was bought, and how late seats were free again. */
function paidLines({ paid }: History, holds: readonly HoldRow[]): string[] {
  if (paid === undefined) return [];
  const { final, books } = paid;
  const count = <Item>(items: readonly Item[], isWanted: (item: Item) => boolean) =>
    items.filter(isWanted).length;
  const decided = (what: string) => count(final.decisions, ({ decision }) => decision === what);
  const ours = books.payments.flatMap(({ refunds }) => refunds).filter(({ isOurs }) => isOurs).length;
  const ms = (value: number | undefined) => (value === undefined ? '–' : `${Math.round(value)} ms`);
  return [
    `paid: ${final.orders.length} orders, ${books.sessions.length} sessions, ${count(books.payments, ({ isPaid }) => isPaid)} payments; ` +
      `decided funds ${decided('funds')} (late ${count(final.claims, ({ replaces }) => replaces !== null)} seats), refund ${decided('refund')}, void ${decided('void')}; ` +
      `${ours} refunds by us, ${count(final.claims, ({ state }) => state === 'voided')} voided, ${final.tickets.length} tickets`,
    'I15, from the end of the hold until the seats were free:',
    ...holds.map(
      ({ kind, count: orders, late, lateUnexcused, boundMs }) =>
        `  ${kind}: ${orders} orders, p50 ${ms(late?.p50)}, p99 ${ms(late?.p99)}, max ${ms(late?.max)}; without faults at most ${ms(lateUnexcused?.max)} (bound ${ms(boundMs)})`,
    ),
    ...longestLine(holds),
  ];
}

function longestLine(holds: readonly HoldRow[]): string[] {
  const longest = heldLongest(holds);
  if (longest === undefined) return [];
  const { kind, pastMs, boundMs } = longest;
  const [all, beyond] = [sum(holds, ({ count }) => count), sum(holds, (row) => row.beyond)];
  const margin = `${Math.abs(Math.round(pastMs))} ms ${pastMs > 0 ? 'past' : 'before'} the end of the bound`;
  return [
    `  longest: ${Math.round(pastMs + boundMs)} ms (${kind}), ${margin} of ${boundMs} ms; ${beyond} of ${all} orders past their bound`,
  ];
}

const sum = <Item>(items: readonly Item[], numberOf: (item: Item) => number): number =>
  items.reduce((total, item) => total + numberOf(item), 0);

function neighbourLines(rows: readonly NeighbourRow[]): string[] {
  if (rows.length === 0) return ['I13: not judged, no neighbour happened'];
  const ms = (value: number | null) => (value === null ? '–' : `${Math.round(value)} ms`);
  return [
    'I13, a healthy one beside each neighbour:',
    ...rows.map(({ neighbour, measure, requests, failures, p99, quietP99, limit, verdict, why }) => {
      const numbers = `${requests} requests, ${failures} failures, p99 ${ms(p99)} (quiet ${ms(quietP99)}, at most ${ms(limit)})`;
      return `  ${neighbour} ${measure}: ${numbers}: ${verdict}${why === null ? '' : ` (${why})`}`;
    }),
  ];
}

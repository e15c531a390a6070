// The rows of the whole suite, their table, and the ratios it has to show.

import { spentOn } from '../cpu.ts';
import { type Column, whole as digits, loadText, makeTable } from '../rows.ts';
import { type Demand, demandOf, quotient } from '../suite.ts';
import { sumOfParts, textOfParts } from '../turns.ts';
import type { Load, Measured, Window } from './measure.ts';
import { OURS } from './way.ts';

export const CLAIMS_ONLY = 'claims-only';
export const HALF_ROW = 'half';
export const CPU_ROW = 'cpu';
export const HELD_ROW = 'held';
/** These are no loads that all ways take. */
const OTHER_ROWS = [HALF_ROW, CPU_ROW, HELD_ROW];

const AGAINST_PLAIN = 6;
const AGAINST_REDIS = 1;
const OF_CLAIMS_ONLY = 0.65;
const OF_OTHER_CPU = 0.65;
const MAX_GROWTH = 1.1;
const MAX_HELD_GROWTH = 1.5;
const MAX_TICKET_MS = 250;

export type WholeRow = {
  name: string;
  way: string;
  clients: number;
  slots?: number;
  /** How many windows there were; a minute each, but for turns and quick runs. */
  minutes: number;
  /** Tickets a second, from the first claim until the ledger had the last; of `claims-only` and `held`, claims a second. */
  rate: number;
  claims: number;
  refused: number;
  broken?: number;
  claim_p50_ms: number;
  claim_p99_ms: number;
  ticket_p50_ms?: number;
  ticket_p99_ms?: number;
  first_minute_rate: number;
  last_minute_rate: number;
  first_minute_cpu_us: number;
  last_minute_cpu_us: number;
  cpu_us: number;
  load_cpu_us: number;
  per_core: number;
  parts?: string;
  wal_bytes?: number;
  bloat_mb?: number;
  dead_rows?: number;
  /** How many times ours: the median of the turns. */
  cpu_ratio?: number;
  first_minute_p99_ms?: number;
  last_minute_p99_ms?: number;
  first_minute_ticket_p99_ms?: number;
  first_minute_take_buffers?: number;
  last_minute_take_buffers?: number;
  first_minute_claim_buffers?: number;
  last_minute_claim_buffers?: number;
};

const text = (heading: string, name: keyof WholeRow): Column<WholeRow> => ({
  heading,
  isText: true,
  text: (row) => String(row[name] ?? ''),
});
const number = (heading: string, name: keyof WholeRow, decimals = 0): Column<WholeRow> => ({
  heading,
  text: ({ [name]: value }) =>
    value === undefined ? '' : decimals === 0 ? digits(value) : Number(value).toFixed(decimals),
});
const COLUMNS: Column<WholeRow>[] = [
  ...[text('row', 'name'), text('way', 'way'), number('clients', 'clients'), number('slots', 'slots')],
  ...[
    number('per second', 'rate'),
    number('first min', 'first_minute_rate'),
    number('last min', 'last_minute_rate'),
  ],
  ...[number('claim p50', 'claim_p50_ms', 1), number('p99', 'claim_p99_ms', 1)],
  ...[number('ticket p50', 'ticket_p50_ms', 1), number('p99', 'ticket_p99_ms', 1)],
  ...[number('CPU µs', 'cpu_us'), text('of which', 'parts'), number('per core', 'per_core')],
  { heading: 'load', text: loadText },
  ...[number('WAL', 'wal_bytes'), number('MB', 'bloat_mb'), number('dead rows', 'dead_rows')],
];
const HELD_COLUMNS: Column<WholeRow>[] = [
  ...[text('held', 'way'), number('minutes', 'minutes'), number('refused', 'refused')],
  number('broken', 'broken'),
  ...[number('claim p99 first', 'first_minute_p99_ms', 1), number('last', 'last_minute_p99_ms', 1)],
  ...[number('ticket p99 first', 'first_minute_ticket_p99_ms', 1), number('last', 'ticket_p99_ms', 1)],
  ...[
    number('buffers a take first', 'first_minute_take_buffers'),
    number('last', 'last_minute_take_buffers'),
  ],
  ...[
    number('buffers a claim first', 'first_minute_claim_buffers', 1),
    number('last', 'last_minute_claim_buffers', 1),
  ],
];

/** `tuned` by way, for the ways that have rows. */
export function tableOf(
  rows: readonly WholeRow[],
  tuned: Readonly<Record<string, readonly string[]>>,
): string {
  const held = rows.filter(({ name }) => name === HELD_ROW);
  const ways = [...new Set(rows.map(({ way }) => way))];
  return [
    makeTable(COLUMNS, rows),
    ...(held.length === 0 ? [] : ['', makeTable(HELD_COLUMNS, held)]),
    ...['', 'tuned', ...ways.flatMap((way) => (tuned[way] ?? []).map((line) => `  ${way}: ${line}`))],
  ].join('\n');
}

export function rowOf(load: Load & { name: string }, way: string, measured: Measured): WholeRow {
  const { claims, windows } = measured;
  const [first, last] = [windows[0] as Window, windows.at(-1) as Window];
  return {
    ...{ name: load.name, way, clients: load.clients, slots: load.slots, minutes: windows.length },
    rate: claims / measured.drainedSeconds,
    claims,
    refused: measured.refused,
    claim_p50_ms: measured.claimP50Ms,
    claim_p99_ms: measured.claimP99Ms,
    ticket_p50_ms: measured.ticketP50Ms,
    ticket_p99_ms: measured.ticketP99Ms,
    first_minute_rate: first.claims / first.seconds,
    last_minute_rate: last.claims / last.seconds,
    first_minute_cpu_us: first.cpuUs / first.claims,
    last_minute_cpu_us: last.cpuUs / last.claims,
    ...spentOn(claims, sumOfParts(measured.partsUs), measured.loadUs),
    parts: textOfParts(measured.partsUs, claims),
    wal_bytes: measured.walBytes / claims,
    bloat_mb: measured.bloat.bytes / 2 ** 20,
    dead_rows: measured.bloat.deadRows,
  };
}

export function demandsOf(rows: readonly WholeRow[]): Demand[] {
  const of = (way: string, name: string) => rows.find((row) => row.way === way && row.name === name);
  const loads = [...new Set(rows.map(({ name }) => name))].filter((name) => !OTHER_ROWS.includes(name));
  /** At the load where the other does best. */
  const over = (other: string): number | undefined => {
    const values = loads.flatMap((name) => quotient(of(OURS, name)?.rate, of(other, name)?.rate) ?? []);
    return values.length === 0 ? undefined : Math.min(...values);
  };
  const long = of(OURS, loads[0] ?? '');
  const worst = `at its worst row (of ${loads.join(', ')})`;
  const half = of(OURS, HALF_ROW);
  return [
    demandOf(`tickets a second / the plain design, ${worst}`, AGAINST_PLAIN, over('plain')),
    demandOf(`tickets a second / the Redis design, ${worst}`, AGAINST_REDIS, over('redis')),
    demandOf(
      `tickets a second / our own claims a second while the worker stands still, ${worst}`,
      OF_CLAIMS_ONLY,
      over(CLAIMS_ONLY),
    ),
    cpuDemand(rows.find(({ cpu_ratio }) => cpu_ratio !== undefined)),
    demandOf(
      `${MAX_GROWTH} × CPU of a claim in the first minute / in the last, ${loads[0] ?? 'no row'}`,
      1,
      long && (MAX_GROWTH * long.first_minute_cpu_us) / long.last_minute_cpu_us,
    ),
    demandOf(
      `${MAX_TICKET_MS} ms / claim→ticket p99 at half load`,
      1,
      half && quotient(MAX_TICKET_MS, half.ticket_p99_ms),
    ),
    ...heldDemands(of(OURS, HELD_ROW)),
  ];
}

function cpuDemand(theirs: WholeRow | undefined): Demand {
  return demandOf(
    `${OF_OTHER_CPU} × CPU of a claim the whole way of ${theirs?.way ?? 'the other checkout'} / ours, median of the turns`,
    1,
    theirs && OF_OTHER_CPU * (theirs.cpu_ratio ?? 0),
  );
}

function heldDemands(row: WholeRow | undefined): Demand[] {
  const failed = row !== undefined && row.refused + (row.broken ?? 0) > 0;
  const growth = (what: string, first?: number, last?: number): Demand =>
    demandOf(
      `${MAX_HELD_GROWTH} × ${what} in the first minute under a held snapshot / in the last, 0 where a claim failed`,
      1,
      failed ? 0 : quotient(first === undefined ? undefined : MAX_HELD_GROWTH * first, last),
    );
  return [
    growth('p99 of a claim', row?.first_minute_p99_ms, row?.last_minute_p99_ms),
    growth('p99 from claim to ticket', row?.first_minute_ticket_p99_ms, row?.ticket_p99_ms),
    growth('buffers of a take', row?.first_minute_take_buffers, row?.last_minute_take_buffers),
    growth('buffers of a claim', row?.first_minute_claim_buffers, row?.last_minute_claim_buffers),
  ];
}

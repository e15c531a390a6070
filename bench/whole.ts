// The whole suite: HTTP in, ticket out, everything running; beside the plain design and a Redis design in the same run.

import { type Version, versionsOf } from './neighbours/place.ts';
import { type Column, whole as digits, makeTable } from './rows.ts';
import type { Demand, Suite } from './suite.ts';
import { withTemplates } from './templates.ts';
import { findTools } from './tools.ts';
import { type Load, type Measured, measureWay, type Window } from './whole/measure.ts';
import { oursOf } from './whole/ours.ts';
import { plain } from './whole/plain.ts';
import { redis } from './whole/redis.ts';
import type { Way } from './whole/way.ts';

type Named = Load & { name: string };

const MINUTE = { windowSec: 60, followedPerSec: 20 };
const SMALL = 10_000;
const LARGE = 5_000_000;
const FULL: Named[] = [
  { name: 'large-64', clients: 64, slots: LARGE, refill: false, windows: 10, ...MINUTE },
  { name: 'large-256', clients: 256, slots: LARGE, refill: false, windows: 2, ...MINUTE },
  { name: 'small-64', clients: 64, slots: SMALL, refill: true, windows: 2, ...MINUTE },
  { name: 'small-256', clients: 256, slots: SMALL, refill: true, windows: 2, ...MINUTE },
];
/** Shows that every way runs. */
const QUICK: Named[] = [
  { name: 'large-4', clients: 4, slots: 20_000, refill: false, windows: 2, windowSec: 1, followedPerSec: 20 },
  { name: 'small-4', clients: 4, slots: 100, refill: true, windows: 1, windowSec: 1, followedPerSec: 20 },
];
/** Of what the way did at its best. */
const HALF = 0.5;
const MS_PER_SEC = 1_000;
const MAX_GROWTH = 1.1;
const MAX_TICKET_MS = 250;

export type WholeRow = {
  name: string;
  way: string;
  clients: number;
  slots: number;
  /** Tickets a second, from the first claim until the ledger had the last. */
  rate: number;
  claims: number;
  refused: number;
  claim_p50_ms: number;
  claim_p99_ms: number;
  ticket_p50_ms: number;
  ticket_p99_ms: number;
  first_minute_rate: number;
  last_minute_rate: number;
  first_minute_cpu_us: number;
  last_minute_cpu_us: number;
  cpu_us: number;
  parts: string;
  load_cpu_us: number;
  wal_bytes: number;
  bloat_mb: number;
  dead_rows: number;
};

const text = (heading: string, name: keyof WholeRow): Column<WholeRow> => ({
  heading,
  isText: true,
  text: (row) => String(row[name]),
});
const number = (heading: string, name: keyof WholeRow, decimals = 0): Column<WholeRow> => ({
  heading,
  text: (row) => (decimals === 0 ? digits(row[name]) : Number(row[name]).toFixed(decimals)),
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
  ...[number('CPU µs', 'cpu_us'), text('of which', 'parts'), number('load µs', 'load_cpu_us')],
  ...[number('WAL', 'wal_bytes'), number('MB', 'bloat_mb'), number('dead rows', 'dead_rows')],
];

export const whole: Suite = {
  summary: 'the whole way from HTTP to the ticket, beside the plain design and a Redis design',
  compares: true,
  run: ({ quick, against, progress }) =>
    withTemplates(async () => {
      const { wrk } = await findTools();
      const rows: WholeRow[] = [];
      let settings: Record<string, string> = {};
      for (const load of quick ? QUICK : FULL)
        for (const way of waysOf(versionsOf(against))) {
          progress(`${load.name}: ${way.name}`);
          const open = await way.open();
          try {
            rows.push(rowOf(load, way.name, await measureWay(open, wrk, load)));
            settings = await open.world.db2.settings();
          } finally {
            await open.stop();
          }
        }
      const [first] = quick ? QUICK : FULL;
      for (const way of waysOf(versionsOf(against)).slice(0, 1)) {
        const best = rows.find((row) => row.way === way.name && row.name === first?.name);
        if (first === undefined || best === undefined) continue;
        progress(`half: ${way.name}`);
        const open = await way.open();
        try {
          const load = halfOf(first, best.rate);
          rows.push(rowOf({ ...load, name: 'half' }, way.name, await measureWay(open, wrk, load)));
        } finally {
          await open.stop();
        }
      }
      return { settings, rows, demands: demandsOf(rows) };
    }),
  table: (rows) => makeTable(COLUMNS, rows as readonly WholeRow[]),
};

function waysOf(versions: readonly Version[]): Way[] {
  return [...versions.map(oursOf), plain, redis];
}

/** Each connection waits between its requests, so that together they ask for half of what was possible. */
export function halfOf(load: Load, rate: number): Load {
  const delayMs = Math.max(1, Math.round((load.clients / (rate * HALF)) * MS_PER_SEC));
  return { ...load, windows: Math.min(2, load.windows), delayMs };
}

export function rowOf(load: Named, way: string, measured: Measured): WholeRow {
  const { claims, windows } = measured;
  const [first, last] = [windows[0] as Window, windows.at(-1) as Window];
  const cpuUs = Object.values(measured.partsUs).reduce((sum, us) => sum + us, 0);
  return {
    name: load.name,
    way,
    clients: load.clients,
    slots: load.slots,
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
    cpu_us: cpuUs / claims,
    parts: Object.entries(measured.partsUs)
      .map(([part, us]) => `${part} ${Math.round(us / claims)}`)
      .join(' '),
    load_cpu_us: measured.loadUs / claims,
    wal_bytes: measured.walBytes / claims,
    bloat_mb: measured.bloat.bytes / 2 ** 20,
    dead_rows: measured.bloat.deadRows,
  };
}

export function demandsOf(rows: readonly WholeRow[]): Demand[] {
  const of = (way: string, name: string) => rows.find((row) => row.way === way && row.name === name);
  const names = [...new Set(rows.map(({ name }) => name))].filter((name) => name !== 'half');
  const over = (other: string, worth: (ours: WholeRow, theirs: WholeRow) => number): number | undefined => {
    const values = names.flatMap((name) => {
      const [ours, theirs] = [of('sluice', name), of(other, name)];
      return ours && theirs ? [worth(ours, theirs)] : [];
    });
    return values.length === 0 ? undefined : Math.min(...values);
  };
  const demand = (what: string, atLeast: number, value: number | undefined): Demand => ({
    what,
    atLeast,
    ...(value !== undefined && { value }),
  });
  const others = [...new Set(rows.map(({ way }) => way))].filter(
    (way) => !['sluice', 'plain', 'redis'].includes(way),
  );
  const long = of('sluice', names[0] ?? '');
  const half = of('sluice', 'half');
  return [
    demand(
      'tickets a second / the plain design, at its worst row',
      6,
      over('plain', (a, b) => a.rate / b.rate),
    ),
    demand(
      'tickets a second / the Redis design, at its worst row',
      1,
      over('redis', (a, b) => a.rate / b.rate),
    ),
    ...others.map((way) =>
      demand(
        `0.65 × CPU of ${way} / ours, at its worst row`,
        1,
        over(way, (a, b) => (0.65 * b.cpu_us) / a.cpu_us),
      ),
    ),
    demand(
      '1.1 × CPU of the first minute / of the last',
      1,
      long && (MAX_GROWTH * long.first_minute_cpu_us) / long.last_minute_cpu_us,
    ),
    demand('250 ms / claim→ticket p99 at half load', 1, half && MAX_TICKET_MS / half.ticket_p99_ms),
  ];
}

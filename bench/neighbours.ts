// The neighbours suite: what a hostile pool, endpoint, handler or caller costs a healthy one (I13).

import { ALL } from './neighbours/all.ts';
import { measureNeighbour, type NeighbourRow, type Plan } from './neighbours/measure.ts';
import { versionsOf } from './neighbours/place.ts';
import { type Column, makeTable } from './rows.ts';
import type { Demand, Suite } from './suite.ts';
import { withTemplates } from './templates.ts';

const FULL: Plan = {
  requests: 2_000,
  warmUp: 400,
  perSec: 200,
  patienceMs: 30_000,
  leadMs: 1_000,
  loads: [1, 2, 4],
};
/** Shows that every neighbour runs. */
const QUICK: Plan = {
  requests: 20,
  warmUp: 5,
  perSec: 100,
  patienceMs: 500,
  leadMs: 100,
  loads: [1],
};

const text = (heading: string, name: keyof NeighbourRow): Column<NeighbourRow> => ({
  heading,
  isText: true,
  text: (row) => String(row[name]),
});
const number = (heading: string, name: keyof NeighbourRow, digits = 0): Column<NeighbourRow> => ({
  heading,
  text: (row) => Number(row[name]).toFixed(digits),
});
const COLUMNS: Column<NeighbourRow>[] = [
  text('row', 'name'),
  ...[
    text('version', 'version'),
    text('finding', 'finding'),
    text('healthy', 'healthy'),
    number('load', 'load'),
  ],
  ...[number('sent', 'hostile_sent'), number('requests', 'requests'), number('failures', 'failures')],
  ...[number('quiet p50', 'quiet_p50_ms', 1), number('quiet p99', 'quiet_p99_ms', 1)],
  ...[number('p50 ms', 'p50_ms', 1), number('p99 ms', 'p99_ms', 1), text('verdict', 'verdict')],
];

export const neighbours: Suite = {
  summary: 'what each hostile neighbour costs a healthy pool or endpoint, quiet and beside it',
  compares: true,
  run: ({ quick, against, progress }) =>
    withTemplates(async () => {
      const plan = quick ? QUICK : FULL;
      const rows: NeighbourRow[] = [];
      let settings: Record<string, string> = {};
      for (const neighbour of ALL)
        for (const version of versionsOf(against)) {
          progress(`${neighbour.name} (${neighbour.finding}), ${version.name}: ${neighbour.about}`);
          const measured = await measureNeighbour(version, neighbour, plan);
          settings = measured.settings;
          rows.push(...measured.rows);
        }
      return { settings, rows, demands: demandsOf(rows) };
    }),
  table: (rows) => makeTable(COLUMNS, rows as readonly NeighbourRow[]),
};

/** Of this checkout, each neighbour at the load at which it did worst. */
export function demandsOf(rows: readonly NeighbourRow[]): Demand[] {
  const own = rows.filter(({ version }) => version === 'this');
  return [...new Set(own.map(({ neighbour }) => neighbour))].map((name) => ({
    what: `${name}: allowed p99 / p99 beside it, 0 where a request failed`,
    atLeast: 1,
    value: Math.min(...own.filter(({ neighbour }) => neighbour === name).map(({ kept }) => kept)),
  }));
}

// The webhooks suite: deliveries a second through HTTP, verified and durable, and events a second that take effect.

import { runRounds } from './rows.ts';
import { defineSuite, isChosen, type Row } from './suite.ts';
import { measure } from './webhooks/measure.ts';
import { type Cell, makePlan } from './webhooks/plan.ts';
import { demands, makeRow, tableOf } from './webhooks/rows.ts';
import { createWorld } from './webhooks/world.ts';

export const webhooks = defineSuite({
  summary: 'deliveries a second: one insert each, coalesced; events processed against graphile-worker',
  rowNames: (quick) => makePlan(quick).groups.flatMap((cells) => cells.map(({ name }) => name)),
  createWorld,
  async measure(world, options) {
    const { quick, progress } = options;
    const { repetitions, groups } = makePlan(quick);
    const rows: Row[] = [];
    for (const cells of groups) {
      const chosen = cells.filter(({ name }) => isChosen(options, name));
      const taken = await runRounds(chosen, repetitions, async (cell: Cell, round) => {
        const sample = await measure(world, cell);
        progress(
          `round ${round} of ${repetitions}: ${cell.name}, ${cell.clients} clients: ${Math.round(sample.rate)}/s`,
        );
        return sample;
      });
      rows.push(...taken.map(([cell, samples]) => makeRow(cell, samples)));
    }
    return rows;
  },
  demands,
  table: tableOf,
});

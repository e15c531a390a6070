// The bridge suite: messages a second from DB1's queue to DB2's ledger, against the plain loop and other queues.

import { measure } from './bridge/measure.ts';
import { type Cell, makePlan } from './bridge/plan.ts';
import { demands, makeRow, tableOf } from './bridge/rows.ts';
import { createWorld } from './bridge/world.ts';
import { runRounds } from './rows.ts';
import { defineSuite, isChosen } from './suite.ts';

export const bridge = defineSuite({
  summary: 'messages a second to the ledger: the plain loop, the bridge, graphile-worker, pg-boss',
  rowNames: (quick) => makePlan(quick).cells.map(({ name }) => name),
  createWorld,
  async measure(world, options) {
    const { quick, progress } = options;
    const { repetitions, warmUpMessages, cells } = makePlan(quick);
    const chosen = cells.filter(({ name }) => isChosen(options, name));
    const taken = await runRounds(chosen, repetitions, async (cell: Cell, round) => {
      const sample = await measure(world, cell, warmUpMessages);
      const { name, clients, batch, messages } = cell;
      progress(
        `round ${round} of ${repetitions}: ${name}, ${clients} at once, batch ${batch}: ` +
          `${messages} messages in ${sample.seconds.toFixed(2)} s`,
      );
      return sample;
    });
    return taken.map(([cell, samples]) => makeRow(cell, samples));
  },
  demands,
  table: tableOf,
});

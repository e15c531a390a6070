// The bridge suite: messages a second from DB1's queue to DB2's ledger, against the plain loop and other queues.

import { type DrainSample, measure } from './bridge/measure.ts';
import { demands } from './bridge/must_show.ts';
import { type Cell, makePlan, type Plan } from './bridge/plan.ts';
import { makeRow, makeTable } from './bridge/rows.ts';
import { createWorld, type World } from './bridge/world.ts';
import type { Row, Suite } from './suite.ts';

export const bridge: Suite = {
  summary: 'messages a second to the ledger: the plain loop, the bridge, graphile-worker, pg-boss',
  async run({ quick, progress }) {
    progress('starting two databases');
    const world = await createWorld();
    try {
      const settings = await world.db1.rows<{ name: string; value: string }>('bench.settings');
      const rows = await runPlan(world, makePlan(quick), progress);
      return {
        settings: Object.fromEntries(settings.map(({ name, value }) => [name, value])),
        rows,
        demands: demands(rows),
        table: makeTable(rows),
      };
    } finally {
      await world.stop();
    }
  },
};

async function runPlan(
  world: World,
  { repetitions, warmUpMessages, cells }: Plan,
  progress: (line: string) => void,
): Promise<Row[]> {
  const samples = new Map<Cell, DrainSample[]>(cells.map((cell) => [cell, []]));
  for (let round = 1; round <= repetitions; round++) {
    for (const cell of cells) {
      const sample = await measure(world, cell, warmUpMessages);
      samples.get(cell)?.push(sample);
      const { name, clients, batch, messages } = cell;
      progress(
        `round ${round} of ${repetitions}: ${name}, ${clients} at once, batch ${batch}: ` +
          `${messages} messages in ${sample.seconds.toFixed(2)} s`,
      );
    }
  }
  return [...samples].map(([cell, taken]) => makeRow(cell, taken));
}

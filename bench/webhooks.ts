// The webhooks suite: deliveries a second through HTTP, verified and durable, and events a second that take effect.

import type { Sample } from './stats.ts';
import type { Row, Suite } from './suite.ts';
import { measure } from './webhooks/measure.ts';
import { type Cell, makePlan, type Plan } from './webhooks/plan.ts';
import { demands, makeRow, makeTable } from './webhooks/rows.ts';
import { createWorld, type World } from './webhooks/world.ts';

export const webhooks: Suite = {
  summary: 'deliveries a second: one insert each, coalesced; events processed against graphile-worker',
  async run({ quick, progress }) {
    // The server would tell of every start and stop between the lines of progress.
    process.env.SLUICE_LOG ??= 'warn';
    progress('starting two databases');
    const world = await createWorld();
    try {
      const settings = await world.rows<{ name: string; value: string }>('bench.settings');
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
  { repetitions, groups }: Plan,
  progress: (line: string) => void,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const group of groups) {
    const samples = new Map<Cell, Sample[]>(group.map((cell) => [cell, []]));
    for (let round = 1; round <= repetitions; round++) {
      for (const cell of group) {
        const sample = await measure(world, cell);
        samples.get(cell)?.push(sample);
        progress(
          `round ${round} of ${repetitions}: ${cell.name}, ${cell.clients} clients: ${Math.round(sample.rate)}/s`,
        );
      }
    }
    rows.push(...[...samples].map(([cell, taken]) => makeRow(cell, taken)));
  }
  return rows;
}

// The claims suite: our claim against the plain design, one by one, in sets and over HTTP.

import { measure, sellOut } from './claims/measure.ts';
import { demands } from './claims/must_show.ts';
import { type Cell, makePlan, type Plan } from './claims/plan.ts';
import { makeRow, tableOf } from './claims/rows.ts';
import { type ClaimsWorld, createWorld } from './claims/world.ts';
import { runRounds } from './rows.ts';
import { defineSuite, type Row } from './suite.ts';

const MS_PER_SEC = 1_000;
const SEC_PER_MIN = 60;

export const claims = defineSuite({
  summary: 'claims a second: the plain design, one claim, batches, the HTTP door, sold out',
  createWorld,
  measure: (world, { quick, progress }) => runPlan(world, makePlan(quick), progress),
  demands,
  table: tableOf,
});

async function runPlan(world: ClaimsWorld, plan: Plan, progress: (line: string) => void): Promise<Row[]> {
  const announce = createProgress(plan, progress);
  const rows: Row[] = [];
  for (const { prepare, cells } of plan.groups) {
    if (prepare === 'sell-out') {
      progress(`selling out two pools of ${plan.soldOutSlots} slots`);
      await sellOut(world, plan.soldOutSlots);
    }
    const taken = await runRounds(cells, plan.repetitions, (cell, round) => {
      announce(cell, round);
      return measure(world, cell);
    });
    rows.push(...taken.map(([cell, samples]) => makeRow(cell, samples)));
    if (prepare === 'sell-out') await world.db1.rows('bench.set_autovacuum', { p_on: true });
  }
  return rows;
}

/** Tells what runs now and, from how long the runs so far took, when all will be done. */
function createProgress(plan: Plan, progress: (line: string) => void): (cell: Cell, round: number) => void {
  const total = plan.repetitions * plan.groups.reduce((sum, group) => sum + group.cells.length, 0);
  const startedAt = performance.now();
  let done = 0;
  return ({ name, clients, batch }, round) => {
    const elapsedSec = (performance.now() - startedAt) / MS_PER_SEC;
    const leftMin = done === 0 ? undefined : ((elapsedSec / done) * (total - done)) / SEC_PER_MIN;
    const eta = leftMin === undefined ? '' : `, about ${leftMin.toFixed(1)} min left`;
    const of = plan.repetitions === 1 ? '' : `, round ${round} of ${plan.repetitions}`;
    done++;
    progress(`[${done}/${total}] ${name}, ${clients} clients, batch ${batch}${of}${eta}`);
  };
}

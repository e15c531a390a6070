// The claims suite: our claim against the plain design, one by one, in sets and over HTTP.

import { measure, sellOut } from './claims/measure.ts';
import { demands } from './claims/must_show.ts';
import { type Cell, type Group, makePlan, type Plan } from './claims/plan.ts';
import { makeRow, makeTable } from './claims/rows.ts';
import { createWorld, type World } from './claims/world.ts';
import type { Sample } from './stats.ts';
import type { Row, Suite } from './suite.ts';

const MS_PER_SEC = 1_000;
const SEC_PER_MIN = 60;

export const claims: Suite = {
  summary: 'claims a second: the plain design, one claim, batches, the HTTP door, sold out',
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

async function runPlan(world: World, plan: Plan, progress: (line: string) => void): Promise<Row[]> {
  const announce = createProgress(plan, progress);
  const rows: Row[] = [];
  for (const group of plan.groups) {
    if (group.prepare === 'sell-out') {
      progress(`selling out two pools of ${plan.soldOutSlots} slots`);
      await sellOut(world, plan.soldOutSlots);
    }
    rows.push(...(await runGroup(world, group, plan.repetitions, announce)));
    if (group.prepare === 'sell-out') await world.call('bench.set_autovacuum', { p_on: true });
  }
  return rows;
}

async function runGroup(
  world: World,
  group: Group,
  repetitions: number,
  announce: (cell: Cell, round: number) => void,
): Promise<Row[]> {
  const samples: Sample[][] = group.cells.map(() => []);
  for (let round = 1; round <= repetitions; round++) {
    for (const [at, cell] of group.cells.entries()) {
      announce(cell, round);
      samples[at]?.push(await measure(world, cell));
    }
  }
  return group.cells.map((cell, at) => makeRow(cell, samples[at] ?? []));
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

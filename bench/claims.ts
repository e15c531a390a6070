// The claims suite: our claim against the plain design, one by one, in sets and over HTTP.

import { HTTP_CPU, measureHttpCpu } from './claims/http_cpu.ts';
import { measure } from './claims/measure.ts';
import { demands } from './claims/must_show.ts';
import { type Cell, makePlan, type Plan } from './claims/plan.ts';
import { makeRow, tableOf } from './claims/rows.ts';
import { type ClaimsWorld, createWorld } from './claims/world.ts';
import { runRounds } from './rows.ts';
import { defineSuite, isChosen, type Row, type SuiteOptions } from './suite.ts';

const MS_PER_SEC = 1_000;
const SEC_PER_MIN = 60;

export const claims = defineSuite({
  summary: 'claims a second: the plain design, one claim, batches, the HTTP door, sold out',
  compares: true,
  againstRows: [HTTP_CPU],
  rowNames: (quick) => [...cellsOf(makePlan(quick)).map(({ name }) => name), HTTP_CPU],
  createWorld,
  async measure(world, options) {
    const rows = await runPlan(world, chosenOf(makePlan(options.quick), options), options.progress);
    if (options.against === undefined || !isChosen(options, HTTP_CPU)) return rows;
    return [...rows, ...(await measureHttpCpu(world.tools.wrk, options))];
  },
  demands,
  table: tableOf,
});

const cellsOf = ({ groups }: Plan): Cell[] => groups.flatMap(({ cells }) => cells);

function chosenOf(plan: Plan, options: SuiteOptions): Plan {
  const groups = plan.groups.map((group) => ({
    ...group,
    cells: group.cells.filter(({ name }) => isChosen(options, name)),
  }));
  return { ...plan, groups };
}

async function runPlan(world: ClaimsWorld, plan: Plan, progress: (line: string) => void): Promise<Row[]> {
  const announce = createProgress(plan, progress);
  const rows: Row[] = [];
  for (const { cells } of plan.groups) {
    const taken = await runRounds(cells, plan.repetitions, (cell, round) => {
      announce(cell, round);
      return measure(world, cell);
    });
    rows.push(...taken.map(([cell, samples]) => makeRow(cell, samples)));
  }
  return rows;
}

/** Tells what runs now and, from how long the runs so far took, when all will be done. */
function createProgress(plan: Plan, progress: (line: string) => void): (cell: Cell, round: number) => void {
  const total = plan.repetitions * cellsOf(plan).length;
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

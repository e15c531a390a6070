// `npm run chaos -- --cells`: failovers under load, one fault after another, each looked at when the cell is whole again.

import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { duration, table } from '../markdown.ts';
import type { CellsCommand } from '../options.ts';
import { createRandom } from '../random.ts';
import { drained, type Finding, findDoubled, findLost, type Places } from './check.ts';
import { CELL_CONTROLS, runCellControl } from './controls.ts';
import { FAULTS, type Fault } from './faults.ts';
import { prepareCells } from './servers.ts';
import type { Kind } from './tally.ts';
import { type CellWorld, startCellWorld } from './world.ts';

/** What became of one fault; a line of results/chaos/cells-<seed>.jsonl. */
interface Outcome {
  readonly number: number;
  readonly side: 'db1' | 'db2';
  readonly fault: string;
  readonly isFailover: boolean;
  readonly gapMs: number;
  readonly acknowledged: number;
  readonly lost: number;
  readonly doubled: number;
}

const SIDES = ['db1', 'db2'] as const;
const KINDS: readonly Kind[] = ['claim', 'event', 'call'];
/** New cells after so many faults: a pool and a log that only grow would make each failover slower than the one before. */
const FAULTS_PER_WORLD = 24;
/** Of each kind, before the next fault. */
const ACKNOWLEDGED_AFTER = 5;
const SHOWN = 5;

/** 0: nothing was lost or doubled, and every control lost something. */
export async function runCells(command: CellsCommand): Promise<number> {
  const reason = await prepareCells();
  if (reason !== undefined) {
    console.log(`skipped: ${reason}`);
    return 0;
  }
  const file = join(PROJECT_ROOT, 'results', 'chaos', `cells-${command.seed}.jsonl`);
  const outcomes = command.resume ? readOutcomes(file) : [];
  const findings: string[] = [];
  const failovers = () => outcomes.filter(({ isFailover }) => isFailover).length;
  console.log(`seed ${command.seed}, ${command.failovers} failovers, ${failovers()} of them done`);
  while (failovers() < command.failovers)
    await runRound(command, outcomes, findings, (outcome) => keep(file, outcome));
  const areFoundOut = !command.controls || (await runControls());
  console.log(summaryOf(outcomes, findings));
  const isClean = findings.length === 0 && outcomes.every(({ lost, doubled }) => lost + doubled === 0);
  return isClean && areFoundOut ? 0 : 1;
}

/** One pair of cells, until enough has failed over or they have had enough. */
async function runRound(
  { seed, failovers }: CellsCommand,
  outcomes: Outcome[],
  findings: string[],
  onOutcome: (outcome: Outcome) => void,
): Promise<void> {
  const world = await startCellWorld(`s${seed}_${outcomes.length}`, seed);
  const places: Places = { db1Url: world.cells.db1.url, db2Url: world.cells.db2.url };
  // Found after an earlier fault: each loss is counted where it happened.
  const known = new Set<string>();
  try {
    await acknowledgedAgain(world, performance.now());
    for (let turn = 0; turn < FAULTS_PER_WORLD; turn++) {
      const outcome = await breakAndHeal(
        world,
        places,
        known,
        planned(seed, outcomes.length),
        outcomes.length,
      );
      outcomes.push(outcome);
      onOutcome(outcome);
      if (outcomes.filter(({ isFailover }) => isFailover).length >= failovers) break;
    }
    const told = await world.load.stop();
    await drained(places).catch((error: Error) => findings.push(`${error.message}: ${error.cause}`));
    const ends: Finding[] = [...(await findLost(told, places)), ...(await findDoubled(places))];
    findings.push(...ends.map(({ kind, key, what }) => `${kind} ${key} ${what}`));
    findings.push(...world.load.tally.wrong.map((status) => `a client was answered: ${status}`));
    findings.push(...world.surprises);
  } finally {
    await world.stop();
  }
}

async function breakAndHeal(
  { cells, load }: CellWorld,
  places: Places,
  known: Set<string>,
  { side, fault }: { side: 'db1' | 'db2'; fault: Fault },
  number: number,
): Promise<Outcome> {
  const cell = cells[side];
  const primary = await cell.ready();
  const from = performance.now();
  const before = load.tally.told.length;
  await fault.break(cell, primary);
  const leader = await cell.heal();
  await acknowledgedAgain({ load }, performance.now());
  // A copy: clients are told more while the databases are read.
  const told = [...load.tally.told];
  const lost = (await findLost(told, places)).filter(({ key }) => !known.has(key));
  for (const { key } of lost) known.add(key);
  const gapMs = Math.round(load.tally.gapMs(side === 'db1' ? 'claim' : 'event', from, performance.now()));
  return {
    ...{ number, side, fault: fault.name, isFailover: leader !== primary, gapMs },
    acknowledged: told.length - before,
    lost: lost.filter(({ what }) => !what.startsWith('was told')).length,
    doubled: lost.filter(({ what }) => what.startsWith('was told')).length,
  };
}

async function acknowledgedAgain({ load }: Pick<CellWorld, 'load'>, sinceMs: number): Promise<void> {
  while (KINDS.some((kind) => load.tally.countSince(kind, sinceMs) < ACKNOWLEDGED_AFTER)) await pause(50);
}

/** Every fault on both sides before any comes again. */
function planned(seed: number, number: number): { side: 'db1' | 'db2'; fault: Fault } {
  const all = FAULTS.flatMap((fault) => SIDES.map((side) => ({ side, fault })));
  const random = createRandom(seed, `cells ${Math.floor(number / all.length)}`);
  const plan = random.shuffled(all)[number % all.length];
  if (plan === undefined) throw new Error('there are no faults');
  return plan;
}

async function runControls(): Promise<boolean> {
  let areFoundOut = true;
  for (const control of CELL_CONTROLS) {
    const { name, why, acknowledged, lost } = await runCellControl(control);
    const isRight = control.losesNothing ? lost === 0 : lost > 0;
    areFoundOut &&= isRight;
    console.log(`control ${name}: ${why}: ${lost} of ${acknowledged} lost${isRight ? '' : ', WRONG'}`);
  }
  return areFoundOut;
}

function keep(file: string, outcome: Outcome): void {
  mkdirSync(join(file, '..'), { recursive: true });
  appendFileSync(file, `${JSON.stringify(outcome)}\n`);
  const { number, side, fault, isFailover, gapMs, acknowledged, lost, doubled } = outcome;
  const what = isFailover ? 'failover' : 'no failover';
  console.log(
    `${number + 1} ${side} ${fault}: ${what}, gap ${duration(gapMs)}, ${acknowledged} acknowledged, ${lost} lost, ${doubled} doubled`,
  );
}

function readOutcomes(file: string): Outcome[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Outcome);
}

function summaryOf(outcomes: readonly Outcome[], findings: readonly string[]): string {
  const sum = (pick: (outcome: Outcome) => number, of = outcomes) =>
    of.reduce((all, one) => all + pick(one), 0);
  const rows = FAULTS.map(({ name }) => {
    const own = outcomes.filter(({ fault }) => fault === name);
    const gaps = own.map(({ gapMs }) => gapMs).sort((a, b) => a - b);
    const at = (share: number) => duration(gaps[Math.ceil(share * gaps.length) - 1]);
    const failovers = own.filter(({ isFailover }) => isFailover).length;
    return [
      name,
      own.length,
      failovers,
      at(0.5),
      at(0.99),
      sum(({ lost }) => lost, own),
      sum(({ doubled }) => doubled, own),
    ];
  });
  const total = `${outcomes.length} faults, ${outcomes.filter(({ isFailover }) => isFailover).length} failovers, ${sum(
    ({ acknowledged }) => acknowledged,
  )} acknowledged during faults, ${sum(({ lost }) => lost)} lost, ${sum(({ doubled }) => doubled)} doubled`;
  const told = findings.length === 0 ? [] : [`${findings.length} findings:`, ...findings.slice(0, SHOWN)];
  return [
    table(['fault', 'times', 'failovers', 'gap p50', 'gap p99', 'lost', 'doubled'], rows),
    total,
    ...told,
  ].join('\n');
}

// `npm run chaos -- --cells`: failovers under load, one fault after another, each looked at when the cell is whole again.

import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { commit } from '../../bench/provenance.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { duration, table } from '../markdown.ts';
import type { CellsCommand } from '../options.ts';
import { createRandom } from '../random.ts';
import { drained, type Finding, findDoubled, findLost, type Places } from './check.ts';
import { CELL_CONTROLS, runCellControl } from './controls.ts';
import { FAULTS, type Fault } from './faults.ts';
import { prepareCells, until } from './servers.ts';
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

/** What was left of one pair of cells when all was carried; the line after its outcomes. */
interface End {
  readonly commit: string;
  readonly acknowledged: number;
  readonly drainMs: number;
  readonly findings: readonly string[];
}

interface Run {
  readonly command: CellsCommand;
  readonly file: string;
  readonly outcomes: Outcome[];
  readonly ends: End[];
  /** No fault begins after it. */
  readonly untilMs: number;
}

const SIDES = ['db1', 'db2'] as const;
const KINDS: readonly Kind[] = ['claim', 'event', 'call'];
/** New cells after so many faults: a pool and a log that only grow would make each failover slower than the one before. */
const FAULTS_PER_WORLD = 24;
/** Of each kind, before the next fault. */
const ACKNOWLEDGED_AFTER = 5;
/** Milliseconds after a cell is whole, on a quiet machine. */
const ACKNOWLEDGED_MS = 180_000;
const SHOWN = 5;
const MS_PER_MINUTE = 60_000;

/** 0: nothing was lost or doubled, and every control lost something. */
export async function runCells(command: CellsCommand): Promise<number> {
  const reason = await prepareCells();
  if (reason !== undefined) {
    console.log(`skipped: ${reason}`);
    return 0;
  }
  const run = openRun(command);
  console.log(`seed ${command.seed}, ${command.failovers} failovers, ${failoversOf(run)} of them done`);
  while (mayGoOn(run)) await runRound(run);
  const isDone = failoversOf(run) >= command.failovers;
  const areFoundOut = !command.controls || !isDone || (await runControls());
  console.log(summaryOf(run));
  if (!isDone) console.log(`${command.minutes} minutes are over; --resume goes on`);
  const isClean = run.ends.every(({ findings }) => findings.length === 0) && run.outcomes.every(isHarmless);
  return isClean && areFoundOut ? 0 : 1;
}

function openRun(command: CellsCommand): Run {
  const file = join(PROJECT_ROOT, 'results', 'chaos', `cells-${command.seed}.jsonl`);
  const untilMs = performance.now() + (command.minutes ?? Number.POSITIVE_INFINITY) * MS_PER_MINUTE;
  const lines = command.resume ? readLines(file) : [];
  const outcomes = lines.filter((line): line is Outcome => 'fault' in line);
  const ends = lines.filter((line): line is End => 'findings' in line);
  if (!command.resume) rmSync(file, { force: true });
  return { command, file, outcomes, ends, untilMs };
}

const failoversOf = ({ outcomes }: Run): number => outcomes.filter(({ isFailover }) => isFailover).length;
const isHarmless = ({ lost, doubled }: Outcome): boolean => lost + doubled === 0;
const mayGoOn = (run: Run): boolean =>
  failoversOf(run) < run.command.failovers && performance.now() < run.untilMs;

/** One pair of cells, until enough has failed over or they have had enough. */
async function runRound(run: Run): Promise<void> {
  const { command, outcomes, ends } = run;
  const world = await startCellWorld(`s${command.seed}_${outcomes.length}`, command.seed);
  const places: Places = { db1Url: world.cells.db1.url, db2Url: world.cells.db2.url };
  // Found after an earlier fault: each loss is counted where it happened.
  const known = new Set<string>();
  try {
    await acknowledgedAgain(world, performance.now());
    for (let turn = 0; turn < FAULTS_PER_WORLD && mayGoOn(run); turn++) {
      const plan = planned(command.seed, outcomes.length);
      const outcome = await breakAndHeal(world, places, known, plan, outcomes.length);
      outcomes.push(outcome);
      keep(run, outcome);
      console.log(lineOf(outcome));
    }
    const end = await endOf(world, places);
    ends.push(end);
    keep(run, end);
    const { acknowledged, drainMs, findings } = end;
    console.log(`${acknowledged} acknowledged, drained in ${duration(drainMs)}, ${findings.length} findings`);
  } finally {
    await world.stop();
  }
}

async function endOf({ load, surprises }: CellWorld, places: Places): Promise<End> {
  const told = await load.stop();
  const startMs = performance.now();
  const stuck: string[] = [];
  await drained(places).catch((error: Error) =>
    stuck.push(`${error.message}: ${error.cause ?? 'more came all the time'}`),
  );
  const drainMs = Math.round(performance.now() - startMs);
  const ends: Finding[] = [...(await findLost(told, places)), ...(await findDoubled(places))];
  const findings = [
    ...stuck,
    ...ends.map(({ kind, key, what }) => `${kind} ${key} ${what}`),
    ...load.tally.wrong.map((status) => `a client was answered: ${status}`),
    ...surprises,
  ];
  return { commit: commit(), acknowledged: told.length, drainMs, findings };
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
  await until(
    'clients are acknowledged again',
    () => KINDS.every((kind) => load.tally.countSince(kind, sinceMs) >= ACKNOWLEDGED_AFTER),
    ACKNOWLEDGED_MS,
    50,
  );
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

function keep({ file }: Run, line: Outcome | End): void {
  mkdirSync(join(file, '..'), { recursive: true });
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

function readLines(file: string): (Outcome | End)[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Outcome | End);
}

function lineOf({ number, side, fault, isFailover, gapMs, acknowledged, lost, doubled }: Outcome): string {
  const what = isFailover ? 'failover' : 'no failover';
  return `${number + 1} ${side} ${fault}: ${what}, gap ${duration(gapMs)}, ${acknowledged} acknowledged, ${lost} lost, ${doubled} doubled`;
}

function summaryOf({ outcomes, ends }: Run): string {
  const sum = <Line>(of: readonly Line[], pick: (line: Line) => number) =>
    of.reduce((all, one) => all + pick(one), 0);
  const rowOf = (name: string, own: readonly Outcome[]) => {
    const gaps = own.map(({ gapMs }) => gapMs).sort((a, b) => a - b);
    const at = (share: number) => duration(gaps[Math.ceil(share * gaps.length) - 1]);
    const failovers = own.filter(({ isFailover }) => isFailover).length;
    const [lost, doubled] = [sum(own, (one) => one.lost), sum(own, (one) => one.doubled)];
    return [name, own.length, failovers, at(0.5), at(0.99), lost, doubled];
  };
  const rows = FAULTS.map(({ name }) =>
    rowOf(
      name,
      outcomes.filter(({ fault }) => fault === name),
    ),
  );
  const findings = ends.flatMap((end) => end.findings);
  const slowest = Math.max(0, ...ends.map(({ drainMs }) => drainMs));
  return [
    table(
      ['fault', 'times', 'failovers', 'gap p50', 'gap p99', 'lost', 'doubled'],
      [...rows, rowOf('all', outcomes)],
    ),
    `${ends.length} pairs of cells, ${sum(ends, ({ acknowledged }) => acknowledged)} acknowledged in all and looked for when drained, the slowest drain ${duration(slowest)}, ${findings.length} findings`,
    ...findings.slice(0, SHOWN),
  ].join('\n');
}

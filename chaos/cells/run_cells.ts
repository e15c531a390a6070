// `npm run chaos -- --cells`: failovers under load, one fault after another, each looked at when the cell is whole again.

import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { commit, productHash } from '../../bench/provenance.ts';
import { beginRun, keepSummary, writeRaw } from '../../bench/summaries.ts';
import { PROJECT_ROOT } from '../../src/project_root.ts';
import { duration, table } from '../markdown.ts';
import type { CellsCommand } from '../options.ts';
import { createRandom } from '../random.ts';
import { writeReport } from '../report.ts';
import { drained, type Finding, findDoubled, findLost, type Places } from './check.ts';
import { CELL_CONTROLS, type CellControlResult, runCellControl } from './controls.ts';
import { FAULTS, type Fault } from './faults.ts';
import { assertOneVersion, cellsSummaryOf, type End, type Outcome } from './lines.ts';
import { prepareCells, until } from './servers.ts';
import type { Kind } from './tally.ts';
import { type CellWorld, startCellWorld } from './world.ts';

interface Run {
  readonly command: CellsCommand;
  readonly productHash: string;
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
/** What durability rests on in a cell; patroni_config.ts has the rest. */
const SETTINGS = { synchronous_mode: 'strict', nodes: '3' };
const MS_PER_MINUTE = 60_000;

/** 0: nothing was lost or doubled, and every control lost something. */
export async function runCells(command: CellsCommand): Promise<number> {
  const reason = await prepareCells();
  if (reason !== undefined) {
    console.log(`skipped: ${reason}`);
    return 0;
  }
  const kept = beginRun('cells', commandLine(command));
  const run = openRun(command);
  console.log(`seed ${command.seed}, ${command.failovers} failovers, ${failoversOf(run)} of them done`);
  while (mayGoOn(run)) await runRound(run);
  const isDone = failoversOf(run) >= command.failovers;
  const controls = command.controls && isDone ? await runControls() : [];
  const areFoundOut = controls.every(({ isRight }) => isRight);
  console.log(summaryOf(run));
  const result = cellsSummaryOf(
    run.outcomes,
    run.ends,
    controls.map(({ isRight: _, ...found }) => found),
  );
  const raw = kept.end(SETTINGS, result);
  console.log(`raw result: ${writeRaw('chaos', raw, `cells-${command.seed}`)}`);
  if (command.keep && isDone) console.log(`summary: ${keepSummary('chaos', raw, result)}, ${writeReport()}`);
  if (!isDone) console.log(`${command.minutes} minutes are over; --resume goes on`);
  const isClean = run.ends.every(({ findings }) => findings.length === 0) && run.outcomes.every(isHarmless);
  return isClean && areFoundOut ? 0 : 1;
}

function openRun(command: CellsCommand): Run {
  const file = join(PROJECT_ROOT, 'results', 'chaos', `cells-${command.seed}.jsonl`);
  const untilMs = performance.now() + (command.minutes ?? Number.POSITIVE_INFINITY) * MS_PER_MINUTE;
  const hash = productHash();
  const lines = command.resume ? readLines(file) : [];
  assertOneVersion(lines, hash, file);
  const outcomes = lines.filter((line): line is Outcome => 'fault' in line);
  const ends = lines.filter((line): line is End => 'findings' in line);
  if (!command.resume) rmSync(file, { force: true });
  return { command, productHash: hash, file, outcomes, ends, untilMs };
}

const failoversOf = ({ outcomes }: Run): number => outcomes.filter(({ isFailover }) => isFailover).length;
const isHarmless = ({ lost, doubled }: Outcome): boolean => lost + doubled === 0;
const mayGoOn = (run: Run): boolean =>
  failoversOf(run) < run.command.failovers && performance.now() < run.untilMs;

/** One pair of cells, until enough has failed over or they have had enough. */
async function runRound(run: Run): Promise<void> {
  const { command, productHash: product_hash, outcomes, ends } = run;
  const world = await startCellWorld(`s${command.seed}_${outcomes.length}`, command.seed);
  const places: Places = { db1Url: world.cells.db1.url, db2Url: world.cells.db2.url };
  // Found after an earlier fault: each loss is counted where it happened.
  const known = new Set<string>();
  try {
    await acknowledgedAgain(world, performance.now());
    for (let turn = 0; turn < FAULTS_PER_WORLD && mayGoOn(run); turn++) {
      const plan = planned(command.seed, outcomes.length);
      const outcome = { product_hash, ...(await breakAndHeal(world, places, known, plan, outcomes.length)) };
      outcomes.push(outcome);
      keep(run, outcome);
      console.log(lineOf(outcome));
    }
    const end = { product_hash, ...(await endOf(world, places)) };
    ends.push(end);
    keep(run, end);
    const { acknowledged, drainMs, findings } = end;
    console.log(`${acknowledged} acknowledged, drained in ${duration(drainMs)}, ${findings.length} findings`);
  } finally {
    await world.stop();
  }
}

async function endOf({ load, surprises }: CellWorld, places: Places): Promise<Omit<End, 'product_hash'>> {
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
): Promise<Omit<Outcome, 'product_hash'>> {
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

async function runControls(): Promise<(CellControlResult & { isRight: boolean })[]> {
  const found = [];
  for (const control of CELL_CONTROLS) {
    const result = await runCellControl(control);
    const { name, why, acknowledged, lost } = result;
    const isRight = control.losesNothing ? lost === 0 : lost > 0;
    found.push({ ...result, isRight });
    console.log(`control ${name}: ${why}: ${lost} of ${acknowledged} lost${isRight ? '' : ', WRONG'}`);
  }
  return found;
}

/** What repeats this run. */
function commandLine({ seed, failovers, minutes }: CellsCommand): string {
  const bound = minutes === undefined ? '' : ` --minutes ${minutes}`;
  return `npm run chaos -- --cells --failovers ${failovers} --seed ${seed}${bound}`;
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
  const { faults, findings, acknowledged, slowest_drain_ms } = cellsSummaryOf(outcomes, ends, []);
  return [
    table(
      ['fault', 'times', 'failovers', 'gap p50', 'gap p99', 'lost', 'doubled'],
      faults.map((row) => [
        ...[row.fault, row.times, row.failovers],
        ...[duration(row.gap_p50_ms), duration(row.gap_p99_ms), row.lost, row.doubled],
      ]),
    ),
    `${ends.length} pairs of cells, ${acknowledged} acknowledged in all and looked for when drained, the slowest drain ${duration(slowest_drain_ms)}, ${findings.length} findings`,
    ...findings.slice(0, SHOWN),
  ].join('\n');
}

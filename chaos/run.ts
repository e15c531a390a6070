// `npm run chaos`: one run, judged; see --help.

import { rmSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { reportFailure } from '../bench/command.ts';
import {
  beginRun,
  keepJoined,
  keepSummary,
  keptOf,
  type Raw,
  refuseKept,
  writeRaw,
} from '../bench/summaries.ts';
import { runCells } from './cells/run_cells.ts';
import { CONTROLS } from './controls/controls.ts';
import { type ControlResult, runControl } from './controls/run_control.ts';
import type { History } from './history.ts';
import { judge, type Verdict } from './judge.ts';
import { type Command, commandLine, readCellsCommand, readCommand, USAGE } from './options.ts';
import { writeReport } from './report.ts';
import { type ChaosSummary, joinRuns, type RunResult, resultOf, seedsOf, summaryOfRun } from './result.ts';
import { showProgress, summaryOf } from './show.ts';
import { runHistory } from './world_run.ts';

/** 0: every promise was kept. 1: one was not, a process did what it was not told to, or a control found nothing. */
async function main(args: string[]): Promise<number> {
  const cells = readCellsCommand(args, () => Date.now() % 1_000_000);
  if (cells !== undefined) return runCells(cells);
  const command = readCommand(args, () => Date.now() % 1_000_000);
  if (command === undefined) {
    console.log(USAGE);
    return 0;
  }
  const run = beginRun('chaos', commandLine(command));
  const kept = command.keep ? keptOf<ChaosSummary>('chaos', run) : undefined;
  if (kept !== undefined) refuseKept(seedsOf(kept.result), command.seed);
  const { history, verdict } = await runAndJudge(command);
  const raw = run.end(history.final.durability?.db1 ?? {}, resultOf(history, verdict));
  console.log(`raw result: ${writeRaw('chaos', raw, `seed-${raw.result.seed}`)}`);
  if (command.json !== undefined) writeFileSync(command.json, `${JSON.stringify(raw, null, 1)}\n`);
  const isClean = verdict.violations.length === 0 && (history.surprises ?? []).length === 0;
  tidyUp(history, isClean && !command.journals);
  if (command.keep)
    console.log(`summary: ${keepJoined('chaos', { ...raw, result: summaryOfRun(raw) }, joinRuns)}`);
  const isFoundOut = !command.keep || !command.controls || (await tryControls(raw));
  if (command.keep) console.log(`written: ${writeReport()}`);
  return isClean && isFoundOut ? 0 : 1;
}

async function runAndJudge({ seed, minutes, faults, scale, processes }: Command): Promise<{
  history: History;
  verdict: Verdict;
}> {
  const each = processes === 1 ? '' : `, ${processes} processes each`;
  console.log(`seed ${seed}, ${minutes} min, ${faults.length} kinds of faults, scale ${scale}${each}`);
  const progress = showProgress();
  const onProgress = progress.show;
  const history = await runHistory({ seed, minutes, faults, scale, processes, keep: true, onProgress });
  progress.end();
  const verdict = judge(history);
  console.log(summaryOf(history, verdict));
  return { history, verdict };
}

/** Keeps the journals and logs of a run with findings: a person needs them to explain the findings. */
function tidyUp({ dir }: History, isDone: boolean): void {
  if (dir === undefined) return;
  if (isDone) rmSync(dir, { recursive: true, force: true });
  else console.log(`journals and logs: ${dir}`);
}

/** Tries every negative control and keeps what each found. False where one found nothing. */
async function tryControls(raw: Raw<RunResult>): Promise<boolean> {
  const run = beginRun('controls', raw.command);
  const controls: ControlResult[] = [];
  for (const control of CONTROLS) {
    const found = await runControl(control, runHistory);
    controls.push(found);
    const seconds = Math.round(found.elapsedMs / 1_000);
    console.log(`control ${found.name}: ${found.example?.what ?? 'NOTHING FOUND'} (${seconds} s)`);
  }
  const tried = run.end(raw.durability, { controls });
  writeRaw('chaos', tried, 'controls');
  console.log(`summary: ${keepSummary('chaos', tried, tried.result)}`);
  return controls.every(({ seed }) => seed !== null);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.exitCode = await main(process.argv.slice(2)).catch(reportFailure);

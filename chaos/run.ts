// `npm run chaos`: one run, judged; see --help.

import { rmSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { CONTROLS } from './controls/controls.ts';
import { type ControlResult, runControl } from './controls/run_control.ts';
import type { History } from './history.ts';
import { judge, type Verdict } from './judge.ts';
import { type Command, OptionError, readCommand, USAGE } from './options.ts';
import { keepControls, keepRun, writeReport } from './report.ts';
import { type RunResult, resultOf } from './result.ts';
import { showProgress, summaryOf } from './show.ts';
import { runHistory } from './world_run.ts';

/** 0: every promise was kept. 1: one was not, a process did what nobody asked for, or a control found nothing. */
async function main(args: string[]): Promise<number> {
  const command = readCommand(args, () => Date.now() % 1_000_000);
  if (command === undefined) {
    console.log(USAGE);
    return 0;
  }
  const { history, verdict } = await runAndJudge(command);
  const result = resultOf(history, verdict, commandLine(command), new Date());
  if (command.json !== undefined) writeFileSync(command.json, `${JSON.stringify(result, null, 1)}\n`);
  const isClean = verdict.violations.length === 0 && (history.surprises ?? []).length === 0;
  tidyUp(history, isClean && !command.keep);
  const isReported = !command.report || (await report(result));
  return isClean && isReported ? 0 : 1;
}

async function runAndJudge({ seed, minutes, faults, scale }: Command): Promise<{
  history: History;
  verdict: Verdict;
}> {
  console.log(`seed ${seed}, ${minutes} min, ${faults.length} kinds of faults, scale ${scale}`);
  const progress = showProgress();
  const history = await runHistory({ seed, minutes, faults, scale, keep: true, onProgress: progress.show });
  progress.end();
  const verdict = judge(history);
  console.log(summaryOf(history, verdict));
  return { history, verdict };
}

/** Journals and logs of a run with findings are what somebody will want to look at. */
function tidyUp({ dir }: History, isDone: boolean): void {
  if (dir === undefined) return;
  if (isDone) rmSync(dir, { recursive: true, force: true });
  else console.log(`journals and logs: ${dir}`);
}

/** Keeps the run, tries every negative control, and writes the page. False where a control found nothing. */
async function report(result: RunResult): Promise<boolean> {
  console.log(`kept as ${keepRun(result)}`);
  const controls: ControlResult[] = [];
  for (const control of CONTROLS) {
    const found = await runControl(control, runHistory);
    controls.push(found);
    const seconds = Math.round(found.elapsedMs / 1_000);
    console.log(`control ${found.name}: ${found.example?.what ?? 'NOTHING FOUND'} (${seconds} s)`);
  }
  keepControls(controls);
  console.log(`written: ${writeReport()}`);
  return controls.every(({ seed }) => seed !== null);
}

/** What repeats this run. */
function commandLine({ seed, minutes, scale }: Command): string {
  return `npm run chaos -- --seed ${seed} --minutes ${minutes}${scale === 'full' ? '' : ` --scale ${scale}`}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}
